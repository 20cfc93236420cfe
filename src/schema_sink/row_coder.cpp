#include "row_coder.hpp"

#include "framing/framing.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

using registry::failure_kind;

// Whoever watches looks at every row that waits, and many schemas may come one behind the other.
constexpr nanoseconds tell_every = std::chrono::milliseconds{10};

constexpr std::size_t versions_max = 100;

std::string_view name_of(record_part part) {
    return part == record_part::key ? "key" : "value";
}

/// What an answer that there is no schema means for the rows that need it.
error as_row_error(const registry::registry_failure& why, bool of_row) {
    if (is_trouble(why.kind) || why.kind == failure_kind::cache_full)
        return {errc::unavailable, retry_advice::after_delay, false, why.why.detail};
    const auto code = of_row ? errc::refused_record : errc::refused_topic;
    return {code, retry_advice::after_delay, false, why.why.detail};
}

const record_header* find_header(const outbox_row& row, std::string_view name) {
    const auto found = std::find_if(row.headers.begin(), row.headers.end(), [&](const record_header& h) {
        return h.name == name;
    });
    return found == row.headers.end() ? nullptr : &*found;
}

std::string without_guid(std::string_view subject) {
    return fmt::format(
        "the registry gives no GUID for the schema of the subject \"{}\", and the rule names the schema by "
        "its GUID in a header; set `id: prefix`",
        subject
    );
}

/// Of a rule for one topic, or whose subject is the same for all; otherwise empty.
std::string subject_of_rule(const prepared_part& of, record_part part, std::string_view topic) {
    const bool of_topic =
        of.rule.subject == subject_strategy::topic || of.rule.subject == subject_strategy::topic_and_record;
    if (of_topic && topic.find_first_of("*?") != std::string_view::npos) return {};
    return subject_of(of.rule, part, topic, of.file_record).value_or("");
}

error fault_of_topic(std::string detail) {
    return {errc::refused_topic, retry_advice::after_delay, false, std::move(detail)};
}

}  // namespace

row_coder::row_coder(
    host& home,
    std::unique_ptr<registry::schema_source> source,
    std::vector<prepared_rule> rules,
    row_coder_limits limits
)
    : home_(home), source_(std::move(source)), rules_(std::move(rules)), limits_(limits) {}

row_coder::~row_coder() {
    if (telling_) home_.cancel(*telling_);
}

topic_coding row_coder::make_topic(std::string_view name) {
    topic_coding made{.name = std::string(name), .value = {}, .key = {}};
    const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const prepared_rule& r) {
        return matches_pattern(r.topic, name);
    });
    if (rule == rules_.end() || (rule->value.does_nothing() && rule->key.does_nothing())) return made;
    made.untouched = false;
    const auto fill = [&](part_coding& of, prepared_part& by, record_part part) {
        of.rule = &by;
        of.part = part;
        if (by.does_nothing()) return;
        of.subject = subject_of(by.rule, part, name, by.file_record).value();
        if (by.rule.version == version_choice::fixed)
            of.use.choice = registry::schema_choice::version(by.rule.fixed_version);
        if (by.given) of.use.choice = *by.given;
    };
    fill(made.value, rule->value, record_part::value);
    fill(made.key, rule->key, record_part::key);
    return made;
}

topic_coding& row_coder::topic_of(std::string_view name) {
    if (!topics_.empty() && topics_.front().name == name) return topics_.front();
    if (const auto found = by_name_.find(name); found != by_name_.end()) {
        topics_.splice(topics_.begin(), topics_, found->second);
        return topics_.front();
    }
    topics_.push_front(make_topic(name));
    by_name_.emplace(topics_.front().name, topics_.begin());
    trim();
    return topics_.front();
}

void row_coder::trim() {
    while (topics_.size() > 1 &&
           (topics_.size() > limits_.topics_max || compiled_.bytes() > limits_.compiled_bytes_max)) {
        by_name_.erase(topics_.back().name);
        topics_.pop_back();
    }
}

row_coder::state row_coder::look(const outbox_row& row) {
    auto& topic = topic_of(row.topic);
    if (topic.untouched) return state::untouched;
    auto all = state::ready;
    const auto add = [&](part_coding& of, bool present) {
        if (!present || of.does_nothing()) return;
        const auto found = schema_for(topic, of, row);
        if (found) return;
        if (found.error().code == errc::unavailable) {
            all = state::awaited;
        } else if (all == state::ready) {
            all = state::refused;
        }
    };
    add(topic.value, row.value.has_value());
    add(topic.key, row.key.has_value());
    return all;
}

