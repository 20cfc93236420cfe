/// Reads an Avro schema (specification 1.11) once, so that values can be encoded by it many times.
///
/// A parsed schema is immutable: share it between threads freely. The parser decides nothing about a
/// registry; whoever fetched a schema gives the schemas that it refers to.
#pragma once

#include "avro/plan.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace millrace::schema {

struct avro_limits {
    std::size_t bytes_max{1024 * 1024};  ///< Text of one schema.
    std::size_t depth_max{128};          ///< Nesting of its JSON.
    std::size_t types_max{10'000};       ///< Types, with those of the references.

    /// Encoded defaults of all fields together: a default of records with defaults can multiply.
    std::size_t default_bytes_max{1024 * 1024};
};

/// A schema of another subject, whose named types may be used.
struct avro_reference {
    std::string_view name;    ///< As the registry calls it; for messages.
    std::string_view schema;  ///< Its text.
};

class avro_schema {
public:
    explicit avro_schema(avro_plan plan) : plan_(std::move(plan)) {}

    [[nodiscard]] const avro_plan& plan() const noexcept { return plan_; }

    /// The full name of the type, empty where it has none; what the subject is named after by record.
    [[nodiscard]] std::string_view name() const noexcept { return plan_.text(plan_.nodes[plan_.root].name); }

    /// Memory that it holds, for the budget of a cache.
    [[nodiscard]] std::size_t bytes() const noexcept;

private:
    avro_plan plan_;
};

/// `invalid_argument` with the place in the schema when it is none. Each reference may use the types of those
/// before it; a subject that is reached on two ways is given once.
///
/// As the specification asks, a logical type that is unknown or does not fit its type is ignored, and so is
/// any other attribute. As Java does, an unqualified name that the enclosing namespace does not have is
/// looked up without a namespace, and the default of a union may be of any branch, the first that takes it.
[[nodiscard]] result<avro_schema> parse_avro_schema(
    std::string_view json, std::span<const avro_reference> references = {}, const avro_limits& limits = {}
);

}  // namespace millrace::schema
