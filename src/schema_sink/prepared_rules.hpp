/// The rules of the configuration with what they need: the schemas of their files, and encoders with memory
/// of their own.
#pragma once

#include "avro/encoder.hpp"
#include "json_schema/checker.hpp"
#include "rules/rules.hpp"
#include "schema_source.hpp"

#include <millrace/error.hpp>
#include <millrace/schemas.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace::schema {

/// Whether a rule with `auto_register` may do so. Otherwise its rows are encoded by the file's schema under
/// an id that no registry knows: to see whether they fit, not to be sent.
enum class registering : std::uint8_t { allowed, never };

[[nodiscard]] registry::schema_type type_of(schema_format format);

struct prepared_part {
    coding_rule rule;
    std::string file_record;                         ///< The name of the schema in the rule's file.
    std::optional<registry::schema_choice> given{};  ///< The file's schema, where the rule registers it.
    registry::schema_pointer unregistered{};         ///< The same, where nothing may be registered.
    std::unique_ptr<avro_encoder> avro{};
    std::unique_ptr<json_checker> json{};

    [[nodiscard]] bool does_nothing() const noexcept { return rule.mode == coding_mode::none; }
};

struct prepared_rule {
    std::string topic;
    prepared_part value;
    prepared_part key;
};

/// Reads the files at once. `invalid_config` at the first rule that cannot be used, with why.
[[nodiscard]] result<std::vector<prepared_rule>> prepare_rules(
    std::span<const topic_rule> rules, registry::schema_source& source, registering may = registering::allowed
);

}  // namespace millrace::schema
