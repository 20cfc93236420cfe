#include "prepared_rules.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

constexpr std::size_t file_bytes_max = std::size_t{1} << 20;

tl::unexpected<error> unusable(const std::string& file, std::string_view why) {
    return fail(errc::invalid_config, fmt::format("the schema file {} cannot be used: {}", file, why));
}

result<std::string> read_file(const std::string& name) {
    std::error_code failed;
    const bool is_file = std::filesystem::is_regular_file(name, failed);
    if (failed) return unusable(name, failed.message());
    if (!is_file) return unusable(name, "it is no regular file");  // who opens a pipe may wait for ever
    errno = 0;
    std::ifstream file(name, std::ios::binary);
    if (!file) return unusable(name, errno != 0 ? std::strerror(errno) : "it cannot be opened");
    std::string text(file_bytes_max + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad() || file.gcount() == 0) return unusable(name, "it is empty");
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > file_bytes_max) return unusable(name, "it is larger than 1 MiB");
    return text;
}

/// Also shows whether it is a schema; Protobuf is the registry's to judge.
result<std::string> name_of_type(schema_format format, const std::string& text) {
    if (format == schema_format::avro) {
        auto read = parse_avro_schema(text);
        if (!read) return tl::unexpected(std::move(read.error()));
        return std::string(read->name());
    }
    if (format == schema_format::json) {
        auto read = parse_json_schema(text);
        if (!read) return tl::unexpected(std::move(read.error()));
        return std::string(read->title());
    }
    return std::string{};
}

registry::schema_pointer unregistered_schema(registry::schema_text text, std::uint32_t id) {
    auto self = std::make_shared<registry::registered_schema>();
    self->id = id;
    self->guid = "00000000-0000-0000-0000-000000000000";
    self->schema = std::make_shared<registry::schema_text>(std::move(text));
    auto whole = std::make_shared<registry::resolved_schema>();
    whole->self = std::move(self);
    return whole;
}

struct surroundings {
    registry::schema_source& source;
    registering may;
    std::uint32_t unregistered{0};
};

result<void> read_schema_file(prepared_part& of, surroundings& with) {
    const auto& rule = of.rule;
    auto text = read_file(rule.schema_file);
    if (!text) return tl::unexpected(std::move(text.error()));
    auto name = name_of_type(format_of(rule), *text);
    if (!name) return unusable(rule.schema_file, name.error().detail);
    of.file_record = std::move(*name);
    if (!rule.auto_register) return {};
    registry::schema_text schema{type_of(format_of(rule)), std::move(*text), {}};
    if (with.may == registering::allowed) {
        of.given = with.source.given(std::move(schema), true);
    } else {
        of.unregistered = unregistered_schema(
            std::move(schema),
            static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()) - with.unregistered++
        );
    }
    return {};
}

result<prepared_part> prepare(const coding_rule& rule, record_part part, surroundings& with) {
    prepared_part out{.rule = rule, .file_record = {}};
    if (out.does_nothing()) return out;
    if (!rule.schema_file.empty()) {
        if (auto read = read_schema_file(out, with); !read) return tl::unexpected(std::move(read.error()));
    }
    // Any topic shows whether the name of a record is missing.
    if (auto subject = subject_of(rule, part, "TOPIC", out.file_record); !subject)
        return tl::unexpected(std::move(subject.error()));
    if (rule.mode == coding_mode::avro) {
        out.avro = std::make_unique<avro_encoder>(avro_options{
            .unions = rule.unions,
            .logical = rule.logical,
            .ignore_unknown_fields = rule.ignore_unknown_fields,
            .limits = {}});
    }
    if (rule.mode == coding_mode::json) out.json = std::make_unique<json_checker>();
    return out;
}

}  // namespace

registry::schema_type type_of(schema_format format) {
    switch (format) {
        case schema_format::avro:
            return registry::schema_type::avro;
        case schema_format::protobuf:
            return registry::schema_type::protobuf;
        case schema_format::json:
            break;
    }
    return registry::schema_type::json;
}

result<std::vector<prepared_rule>> prepare_rules(
    std::span<const topic_rule> rules, registry::schema_source& source, registering may
) {
    if (auto valid = check_rules(rules); !valid) return tl::unexpected(std::move(valid.error()));
    surroundings with{source, may};
    std::vector<prepared_rule> out;
    out.reserve(rules.size());
    for (const auto& rule : rules) {
        auto value = prepare(rule.value, record_part::value, with);
        if (!value) return tl::unexpected(std::move(value.error()));
        auto key = prepare(rule.key, record_part::key, with);
        if (!key) return tl::unexpected(std::move(key.error()));
        out.push_back({rule.topic, std::move(*value), std::move(*key)});
    }
    return out;
}

}  // namespace millrace::schema
