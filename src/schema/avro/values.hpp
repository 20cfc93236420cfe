/// Single values of Avro's logical types from text. Pure; allocates nothing.
#pragma once

#include "json/decimal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::schema {

inline constexpr std::int64_t day_seconds = 86'400;

/// `2026-11-30` as days since 1970-01-01.
[[nodiscard]] std::optional<std::int64_t> read_date(std::string_view text) noexcept;

/// `10:15`, `10:15:30`, `10:15:30.123` as parts of a second since midnight, `parts` in a second. Nothing when
/// the text is finer than a part.
[[nodiscard]] std::optional<std::int64_t> read_time(std::string_view text, std::int64_t parts) noexcept;

enum class zone : std::uint8_t { required, absent };

/// Date and time joined by `T` or a blank; with a zone it ends in `Z`, `+01:00` or `+01`. Parts of a second
/// since 1970-01-01T00:00.
[[nodiscard]] std::optional<std::int64_t> read_timestamp(
    std::string_view text, std::int64_t parts, zone zones
) noexcept;

/// Five groups of hexadecimal digits.
[[nodiscard]] bool is_uuid(std::string_view text) noexcept;

/// Digits that a decimal may have.
inline constexpr unsigned decimal_digits_max = 1024;

/// Bytes of a fixed that holds a decimal: twice what the digits need.
inline constexpr std::uint32_t decimal_fixed_bytes_max = 1024;

/// Appends `value` x 10^`scale`, which is whole and has at most `decimal_digits_max` digits, as two's
/// complement, big-endian: in `size` bytes, or with 0 in as few as hold it, as Java does. `size` must hold
/// it.
void append_unscaled(std::string& out, const decimal& value, unsigned scale, std::size_t size);

}  // namespace millrace::schema
