/// Equality of JSON values: numbers by value (1 and 1.0 are one), members in any order. Pure.
#pragma once

#include "json/document.hpp"

#include <cstdint>

namespace millrace::schema {

[[nodiscard]] bool same_value(
    const json_document& a, json_document::index in_a, const json_document& b, json_document::index in_b
);

/// Equal values have equal hashes.
[[nodiscard]] std::uint64_t hash_value(const json_document& document, json_document::index token);

}  // namespace millrace::schema
