#include "rules/rules.hpp"

#include "avro/names.hpp"
#include "json/utf8.hpp"
#include "rules/rule_faults.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

bool uses_record(const coding_rule& rule) {
    return rule.subject == subject_strategy::record || rule.subject == subject_strategy::topic_and_record;
}

bool is_pattern(std::string_view topic) {
    return topic.find_first_of("*?") != std::string_view::npos;
}

/// What is wrong with a rule, or nothing. The settings are called as in the configuration.
std::string fault_of_subject(const coding_rule& rule) {
    const bool given = rule.subject == subject_strategy::given;
    if (given && rule.given_subject.empty())
        return "it takes a given subject, but names none; set `subject_name`";
    if (!given && !rule.given_subject.empty())
        return "it names a subject, but does not take it; set `subject: given`";
    if (uses_record(rule) && rule.record_name.empty() && rule.schema_file.empty()) {
        return "its subject is made of the record's name, which nothing gives; set `record` or `schema_file`";
    }
    if (!rule.record_name.empty() && !uses_record(rule)) {
        return "it names a record that its subject does not use; set `subject: record` or `subject: "
               "topic_and_record`";
    }
    if (!rule.record_name.empty() && format_of(rule) == schema_format::avro &&
        !is_avro_full_name(rule.record_name)) {
        return fmt::format("`record: {}` is no full name of an Avro type", shortened(rule.record_name));
    }
    return {};
}

std::string fault_of_version(const coding_rule& rule) {
    const bool fixed = rule.version == version_choice::fixed;
    const bool header = rule.version == version_choice::header;
    if (fixed && rule.fixed_version < 1)
        return fmt::format("`version: {}` must be 1 or more", rule.fixed_version);
    if (!fixed && rule.fixed_version != 0) return "it has the number of a version that it does not use";
    if (header && rule.version_header.empty()) return "its version comes from a header that has no name";
    if (!header && !rule.version_header.empty()) return "it names a version header that it does not use";
    if (rule.auto_register && rule.schema_file.empty()) {
        return "`auto_register` needs the schema that it registers; set `schema_file`";
    }
    if (rule.auto_register && rule.version != version_choice::latest) {
        return "`auto_register` makes the newest version; it goes with `version: latest` only";
    }
    if (!rule.schema_file.empty() && !rule.auto_register && !uses_record(rule)) {
        return "its `schema_file` has no use; set `auto_register: true`, or leave the file out";
    }
    return {};
}

std::string fault_of_mode(const coding_rule& rule) {
    const coding_rule preset;
    if (rule.mode != coding_mode::avro &&
        (rule.unions != preset.unions || rule.logical != preset.logical || rule.ignore_unknown_fields)) {
        return "`unions`, `logical` and `ignore_unknown_fields` are of `mode: avro` only";
    }
    if (rule.mode != coding_mode::frame && rule.format != preset.format)
        return "`format` is of `mode: frame` only";
    const bool protobuf = rule.mode == coding_mode::frame && rule.format == schema_format::protobuf;
    if (rule.message_index.empty())
        return "`message` is no place of a message; give its number in the file, from 0, then /NUMBER for "
               "each "
               "message it is nested in, such as 0 or 1/0";
    if (!protobuf && rule.message_index != preset.message_index)
        return "`message` is of `format: protobuf` only";
    return {};
}

std::string fault_of(const coding_rule& rule) {
    if (rule.mode == coding_mode::none) {
        return rule == coding_rule{}
                   ? ""
                   : "it has settings, but its mode is none; set `mode: frame`, `avro` or `json`";
    }
    for (auto fault : {fault_of_mode(rule), fault_of_subject(rule), fault_of_version(rule)}) {
        if (!fault.empty()) return fault;
    }
    return {};
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
    // On a mismatch only the last star can give: it takes one character more.
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;
    std::size_t taken = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            taken = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

const topic_rule* rule_for(std::span<const topic_rule> rules, std::string_view topic) noexcept {
    const auto found = std::find_if(rules.begin(), rules.end(), [&](const topic_rule& rule) {
        return matches_pattern(rule.topic, topic);
    });
    return found == rules.end() ? nullptr : &*found;
}

schema_format format_of(const coding_rule& rule) noexcept {
    switch (rule.mode) {
        case coding_mode::avro:
            return schema_format::avro;
        case coding_mode::json:
            return schema_format::json;
        default:
            return rule.format;
    }
}

result<std::string> subject_of(
    const coding_rule& rule, record_part part, std::string_view topic, std::string_view file_record
) {
    const auto record = rule.record_name.empty() ? file_record : std::string_view(rule.record_name);
    if (uses_record(rule) && record.empty()) {
        return fail(
            errc::invalid_config,
            fmt::format(
                "the subject for the topic \"{}\" is made of the record's name, but the schema has none; set "
                "`record`",
                shortened(topic)
            )
        );
    }
    switch (rule.subject) {
        case subject_strategy::topic:
            return fmt::format("{}-{}", topic, part == record_part::key ? "key" : "value");
        case subject_strategy::record:
            return std::string(record);
        case subject_strategy::topic_and_record:
            return fmt::format("{}-{}", topic, record);
        case subject_strategy::given:
            return rule.given_subject;
    }
    return fail(errc::internal, "an unknown subject strategy");
}

result<std::int32_t> read_version(std::string_view text) {
    std::int32_t version = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), version);
    if (read.ec == std::errc{} && read.ptr == text.data() + text.size() && version >= 1) return version;
    return fail(
        errc::refused_record,
        fmt::format(
            "the version header of the row is no whole number from 1, but {} {}",
            text.size(),
            text.size() == 1 ? "byte" : "bytes"
        )
    );
}

std::vector<rule_fault> faults_of(std::span<const topic_rule> rules) {
    std::vector<rule_fault> found;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const auto& rule = rules[i];
        const auto named = fmt::format("rule {} of the schemas (topic \"{}\")", i + 1, shortened(rule.topic));
        const auto add = [&](rule_fault::place where, std::string what) {
            found.push_back({i, where, std::move(what)});
        };
        if (rule.topic.empty()) {
            add(rule_fault::place::topic,
                fmt::format("rule {} of the schemas names no topic; `*` is each", i + 1));
        }
        if (const auto fault = fault_of(rule.value); !fault.empty())
            add(rule_fault::place::value, fmt::format("{}, value: {}", named, fault));
        if (const auto fault = fault_of(rule.key); !fault.empty())
            add(rule_fault::place::key, fmt::format("{}, key: {}", named, fault));
        const auto hides = [&](const topic_rule& earlier) {
            return is_pattern(rule.topic) ? earlier.topic == rule.topic || earlier.topic == "*"
                                          : matches_pattern(earlier.topic, rule.topic);
        };
        const auto end = rules.begin() + static_cast<std::ptrdiff_t>(i);
        const auto earlier = std::find_if(rules.begin(), end, hides);
        if (earlier == end || rule.topic.empty()) continue;
        add(rule_fault::place::topic,
            fmt::format(
                "{} never decides, because rule {} (topic \"{}\") matches first; put the more special "
                "rule first",
                named,
                earlier - rules.begin() + 1,
                shortened(earlier->topic)
            ));
    }
    return found;
}

result<void> check_rules(std::span<const topic_rule> rules) {
    if (auto found = faults_of(rules); !found.empty())
        return fail(errc::invalid_config, std::move(found.front().what));
    return {};
}

}  // namespace millrace::schema
