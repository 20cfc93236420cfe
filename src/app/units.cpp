#include "units.hpp"

#include "text/moment.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace millrace::app {

namespace {

struct unit {
    std::string_view name;
    std::uint64_t size;
};

// Longer names stand before names that they begin with.
constexpr std::array duration_units{
    unit{"ns", 1},
    unit{"us", 1'000},
    unit{"ms", 1'000'000},
    unit{"s", 1'000'000'000},
    unit{"m", 60'000'000'000},
    unit{"h", 3'600'000'000'000},
    unit{"d", 86'400'000'000'000},
};
constexpr std::array byte_units{
    unit{"KiB", 1024},
    unit{"MiB", 1024 * 1024},
    unit{"GiB", 1024 * 1024 * 1024},
    unit{"kB", 1000},
    unit{"MB", 1000 * 1000},
    unit{"GB", 1000 * 1000 * 1000},
    unit{"B", 1},
};

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

struct decimal {
    std::uint64_t whole{0};
    std::uint64_t fraction{0};  ///< In units of 1e-9.
};

enum class fault : std::uint8_t { syntax, overflow };

/// Takes `12` or `1.25` from the front of `text`.
tl::expected<decimal, fault> take_decimal(std::string_view& text) {
    decimal out;
    if (text.empty() || !is_digit(text.front())) return tl::unexpected(fault::syntax);
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out.whole);
    if (ec != std::errc{}) return tl::unexpected(fault::overflow);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty() || text.front() != '.') return out;
    text.remove_prefix(1);
    if (text.empty() || !is_digit(text.front())) return tl::unexpected(fault::syntax);
    for (std::uint64_t scale = 100'000'000; !text.empty() && is_digit(text.front()); scale /= 10) {
        out.fraction += scale * static_cast<std::uint64_t>(text.front() - '0');
        text.remove_prefix(1);
    }
    return out;
}

std::optional<std::uint64_t> scaled(const decimal& value, std::uint64_t size) {
    std::uint64_t whole = 0;
    if (__builtin_mul_overflow(value.whole, size, &whole)) return std::nullopt;
    // Below 1e9 * 8.64e13, which does not fit; so the unit is split.
    const std::uint64_t part =
        value.fraction * (size / 1'000'000'000) + value.fraction * (size % 1'000'000'000) / 1'000'000'000;
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(whole, part, &sum)) return std::nullopt;
    return sum;
}

/// Sums numbers with units until the text ends.
template <std::size_t N>
tl::expected<std::uint64_t, fault> sum_units(std::string_view text, const std::array<unit, N>& units) {
    std::uint64_t total = 0;
    if (text.empty()) return tl::unexpected(fault::syntax);
    while (!text.empty()) {
        const auto number = take_decimal(text);
        if (!number) return tl::unexpected(number.error());
        const unit* found = nullptr;
        for (const unit& u : units) {
            if (text.substr(0, u.name.size()) == u.name) {
                found = &u;
                break;
            }
        }
        if (found == nullptr) return tl::unexpected(fault::syntax);
        text.remove_prefix(found->name.size());
        const auto part = scaled(*number, found->size);
        if (!part || __builtin_add_overflow(total, *part, &total)) return tl::unexpected(fault::overflow);
    }
    return total;
}

tl::unexpected<error> wrong(std::string_view text, std::string_view what) {
    return fail(errc::invalid_argument, fmt::format("{} {}", in_quotes(text), what));
}

bool negative(std::string_view text) {
    return text.size() > 1 && text[0] == '-' && is_digit(text[1]);
}

bool plain_number(std::string_view text) {
    const auto number = take_decimal(text);
    return number && text.empty();
}

}  // namespace

result<nanoseconds> parse_duration(std::string_view text) {
    if (negative(text)) return wrong(text, "is negative");
    if (text != "0" && plain_number(text)) {
        return wrong(text, fmt::format("has no unit; write {}s for seconds", text));
    }
    const auto total = text == "0" ? 0 : sum_units(text, duration_units);
    if (total && *total <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return nanoseconds{static_cast<std::int64_t>(*total)};
    }
    if (total || total.error() == fault::overflow) return wrong(text, "is too large");
    return wrong(text, "is not a duration; write a number and a unit (ns, us, ms, s, m, h, d), such as 30s");
}

