/// The little of URIs that `$ref` and `$id` need. Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace::schema {

/// `reference` as it is meant within the document `base` (RFC 3986, 5.2, without query strings).
[[nodiscard]] std::string resolve_uri(std::string_view base, std::string_view reference);

/// What stands before `#`.
[[nodiscard]] std::string_view without_fragment(std::string_view uri) noexcept;

/// What stands behind `#`, or nothing.
[[nodiscard]] std::string_view fragment_of(std::string_view uri) noexcept;

/// `%41` as `A`; what is no such escape stays.
[[nodiscard]] std::string percent_decoded(std::string_view text);

/// A step of a JSON pointer: `~1` as `/`, `~0` as `~`.
[[nodiscard]] std::string pointer_step(std::string_view step);

}  // namespace millrace::schema
