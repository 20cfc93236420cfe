#include "text/moment.hpp"

#include <chrono>

namespace millrace {

namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Exactly `n` digits from the front.
std::optional<int> take_digits(std::string_view& text, std::size_t n) {
    int value = 0;
    if (text.size() < n) return std::nullopt;
    for (std::size_t i = 0; i < n; ++i) {
        if (!is_digit(text[i])) return std::nullopt;
        value = value * 10 + (text[i] - '0');
    }
    text.remove_prefix(n);
    return value;
}

bool take(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

std::optional<milliseconds> take_fraction(std::string_view& text) {
    if (!take(text, '.')) return milliseconds{0};
    int value = 0;
    int digits = 0;
    for (; !text.empty() && is_digit(text.front()); ++digits, text.remove_prefix(1)) {
        if (digits < 3) value = value * 10 + (text.front() - '0');
    }
    if (digits == 0) return std::nullopt;
    for (; digits < 3; ++digits)
        value *= 10;
    return milliseconds{value};
}

std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
    if (take(text, 'Z') || take(text, 'z')) return std::chrono::minutes{0};
    const bool minus = !text.empty() && text.front() == '-';
    if (!minus && (text.empty() || text.front() != '+')) return std::nullopt;
    text.remove_prefix(1);
    const auto hours = take_digits(text, 2);
    if (!hours || !take(text, ':')) return std::nullopt;
    const auto minutes = take_digits(text, 2);
    if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    const std::chrono::minutes offset{*hours * 60 + *minutes};
    return minus ? -offset : offset;
}

}  // namespace

std::optional<wall_time> read_moment(std::string_view text) {
    const auto year = take_digits(text, 4);
    if (!year || !take(text, '-')) return std::nullopt;
    const auto month = take_digits(text, 2);
    if (!month || !take(text, '-')) return std::nullopt;
    const auto day = take_digits(text, 2);
    if (!day || !(take(text, 'T') || take(text, 't') || take(text, ' '))) return std::nullopt;
    const auto hour = take_digits(text, 2);
    if (!hour || !take(text, ':')) return std::nullopt;
    const auto minute = take_digits(text, 2);
    if (!minute || !take(text, ':')) return std::nullopt;
    const auto second = take_digits(text, 2);
    if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    const auto fraction = take_fraction(text);
    if (!fraction) return std::nullopt;
    const auto offset = take_offset(text);
    if (!offset || !text.empty()) return std::nullopt;
    const std::chrono::year_month_day date{
        std::chrono::year{*year},
        std::chrono::month{static_cast<unsigned>(*month)},
        std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok()) return std::nullopt;
    const auto moment = wall_time{std::chrono::sys_days{date}} + std::chrono::hours{*hour} +
                        std::chrono::minutes{*minute} + std::chrono::seconds{*second} + *fraction - *offset;
    // In UTC it must have four digits of year, too.
    constexpr std::chrono::sys_days first{std::chrono::year{0} / 1 / 1};
    constexpr std::chrono::sys_days end{std::chrono::year{10'000} / 1 / 1};
    if (moment < first || moment >= end) return std::nullopt;
    return moment;
}

}  // namespace millrace
