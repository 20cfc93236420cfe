/// Reads a JSON Schema once, so that values can be checked by it many times.
///
/// Draft 7, and drafts 4 and 6 where `$schema` says so; what else `$schema` names is refused. Every keyword
/// that asserts something is checked; `format`, `content...` and annotations are not, as the drafts leave
/// open. A `$ref` stays within the schema and the references; nothing is fetched. A parsed schema is
/// immutable: share it between threads freely.
#pragma once

#include "json_schema/plan.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace millrace::schema {

struct json_schema_limits {
    std::size_t bytes_max{1024 * 1024};  ///< Text of one schema.
    std::size_t depth_max{128};          ///< Nesting of its JSON.
    std::size_t schemas_max{10'000};  ///< Schemas within schemas, with those of the references that are used.
};

struct json_reference {
    std::string_view name;    ///< As `$ref` names it.
    std::string_view schema;  ///< Its text.
};

class json_schema {
public:
    explicit json_schema(json_plan plan) : plan_(std::move(plan)) {}

    [[nodiscard]] const json_plan& plan() const noexcept { return plan_; }

    /// Its `title`, which the registry's clients take for the record's name; empty where it has none.
    [[nodiscard]] std::string_view title() const noexcept;

    /// Memory that it holds, for the budget of a cache.
    [[nodiscard]] std::size_t bytes() const noexcept;

private:
    json_plan plan_;
};

/// `invalid_argument` with the place in the schema when it is none.
[[nodiscard]] result<json_schema> parse_json_schema(
    std::string_view json,
    std::span<const json_reference> references = {},
    const json_schema_limits& limits = {}
);

}  // namespace millrace::schema
