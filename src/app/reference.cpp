#include "reference.hpp"

#include "option.hpp"
#include "schemas_section.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::app {

namespace {

std::string_view unit_of(option_kind kind) {
    switch (kind) {
        case option_kind::flag:
            return "`true` or `false`";
        case option_kind::text:
            return "text";
        case option_kind::name:
            return "text, up to 256 bytes";
        case option_kind::choice:
            return "one of";
        case option_kind::count:
            return "whole number";
        case option_kind::share:
            return "number";
        case option_kind::duration:
            return "duration";
        case option_kind::seconds:
            return "duration, or seconds";
        case option_kind::bytes:
            return "size";
        case option_kind::version:
            return "`latest`, `header` or a number";
        case option_kind::rules:
            return "mapping";
    }
    return "";
}

/// Fit for a cell of a table.
std::string code(std::string_view text) {
    if (text.empty()) return "";
    std::string out{text};
    for (std::size_t at = 0; (at = out.find('|', at)) != std::string::npos; at += 2)
        out.insert(at, "\\");
    return "`" + out + "`";
}

std::string limits_cell(const option_spec& option) {
    if (!option.choices.empty()) {
        std::string choices{option.choices};
        std::replace(choices.begin(), choices.end(), '|', ' ');
        return code(choices);
    }
    return limits_of(option);
}

std::string row_of(const option_spec& option) {
    const std::string key = config_key(option.name);
    std::string_view value = option.example;
    if (value.empty()) value = option.fallback;
    return fmt::format(
        "| `{}` | {}{} | {} | {} | {} | {} |\n",
        key,
        unit_of(option.kind),
        option.many ? ", or a list" : "",
        option.fallback.empty() ? (option.required ? "required" : "none") : code(option.fallback),
        limits_cell(option),
        option.meaning,
        code(fmt::format("{}: {}", key, value))
    );
}

std::string table_of(std::string_view title, std::span<const option_spec> options) {
    std::string out = fmt::format(
        "### {}\n\n| key | value | default | limits | meaning | example |\n|---|---|---|---|---|---|\n", title
    );
    for (const option_spec& option : options) {
        if (option.in_file) out += row_of(option);
    }
    return out + '\n';
}

}  // namespace

std::string config_reference() {
    std::string out;
    for (const command_spec* const section : sections())
        out += table_of(fmt::format("`{}:`", section->path), section->options);
    out += table_of("A rule of `schemas:`", rule_keys());
    out += table_of("`value:` and `key:` of a rule", coding_keys());
    return out;
}

}  // namespace millrace::app
