#include "schemas_section.hpp"

#include "commands/commands.hpp"
#include "schema_faults.hpp"
#include "units.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef MILLRACE_WITH_SCHEMAS
#include "framing/framing.hpp"
#endif

namespace millrace::app {

namespace {

using kind = option_kind;
using namespace schema;

std::vector<option_spec> section_keys() {
    return {
        {.name = "registry",
         .placeholder = "URL",
         .meaning =
             "Address of the registry with its path, without user and password; more of them are tried "
             "in turn",
         .example = "http://registry:8081",
         .many = true},
        {.name = "user", .placeholder = "NAME", .meaning = "For basic authentication", .example = "relay"},
        {.name = "password",
         .placeholder = "TEXT",
         .meaning = "Its password",
         .example = "${ENV:REGISTRY_PASSWORD}",
         .secret = true},
        {.name = "token",
         .placeholder = "TEXT",
         .meaning = "For bearer authentication, instead of user and password",
         .example = "${ENV:REGISTRY_TOKEN}",
         .secret = true},
        {.name = "ca-file",
         .placeholder = "FILE",
         .meaning = "Authorities to trust, PEM; the system's by default. Certificate and name are always "
                    "verified",
         .example = "/etc/ssl/registry-ca.pem"},
        {.name = "client-certificate-file",
         .placeholder = "FILE",
         .meaning = "Certificate of this side, PEM",
         .example = "/etc/millrace/client.pem"},
        {.name = "client-key-file",
         .placeholder = "FILE",
         .meaning = "Its key, PEM",
         .example = "/etc/millrace/client.key"},
        {.name = "client-key-password",
         .placeholder = "TEXT",
         .meaning = "Password of that key",
         .example = "${ENV:KEY_PASSWORD}",
         .secret = true},
        time_option("connect-timeout", "3s", "1ms", "5m", "For name, connection and TLS together"),
        time_option("request-timeout", "10s", "1ms", "5m", "For the whole of one request at one address"),
        time_option("latest-ttl", "1m", "1s", "1d", "A new latest version is used by then at the latest"),
        bytes_option("cache-bytes", "64MiB", "Schemas as text, and as much for what is made of them"),
        {.name = "rules",
         .kind = kind::rules,
         .placeholder = "RULES",
         .meaning = "What is done to the values and keys of which topics; the first that matches decides",
         .example = "[{topic: orders, value: avro}]",
         .many = true},
    };
}

const setting& setting_of(const settings& values, std::string_view key) {
    const auto all = values.all();
    const auto at =
        std::ranges::find_if(all, [&](const setting& s) { return config_key(s.option->name) == key; });
    return at == all.end() ? all.back() : *at;
}

/// Of the part of the rule that the fault names, or else of its first.
std::string place_in_rule(const settings& values, const schema_fault& fault) {
    std::string place;
    for (const given_value& part : values.parts("rules")) {
        if (part.rule != fault.index) continue;
        const std::string_view key = part.key;
        if (place.empty()) place = part.where;
        if (key == fault.part) return part.where;
        if (!key.starts_with(fault.part + ".")) continue;
        if (key.ends_with(".mode")) {
            place = part.where;  // most faults name it beside the key that does not go with it
            continue;
        }
        if (fault.what.find(fmt::format("`{}", key.substr(fault.part.size() + 1))) != std::string::npos)
            return part.where;
    }
    return place;
}

std::string place_of(const settings& values, const schema_fault& fault) {
    if (!fault.part.empty()) return place_in_rule(values, fault);
    if (fault.setting.empty()) return {};
    const setting& named = setting_of(values, fault.setting == "urls" ? "registry" : fault.setting);
    return fault.index < named.places.size() ? named.places[fault.index] : named.where;
}

void check_section(const settings& values, faults& found) {
    if (!found.empty()) return;  // rules with a fault left out would make others
    for (const schema_fault& fault : faults_of(schema_settings_of(values))) {
        const auto place = place_of(values, fault);
        found.add(place.empty() ? fault.what : fmt::format("{}: {}", place, fault.what));
    }
}

/// A file that a relay needs to start.
void check_file(const std::string& where, std::string_view key, const std::string& file, faults& found) {
    struct stat about {};
    int code = 0;
    if (::stat(file.c_str(), &about) != 0 || ::access(file.c_str(), R_OK) != 0) code = errno;
    if (code == 0 && S_ISDIR(about.st_mode)) code = EISDIR;
    if (code == 0) return;
    found.add(
        fmt::format(
            "{}: {}: the file {} cannot be read: {}", where, key, in_quotes(file), std::strerror(code)
        ),
        exit_status::failed
    );
}

coding_mode mode_of(std::string_view text) {
    if (text == "frame") return coding_mode::frame;
    if (text == "avro") return coding_mode::avro;
    return text == "json" ? coding_mode::json : coding_mode::none;
}

schema_format format_of(std::string_view text) {
    if (text == "protobuf") return schema_format::protobuf;
    return text == "json" ? schema_format::json : schema_format::avro;
}

subject_strategy subject_of(std::string_view text) {
    if (text == "record") return subject_strategy::record;
    if (text == "topic_and_record") return subject_strategy::topic_and_record;
    return text == "given" ? subject_strategy::given : subject_strategy::topic;
}

void set_version(coding_rule& rule, std::string_view text) {
    if (text == "latest") return;
    if (text == "header") {
        rule.version = version_choice::header;
    } else if (const auto number = parse_count(text)) {
        rule.version = version_choice::fixed;
        rule.fixed_version = static_cast<std::int32_t>(*number);
    }
}

void set_key(coding_rule& rule, std::string_view key, const std::string& text) {
    if (key == "mode") rule.mode = mode_of(text);
    if (key == "format") rule.format = format_of(text);
    if (key == "id") rule.place = text == "header" ? id_place::header : id_place::prefix;
    if (key == "subject") rule.subject = subject_of(text);
    if (key == "subject_name") rule.given_subject = text;
    if (key == "record") rule.record_name = text;
    if (key == "version") set_version(rule, text);
    if (key == "version_header") rule.version_header = text;
    if (key == "unions") rule.unions = text == "plain" ? union_style::plain : union_style::avro;
    if (key == "logical") rule.logical = text == "avro" ? logical_values::avro : logical_values::readable;
    if (key == "ignore_unknown_fields") rule.ignore_unknown_fields = text == "true";
    if (key == "auto_register") rule.auto_register = text == "true";
    if (key == "schema_file") rule.schema_file = text;
#ifdef MILLRACE_WITH_SCHEMAS
    if (key == "message") {
        // Empty, where it is none: the check of the rules says so.
        rule.message_index = read_message_index(text).value_or(std::vector<std::int32_t>{});
    }
#endif
}

std::vector<topic_rule> rules_of(const settings& section) {
    std::vector<topic_rule> rules;
    for (const given_value& part : section.parts("rules")) {
        if (part.rule >= rules.size()) rules.resize(part.rule + 1);
        topic_rule& rule = rules[part.rule];
        const auto dot = part.key.find('.');
        const auto head = std::string_view{part.key}.substr(0, dot);
        if (head == "topic") {
            rule.topic = part.text;
        } else if (dot != std::string::npos) {
            set_key(head == "key" ? rule.key : rule.value, part.key.substr(dot + 1), part.text);
        }
    }
    return rules;
}

}  // namespace

const command_spec& schemas_section() {
    static const command_spec section{
        .path = "schemas",
        .about = "Schemas of values and keys",
        .example = "",
        .options = section_keys(),
        .check = check_section,
        .configurable = true};
    return section;
}

settings resolve_schemas(std::span<const given_value> values, faults& found) {
    const bool readable = found.empty();
    faults own;
    auto section = settings::resolve(schemas_section(), values, {}, false, own);
    if (readable) check_section(section, own);
    for (const std::string& line : own.lines())
        found.add(line, own.status());
    return section;
}

void check_schema_files(const settings& section, faults& found) {
    for (const std::string_view key : {"ca_file", "client_certificate_file", "client_key_file"}) {
        const setting& named = setting_of(section, key);
        if (!named.values.empty()) check_file(named.where, key, named.values.front(), found);
    }
    for (const given_value& part : section.parts("rules")) {
        if (part.key.ends_with(".schema_file")) check_file(part.where, "schema_file", part.text, found);
    }
}

std::string_view lender_of(const command_spec& command) {
    return command.takes_schemas && !command.configurable ? "relay" : "";
}

std::span<const option_spec> rule_keys() {
    static const std::vector<option_spec> keys{
        {.name = "topic",
         .placeholder = "TOPIC",
         .meaning = "A topic or a pattern: `*` stands for any characters, `?` for one",
         .example = "orders",
         .required = true},
        {.name = "value",
         .kind = kind::rules,
         .meaning = "What is done to the value: a mode, or a mapping of the keys below",
         .example = "{mode: avro, version: 3}"},
        {.name = "key", .kind = kind::rules, .meaning = "The same of the key", .example = "none"},
    };
    return keys;
}

std::span<const option_spec> coding_keys() {
    static const std::vector<option_spec> keys{
        {.name = "mode",
         .kind = kind::choice,
         .fallback = "none",
         .meaning = "The bytes as they are; only framed; JSON encoded as Avro; JSON checked and framed",
         .choices = "none|frame|avro|json"},
        {.name = "subject",
         .kind = kind::choice,
         .fallback = "topic",
         .meaning = "`TOPIC-value` or `TOPIC-key`, the record's full name, `TOPIC-NAME`, or `subject_name`",
         .choices = "topic|record|topic_and_record|given"},
        {.name = "subject-name", .meaning = "The subject, of `subject: given`", .example = "orders-v2"},
        {.name = "record",
         .meaning = "Full name of the type, of the subjects that use it; otherwise that in `schema_file`",
         .example = "com.acme.Order"},
        {.name = "version",
         .kind = kind::version,
         .fallback = "latest",
         .meaning = "`latest`, a number, or `header`: a header of the row holds the number and is taken off",
         .example = "3"},
        {.name = "version-header",
         .meaning = "That header, of `version: header`",
         .example = "schema-version"},
        {.name = "id",
         .kind = kind::choice,
         .fallback = "prefix",
         .meaning = "The id before the value, or the GUID in a header, where the registry gives GUIDs",
         .choices = "prefix|header"},
        {.name = "format",
         .kind = kind::choice,
         .fallback = "avro",
         .meaning = "What the bytes are, of `mode: frame`",
         .choices = "avro|protobuf|json"},
        {.name = "message",
         .fallback = "0",
         .meaning = "Place of the message in its file, of `format: protobuf`",
         .example = "1/0"},
        {.name = "unions",
         .kind = kind::choice,
         .fallback = "avro",
         .meaning = "Unions as in Avro's JSON, or the value alone, of `mode: avro`",
         .choices = "avro|plain"},
        {.name = "logical",
         .kind = kind::choice,
         .fallback = "readable",
         .meaning = "Dates and decimals as text, or exactly as Avro's JSON, of `mode: avro`",
         .choices = "readable|avro"},
        {.name = "ignore-unknown-fields",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Leave out fields that the record does not have, of `mode: avro`"},
        {.name = "schema-file",
         .placeholder = "FILE",
         .meaning = "A schema; for `auto_register`, or the record's name",
         .example = "/etc/millrace/order.avsc"},
        {.name = "auto-register",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Register the schema of `schema_file` where the subject has it not; otherwise nothing is "
                    "ever registered"},
    };
    return keys;
}

schema_settings schema_settings_of(const settings& section) {
    schema_settings out;
    out.rules = rules_of(section);
    out.urls = section.list("registry");
    out.user = section.text("user");
    out.password = section.text("password");
    out.token = section.text("token");
    out.ca_file = section.text("ca-file");
    out.client_certificate_file = section.text("client-certificate-file");
    out.client_key_file = section.text("client-key-file");
    out.client_key_password = section.text("client-key-password");
    out.connect_timeout = std::chrono::ceil<milliseconds>(section.duration("connect-timeout"));
    out.request_timeout = std::chrono::ceil<milliseconds>(section.duration("request-timeout"));
    out.latest_time = std::chrono::ceil<milliseconds>(section.duration("latest-ttl"));
    out.cache_bytes = section.bytes("cache-bytes");
    return out;
}

}  // namespace millrace::app
