/// Moments as text. Pure.
#pragma once

#include <millrace/time.hpp>

#include <optional>
#include <string_view>

namespace millrace {

/// RFC 3339, in the years 0 to 9999 of UTC: `2026-11-30T10:15:00Z`, `2026-11-30T10:15:00.250+01:00`. What is
/// finer than a millisecond is cut.
[[nodiscard]] std::optional<wall_time> read_moment(std::string_view text);

}  // namespace millrace