result<schema_use*> row_coder::choose(part_coding& of, const outbox_row& row) {
    if (of.rule->rule.version != version_choice::header) return &of.use;
    const auto* const header = find_header(row, of.rule->rule.version_header);
    if (header == nullptr || !header->value) {
        return fail(
            errc::refused_record,
            fmt::format(
                "the row has no header \"{}\", which is to hold the version of the schema of its {}",
                of.rule->rule.version_header,
                name_of(of.part)
            )
        );
    }
    const auto version = read_version(*header->value);
    if (!version) return tl::unexpected(version.error());
    if (const auto known = of.by_version.find(*version); known != of.by_version.end()) return &known->second;
    if (of.by_version.size() >= versions_max) of.by_version.clear();
    return &of.by_version
                .emplace(
                    *version, schema_use{.choice = registry::schema_choice::version(*version), .frame = {}}
                )
                .first->second;
}

result<schema_use*> row_coder::schema_for(topic_coding& topic, part_coding& of, const outbox_row& row) {
    auto chosen = choose(of, row);
    if (!chosen) return chosen;
    auto& use = **chosen;
    const bool by_header = of.rule->rule.version == version_choice::header;
    if (seen_now(use) && use.known && !use.fault) return &use;
    const auto found = of.rule->unregistered ? registry::found_schema{of.rule->unregistered}
                                             : source_->find(of.subject, use.choice);
    if (found.schema) {
        if (found.schema != use.known) make_ready(of, use, found.schema);
        if (!use.fault) return &use;
        auto why = *use.fault;
        if (by_header) why.code = errc::refused_record;
        return tl::unexpected(std::move(why));
    }
    use.known.reset();
    use.compiled.reset();
    if (found.why != nullptr && !is_trouble(found.why->kind)) {
        return tl::unexpected(as_row_error(*found.why, by_header));
    }
    ask(topic, of, use);
    return fail(
        errc::unavailable,
        fmt::format("the schema of the subject \"{}\" has not come from the registry yet", of.subject),
        retry_advice::after_delay
    );
}

// Rows come in crowds: what was found for one of them is true for all that come in the same turn of the host.
bool row_coder::seen_now(schema_use& use) {
    if (!std::exchange(turn_is_open_, true)) {
        home_.post(alive_.guard([this] {
            ++turn_;
            turn_is_open_ = false;
        }));
    }
    return std::exchange(use.seen_in, turn_) == turn_;
}

void row_coder::make_ready(const part_coding& of, schema_use& use, const registry::schema_pointer& known) {
    use.known = known;
    use.compiled.reset();
    use.frame.clear();
    use.fault = fault_of(of, use, known);
    trim();
}

std::optional<error> row_coder::fault_of(
    const part_coding& of, schema_use& use, const registry::schema_pointer& known
) {
    const auto& rule = of.rule->rule;
    const auto& self = *known->self;
    const auto wanted = type_of(format_of(rule));
    if (self.schema->type != wanted) {
        return fault_of_topic(fmt::format(
            "the subject \"{}\" holds a schema of the type {}, and the rule for it takes {}",
            of.subject,
            registry::name_of(self.schema->type),
            registry::name_of(wanted)
        ));
    }
    if (rule.place == id_place::header) {
        if (self.guid.empty()) return fault_of_topic(without_guid(of.subject));
        const auto guid = read_guid(self.guid);
        if (!guid) return fault_of_topic(guid.error().detail);
        use.frame = guid_header(*guid);
    } else {
        append_schema_id(use.frame, static_cast<std::int32_t>(self.id));
    }
    if (wanted == registry::schema_type::protobuf) append_message_index(use.frame, rule.message_index);
    if (rule.mode == coding_mode::frame) return std::nullopt;
    auto compiled = compiled_.get(*known);
    if (!compiled) {
        return fault_of_topic(fmt::format(
            "the schema {} of the subject \"{}\" cannot be used: {}",
            self.id,
            of.subject,
            compiled.error().detail
        ));
    }
    use.compiled = std::move(*compiled);
    return std::nullopt;
}

void row_coder::look_for_guids(const std::function<void(const error&)>& lacking) {
    const auto look = [&](const prepared_part& of, record_part part, const std::string& topic) {
        if (of.does_nothing() || of.rule.place != id_place::header || of.given) return;
        const auto subject = subject_of_rule(of, part, topic);
        if (subject.empty()) return;
        const auto choice = of.rule.version == version_choice::fixed
                                ? registry::schema_choice::version(of.rule.fixed_version)
                                : registry::schema_choice::latest();
        source_->want(subject, choice, alive_.guard([subject, lacking](const registry::schema_outcome& came) {
            if (!came || !(*came)->self->guid.empty()) return;
            lacking({errc::invalid_config, retry_advice::never, false, without_guid(subject)});
        }));
    };
    for (const auto& rule : rules_) {
        look(rule.value, record_part::value, rule.topic);
        look(rule.key, record_part::key, rule.topic);
    }
}

