/// The limits of a duration among the options.
///
/// Whoever means "never" writes the longest there is, which overflows a clock as soon as it is added to now.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace millrace {

enum class zero_span : std::uint8_t { refused, allowed };

/// `invalid_config` unless it is above zero, or zero where that is allowed, and at most a year.
[[nodiscard]] inline result<void> check_span(
    std::string_view option, nanoseconds value, zero_span zero = zero_span::refused
) {
    constexpr nanoseconds longest = std::chrono::hours{24 * 365};
    const bool too_short =
        zero == zero_span::allowed ? value < nanoseconds::zero() : value <= nanoseconds::zero();
    if (!too_short && value <= longest) return {};
    return fail(
        errc::invalid_config,
        fmt::format(
            "{} is {} s; it must {}",
            option,
            std::chrono::duration<double>(value).count(),
            !too_short                   ? "be at most 365 days"
            : zero == zero_span::allowed ? "not be below 0"
                                         : "be above 0"
        )
    );
}

}  // namespace millrace
