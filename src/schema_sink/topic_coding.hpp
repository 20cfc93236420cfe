/// What is done to the rows of one topic, and which schemas are in use for that. Plain data of `row_coder`.
#pragma once

#include "compiled_schema.hpp"
#include "prepared_rules.hpp"
#include "schema_source.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace millrace::schema {

/// One choice of a subject, with what follows from the schema that is known for it.
struct schema_use {
    registry::schema_choice choice{};
    registry::schema_pointer known{};
    compiled_pointer compiled{};   ///< Of Avro and JSON Schema that encode or check.
    std::string frame;             ///< What stands before the value, or in the header.
    std::optional<error> fault{};  ///< The schema cannot be used so.
    bool asked{false};
    std::uint64_t seen_in{0};  ///< The turn of the host in which the source was asked last.
};

struct part_coding {
    prepared_part* rule{nullptr};
    record_part part{record_part::value};
    std::string subject;
    schema_use use;
    std::map<std::int32_t, schema_use> by_version;  ///< Of rules that take the version from a header.

    [[nodiscard]] bool does_nothing() const noexcept { return rule->does_nothing(); }
};

struct topic_coding {
    std::string name;
    bool untouched{true};  ///< No rule, or one that does nothing.
    part_coding value;
    part_coding key;
};

}  // namespace millrace::schema
