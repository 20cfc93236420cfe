/// Reads and shows the values that people write: durations, sizes, counts, shares, moments.
///
/// Pure functions. An error is a half sentence that fits behind the name of the option: `"5x" is not a
/// duration; write a number and a unit (ns, us, ms, s, m, h, d), such as 30s`.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::app {

/// `30s`, `1.5s`, `1m30s`; units ns us ms s m h d. At most about 292 years.
[[nodiscard]] result<nanoseconds> parse_duration(std::string_view text);

/// As `parse_duration`, but a number without a unit is seconds.
[[nodiscard]] result<nanoseconds> parse_seconds(std::string_view text);

/// `16MiB`, `512B`, `1.5MB`; units B KiB MiB GiB kB MB GB.
[[nodiscard]] result<std::uint64_t> parse_bytes(std::string_view text);

/// A whole number without sign.
[[nodiscard]] result<std::uint64_t> parse_count(std::string_view text);

/// A number from 0 to 1, such as 0.1.
[[nodiscard]] result<double> parse_share(std::string_view text);

/// RFC 3339: `2026-11-30T10:15:00Z`, `2026-11-30T10:15:00.250+01:00`. What is finer than a millisecond is
/// cut.
[[nodiscard]] result<wall_time> parse_time(std::string_view text);

/// The largest unit that shows the value exactly: `90s`, `1500ms`, `2h`.
[[nodiscard]] std::string format_duration(nanoseconds value);

/// `1 shard`, `2 shards`.
[[nodiscard]] std::string counted(std::uint64_t n, std::string_view what);

/// The largest binary unit that shows the value exactly: `16MiB`, `1000B`.
[[nodiscard]] std::string format_bytes(std::uint64_t value);

/// RFC 3339 in UTC with milliseconds: `2026-11-30T10:15:00.250Z`.
[[nodiscard]] std::string format_time(wall_time moment);

/// Seconds for people: `0.3s`, `12s`, `4m10s`, `3h20m`, `5d`.
[[nodiscard]] std::string format_span(nanoseconds span);

/// `text` in double quotes, cut at 64 bytes, control characters replaced: fit for a message.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace millrace::app