void row_coder::ask(const topic_coding& topic, const part_coding& of, schema_use& use) {
    if (std::exchange(use.asked, true)) return;
    source_->want(
        of.subject,
        use.choice,
        alive_.guard(
            [this, name = topic.name, part = of.part, choice = use.choice](const registry::schema_outcome&) {
                told(name, part, choice);
            }
        )
    );
}

void row_coder::told(const std::string& topic, record_part part, registry::schema_choice choice) {
    if (const auto found = by_name_.find(topic); found != by_name_.end()) {
        auto& of = part == record_part::key ? found->second->key : found->second->value;
        if (of.use.choice == choice) of.use.asked = false;
        const auto version = of.by_version.find(static_cast<std::int32_t>(choice.number));
        if (version != of.by_version.end() && version->second.choice == choice) version->second.asked = false;
    }
    tell_watchers();
}

void row_coder::tell_watchers() {
    if (telling_) return;
    telling_ = home_.call_at(std::max(home_.now(), tell_not_before_), [this] {
        telling_.reset();
        tell_not_before_ = home_.now() + tell_every;
        for (const auto& changed : watchers_)
            changed();
    });
}

result<outbox_row> row_coder::code(const outbox_row& row, row_batch& memory) {
    auto& topic = topic_of(row.topic);
    if (topic.untouched) return row;
    auto out = row;
    std::vector<record_header> headers;
    auto value = code_part(topic, topic.value, row, row.value, memory, headers);
    if (!value) return tl::unexpected(std::move(value.error()));
    auto key = code_part(topic, topic.key, row, row.key, memory, headers);
    if (!key) return tl::unexpected(std::move(key.error()));
    out.value = *value;
    out.key = *key;
    const auto ours = [&](const record_header& h) {
        const auto is_version = [&](const part_coding& of) {
            return of.rule->rule.version == version_choice::header && h.name == of.rule->rule.version_header;
        };
        const auto is_new = [&](const record_header& made) { return made.name == h.name; };
        return is_version(topic.value) || is_version(topic.key) ||
               std::any_of(headers.begin(), headers.end(), is_new);
    };
    if (headers.empty() && std::none_of(row.headers.begin(), row.headers.end(), ours)) return out;
    std::vector<record_header> all;
    all.reserve(row.headers.size() + headers.size());
    std::remove_copy_if(row.headers.begin(), row.headers.end(), std::back_inserter(all), ours);
    all.insert(all.end(), headers.begin(), headers.end());
    out.headers = memory.store(std::move(all));
    return out;
}

result<std::optional<std::string_view>> row_coder::code_part(
    topic_coding& topic,
    part_coding& of,
    const outbox_row& row,
    std::optional<std::string_view> bytes,
    row_batch& memory,
    std::vector<record_header>& headers
) {
    if (!bytes || of.does_nothing()) return bytes;
    const auto found = schema_for(topic, of, row);
    if (!found) return tl::unexpected(found.error());
    const auto& use = **found;
    const bool in_header = of.rule->rule.place == id_place::header;
    scratch_.clear();
    if (!in_header) scratch_ += use.frame;
    result<void> done;
    switch (of.rule->rule.mode) {
        case coding_mode::avro:
            done = of.rule->avro->encode(std::get<avro_schema>(use.compiled->plan), *bytes, scratch_);
            break;
        case coding_mode::json:
            done = of.rule->json->check(std::get<json_schema>(use.compiled->plan), *bytes);
            break;
        default:
            break;
    }
    if (!done) {
        return fail(
            errc::refused_record,
            fmt::format(
                "{} (schema {} of the subject \"{}\", for the {})",
                done.error().detail,
                use.known->self->id,
                of.subject,
                name_of(of.part)
            )
        );
    }
    const bool copied = of.rule->rule.mode != coding_mode::avro;
    if (in_header) {
        headers.push_back(
            {of.part == record_part::key ? key_schema_header : value_schema_header, memory.store(use.frame)}
        );
        if (copied) return bytes;
    } else if (copied) {
        scratch_ += *bytes;
    }
    return memory.store(scratch_);
}

}  // namespace millrace::schema
