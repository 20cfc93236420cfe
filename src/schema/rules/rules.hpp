/// Reads the rules of `millrace/schemas.hpp`: what is done to the keys and values of which topics. Pure. The
/// first rule whose pattern matches a topic decides; without one nothing is done.
#pragma once

#include <millrace/error.hpp>
#include <millrace/schemas.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::schema {

enum class record_part : std::uint8_t { key, value };

/// The first rule that matches; null when none does.
[[nodiscard]] const topic_rule* rule_for(std::span<const topic_rule> rules, std::string_view topic) noexcept;

[[nodiscard]] inline const coding_rule& part_of(const topic_rule& rule, record_part part) noexcept {
    return part == record_part::key ? rule.key : rule.value;
}

[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text) noexcept;

/// The subject under which the registry has the schema. `file_record` is the name of the schema in the rule's
/// file, or empty. Fails where a name is needed and nobody gives one.
[[nodiscard]] result<std::string> subject_of(
    const coding_rule& rule, record_part part, std::string_view topic, std::string_view file_record = {}
);

/// The number in a row's version header: a whole number from 1.
[[nodiscard]] result<std::int32_t> read_version(std::string_view text);

/// What the rule's schema is written in.
[[nodiscard]] schema_format format_of(const coding_rule& rule) noexcept;

/// `invalid_config` at the first rule that contradicts itself or that an earlier one hides, with what to
/// change.
[[nodiscard]] result<void> check_rules(std::span<const topic_rule> rules);

}  // namespace millrace::schema
