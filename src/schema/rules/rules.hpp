/// What is done to the keys and values of which topics: plain data, as the configuration gives it, and the
/// pure functions that read it. The first rule whose pattern matches a topic decides; without one nothing is
/// done.
#pragma once

#include "avro/options.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::schema {

enum class coding_mode : std::uint8_t {
    none,   ///< The bytes as they are.
    frame,  ///< Already encoded: only the schema is named.
    avro,   ///< JSON text that is encoded as Avro.
    json    ///< JSON text that is checked against a JSON Schema, then framed.
};

enum class schema_format : std::uint8_t { avro, protobuf, json };

enum class subject_strategy : std::uint8_t {
    topic,             ///< `<topic>-value`, `<topic>-key`
    record,            ///< the full name of the type
    topic_and_record,  ///< `<topic>-<full name of the type>`
    given
};

enum class id_place : std::uint8_t {
    prefix,  ///< 0x00 and the id before the value.
    header   ///< The GUID in a header; only where the registry gives GUIDs.
};

enum class version_choice : std::uint8_t {
    latest,
    fixed,
    header  ///< A header of the row holds the number; it is taken off the record.
};

/// What is done to a key or a value.
struct coding_rule {
    coding_mode mode{coding_mode::none};

    /// Only of `frame`; of the other modes it follows from the mode.
    schema_format format{schema_format::avro};

    id_place place{id_place::prefix};

    subject_strategy subject{subject_strategy::topic};
    std::string given_subject;  ///< Of `subject_strategy::given`.

    /// The full name of the type, for the strategies that use it; with a schema file it may be empty, and the
    /// name is that of the file's schema.
    std::string record_name;

    version_choice version{version_choice::latest};
    std::int32_t fixed_version{0};  ///< From 1, of `version_choice::fixed`.
    std::string version_header;     ///< Of `version_choice::header`.

    union_style unions{union_style::avro};             ///< Of `avro`.
    logical_values logical{logical_values::readable};  ///< Of `avro`.
    bool ignore_unknown_fields{false};                 ///< Of `avro`.
    std::vector<std::int32_t> message_index{0};        ///< Of `frame` with Protobuf.

    /// Registers the schema of `schema_file` under the subject when it is not there. Never without.
    bool auto_register{false};
    std::string schema_file;

    bool operator==(const coding_rule&) const = default;
};

struct topic_rule {
    /// A topic, or a pattern: `*` stands for any characters, `?` for one.
    std::string topic;
    coding_rule value;
    coding_rule key;

    bool operator==(const topic_rule&) const = default;
};

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
