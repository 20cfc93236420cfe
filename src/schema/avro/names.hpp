/// The grammar of Avro's names. Pure.
#pragma once

#include "avro/plan.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace millrace::schema {

/// A letter or `_`, then letters, digits or `_`.
[[nodiscard]] bool is_avro_name(std::string_view name) noexcept;

/// Names joined by dots.
[[nodiscard]] bool is_avro_full_name(std::string_view name) noexcept;

/// `null` to `string`.
[[nodiscard]] std::optional<avro_kind> primitive_of(std::string_view name) noexcept;

/// `name` itself when it has a dot or there is no namespace.
[[nodiscard]] std::string full_name(std::string_view name, std::string_view space);

/// What stands before the last dot.
[[nodiscard]] std::string_view namespace_of(std::string_view full_name) noexcept;

}  // namespace millrace::schema