result<nanoseconds> parse_seconds(std::string_view text) {
    if (!plain_number(text)) return parse_duration(text);
    return parse_duration(std::string{text} + "s").map_error([&](error e) {
        e.detail = fmt::format("{} is too large", in_quotes(text));
        return e;
    });
}

result<std::uint64_t> parse_bytes(std::string_view text) {
    if (negative(text)) return wrong(text, "is negative");
    if (text != "0" && plain_number(text)) {
        return wrong(text, fmt::format("has no unit; write {}B for bytes", text));
    }
    const auto total = text == "0" ? 0 : sum_units(text, byte_units);
    if (total) return *total;
    if (total.error() == fault::overflow) return wrong(text, "is too large");
    return wrong(
        text, "is not a size; write a number and a unit (B, KiB, MiB, GiB, kB, MB, GB), such as 16MiB"
    );
}

result<std::uint64_t> parse_count(std::string_view text) {
    if (negative(text)) return wrong(text, "is negative");
    std::uint64_t value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec == std::errc::result_out_of_range) return wrong(text, "is too large");
    if (ec != std::errc{} || end != text.data() + text.size()) return wrong(text, "is not a whole number");
    return value;
}

result<double> parse_share(std::string_view text) {
    if (negative(text)) return wrong(text, "is negative");
    std::string_view rest = text;
    const auto number = take_decimal(rest);
    if (!number || !rest.empty()) return wrong(text, "is not a number from 0 to 1, such as 0.1");
    const double value = static_cast<double>(number->whole) + static_cast<double>(number->fraction) * 1e-9;
    if (value > 1) return wrong(text, "is above 1");
    return value;
}

result<wall_time> parse_time(std::string_view text) {
    if (const auto moment = read_moment(text)) return *moment;
    return wrong(text, "is not a time in RFC 3339 form, such as 2026-01-31T12:00:00Z");
}

std::string format_duration(nanoseconds value) {
    const std::int64_t n = value.count();
    if (n == 0) return "0s";
    for (auto u = duration_units.rbegin(); u != duration_units.rend(); ++u) {
        const auto size = static_cast<std::int64_t>(u->size);
        if (n % size == 0) return fmt::format("{}{}", n / size, u->name);
    }
    return fmt::format("{}ns", n);
}

std::string counted(std::uint64_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string format_bytes(std::uint64_t value) {
    for (const std::size_t i : {2U, 1U, 0U}) {
        if (value != 0 && value % byte_units[i].size == 0) {
            return fmt::format("{}{}", value / byte_units[i].size, byte_units[i].name);
        }
    }
    return fmt::format("{}B", value);
}

std::string format_time(wall_time moment) {
    const auto day = std::chrono::floor<std::chrono::days>(moment);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{moment - day};
    return fmt::format(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        time.hours().count(),
        time.minutes().count(),
        time.seconds().count(),
        time.subseconds().count()
    );
}

std::string format_span(nanoseconds span) {
    const double seconds = std::chrono::duration<double>(span).count();
    const auto whole = static_cast<std::int64_t>(seconds);
    if (seconds < 10) return fmt::format("{:.1f}s", seconds < 0 ? 0 : seconds);
    if (whole < 60) return fmt::format("{}s", whole);
    if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
    if (whole < 86'400) return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
    return fmt::format("{}d", whole / 86'400);
}

std::string in_quotes(std::string_view text) {
    constexpr std::size_t most = 64;
    std::string out = "\"";
    std::size_t end = text.size();
    if (end > most) {
        for (end = most; end > most - 4 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U;)
            --end;
    }
    for (const char c : text.substr(0, end)) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7F ? '?' : c;
    }
    return out + (text.size() > end ? "...\"" : "\"");
}

}  // namespace millrace::app
