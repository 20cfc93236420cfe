#include "registry_codec.hpp"

#include "overload.hpp"
#include "record/bytes_text.hpp"
#include "text/one_line.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::registry {

namespace json = boost::json;

namespace {

constexpr std::int64_t number_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t subject_bytes_max = 1'000;
constexpr std::size_t message_bytes_max = 1'000;

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Where to cut so that at most so many bytes stay, and no character is torn.
std::size_t end_of(std::string_view text, std::size_t bytes_max) {
    auto end = std::min(text.size(), bytes_max);
    while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
        --end;
    return end;
}

/// On one line, and cut.
std::string shown(std::string_view text, std::size_t bytes_max) {
    auto line = one_line(text.substr(0, end_of(text, bytes_max)));
    const bool whole = text.size() <= bytes_max && line.size() <= bytes_max;
    line.resize(end_of(line, bytes_max));
    return whole ? line : line + "…";
}

std::string percent_encoded(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

std::string body_of(const schema_text& schema) {
    json::object body{{"schema", schema.text}};
    if (schema.type != schema_type::avro) body["schemaType"] = json::string(name_of(schema.type));
    if (!schema.references.empty()) {
        auto& list = body["references"].emplace_array();
        for (const auto& each : schema.references)
            list.push_back({{"name", each.name}, {"subject", each.subject}, {"version", each.version}});
    }
    return json::serialize(body);
}

/// Members of one reply; the first that is not as it must be is remembered.
class reader {
public:
    explicit reader(const json::object& from) : from_(from) {}

    [[nodiscard]] const json::value* member(std::string_view name) const {
        const auto* const found = from_.if_contains(name);
        return found == nullptr || found->is_null() ? nullptr : found;
    }

    /// A whole number from 1; 0 where an optional one is absent.
    [[nodiscard]] std::int32_t number(std::string_view name, bool required) {
        const auto* const found = member(name);
        if (found == nullptr) {
            if (required) wrong(fmt::format("has no \"{}\"", name));
            return 0;
        }
        const auto* const value = found->if_int64();
        if (value == nullptr || *value < 1 || *value > number_max) {
            wrong(fmt::format("has a \"{}\" that is no number from 1 to {}", name, number_max));
            return 0;
        }
        return static_cast<std::int32_t>(*value);
    }

    [[nodiscard]] std::string text(std::string_view name, bool required) {
        const auto* const found = member(name);
        if (found == nullptr) {
            if (required) wrong(fmt::format("has no \"{}\"", name));
            return {};
        }
        const auto* const value = found->if_string();
        if (value == nullptr) {
            wrong(fmt::format("has a \"{}\" that is no text", name));
            return {};
        }
        return std::string(*value);
    }

    void wrong(std::string why) {
        if (why_.empty()) why_ = std::move(why);
    }
    [[nodiscard]] const std::string& why() const { return why_; }

private:
    const json::object& from_;
    std::string why_;
};

std::vector<schema_reference> references_in(reader& reply, const reply_limits& limits) {
    std::vector<schema_reference> found;
    const auto* const given = reply.member("references");
    if (given == nullptr) return found;
    const auto* const list = given->if_array();
    if (list == nullptr) {
        reply.wrong("has \"references\" that are no list");
        return found;
    }
    if (list->size() > limits.references_max) {
        reply.wrong(fmt::format("names {} references, of at most {}", list->size(), limits.references_max));
        return found;
    }
    for (const auto& each : *list) {
        const auto* const object = each.if_object();
        if (object == nullptr) {
            reply.wrong("has a reference that is no object");
            return found;
        }
        reader one(*object);
        schema_reference reference{
            one.text("name", true), one.text("subject", true), one.number("version", true)};
        if (one.why().empty() && !check_subject(reference.subject))
            one.wrong("has an impossible \"subject\"");
        if (!one.why().empty()) {
            reply.wrong("has a reference that " + one.why());
            return found;
        }
        found.push_back(std::move(reference));
    }
    return found;
}

std::shared_ptr<const schema_text> schema_in(reader& reply, const reply_limits& limits) {
    auto schema = std::make_shared<schema_text>();
    schema->text = reply.text("schema", true);
    if (schema->text.size() > limits.schema_bytes_max)
        reply.wrong(fmt::format(
            "holds a schema of {} bytes, of at most {}", schema->text.size(), limits.schema_bytes_max
        ));
    if (const auto type = reply.text("schemaType", false); !type.empty()) {
        if (const auto known = schema_type_of(type)) {
            schema->type = *known;
        } else {
            reply.wrong("holds a schema that is neither AVRO, PROTOBUF nor JSON");
        }
    }
    schema->references = references_in(reply, limits);
    return schema;
}

bool is_guid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (hyphen ? c != '-' : !hex) return false;
    }
    return true;
}

registered_schema of_version(const ask_version& what, reader& reply, const reply_limits& limits) {
    registered_schema found;
    found.id = static_cast<std::uint32_t>(reply.number("id", true));
    found.version = reply.number("version", true);
    found.subject = what.subject;
    if (what.version && found.version != *what.version) reply.wrong("is of another version");
    const bool in_context = what.subject.starts_with(":.");  // which replies may write in a shorter form
    if (const auto subject = reply.text("subject", false);
        !subject.empty() && subject != what.subject && !in_context)
        reply.wrong("is of another subject");
    found.schema = schema_in(reply, limits);
    return found;
}

/// Of a schema that this side has: registries write its text in a way of their own, and some leave out its
/// type.
registered_schema of_text(
    const std::string& subject,
    const std::shared_ptr<const schema_text>& schema,
    bool with_version,
    reader& reply
) {
    registered_schema found;
    found.id = static_cast<std::uint32_t>(reply.number("id", true));
    found.version = reply.number("version", with_version);
    found.subject = subject;
    found.schema = schema;
    return found;
}

std::string in_quotes(std::string_view subject) {
    constexpr std::size_t bytes_max = 300;
    return '"' + shown(subject, bytes_max) + '"';
}

result<void> check_number(std::string_view what, std::int64_t number) {
    if (number >= 1 && number <= number_max) return {};
    return fail(
        errc::invalid_argument,
        fmt::format("{} {} of a schema cannot be; registries count from 1 to {}", what, number, number_max)
    );
}

wire_request post(std::string path, const schema_text& schema) {
    return {"POST", std::move(path), body_of(schema)};
}

}  // namespace

std::string describe(const question& what) {
    return std::visit(
        overload{
            [](const ask_version& of) {
                if (of.version)
                    return fmt::format("version {} of the subject {}", *of.version, in_quotes(of.subject));
                return fmt::format("the latest version of the subject {}", in_quotes(of.subject));
            },
            [](const ask_id& of) { return fmt::format("the schema with id {}", of.id); },
            [](const ask_text& of) {
                return fmt::format("the given schema under the subject {}", in_quotes(of.subject));
            },
            [](const register_text& of) {
                return fmt::format(
                    "the registration of a schema under the subject {}", in_quotes(of.subject)
                );
            }},
        what
    );
}

result<void> check_subject(std::string_view subject) {
    std::string_view why;
    if (subject.empty()) why = "is empty";
    if (subject.size() > subject_bytes_max) why = "is longer than 1000 bytes";
    if (std::any_of(subject.begin(), subject.end(), is_control)) why = "holds control characters";
    if (!is_utf8(subject)) why = "is not UTF-8";
    if (subject == "." || subject == "..") why = "stands for a folder in a URL";
    if (why.empty()) return {};
    return fail(
        errc::invalid_argument,
        fmt::format(
            "the subject {} {}; correct the rule or the row that names it",
            is_utf8(subject) ? in_quotes(subject) : "of a schema",
            why
        )
    );
}

result<wire_request> encode(const question& what) {
    using request = result<wire_request>;
    const auto under = [](const std::string& subject, std::string_view rest) {
        return "/subjects/" + percent_encoded(subject) + std::string(rest);
    };
    return std::visit(
        overload{
            [&](const ask_version& of) -> request {
                if (auto fine = check_subject(of.subject); !fine) return tl::unexpected(fine.error());
                if (!of.version) return wire_request{"GET", under(of.subject, "/versions/latest"), {}};
                if (auto fine = check_number("version", *of.version); !fine)
                    return tl::unexpected(fine.error());
                return wire_request{"GET", under(of.subject, fmt::format("/versions/{}", *of.version)), {}};
            },
            [&](const ask_id& of) -> request {
                if (auto fine = check_number("id", of.id); !fine) return tl::unexpected(fine.error());
                return wire_request{"GET", fmt::format("/schemas/ids/{}", of.id), {}};
            },
            [&](const ask_text& of) -> request {
                if (auto fine = check_subject(of.subject); !fine) return tl::unexpected(fine.error());
                return post(under(of.subject, ""), *of.schema);
            },
            [&](const register_text& of) -> request {
                if (auto fine = check_subject(of.subject); !fine) return tl::unexpected(fine.error());
                return post(under(of.subject, "/versions"), *of.schema);
            }},
        what
    );
}

result<registered_schema> decode(const question& what, std::string_view body, const reply_limits& limits) {
    const auto unreadable = [&](std::string_view why) {
        return fail(
            errc::corrupt,
            fmt::format("what came back for {} {}", describe(what), why),
            retry_advice::after_delay
        );
    };
    json::error_code broken;
    const auto parsed = json::parse({body.data(), body.size()}, broken);
    if (broken || !parsed.is_object()) return unreadable("is no JSON object");
    reader reply(parsed.get_object());
    auto found = std::visit(
        overload{
            [&](const ask_version& of) { return of_version(of, reply, limits); },
            [&](const ask_id& of) {
                registered_schema by_id;
                by_id.id = of.id;
                by_id.schema = schema_in(reply, limits);
                return by_id;
            },
            [&](const ask_text& of) { return of_text(of.subject, of.schema, true, reply); },
            [&](const register_text& of) { return of_text(of.subject, of.schema, false, reply); }},
        what
    );
    found.guid = reply.text("guid", false);
    if (!found.guid.empty() && !is_guid(found.guid)) reply.wrong("has a \"guid\" that is none");
    if (!reply.why().empty()) return unreadable(reply.why());
    return found;
}

refusal read_refusal(std::string_view body) {
    refusal found;
    json::error_code broken;
    const auto parsed = json::parse({body.data(), body.size()}, broken);
    if (broken || !parsed.is_object()) return found;
    const auto& object = parsed.get_object();
    if (const auto* const code = object.if_contains("error_code"); code != nullptr && code->is_int64())
        found.error_code = code->get_int64();
    if (const auto* const said = object.if_contains("message"); said != nullptr && said->is_string()) {
        found.message = shown(said->get_string(), message_bytes_max);
    }
    return found;
}

}  // namespace millrace::registry
