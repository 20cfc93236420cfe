#include "avro/values.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace millrace::schema {

namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Exactly `n` digits from the front; -1 when there are fewer.
int take_digits(std::string_view& text, std::size_t n) {
    int value = 0;
    if (text.size() < n) return -1;
    for (std::size_t i = 0; i < n; ++i) {
        if (!is_digit(text[i])) return -1;
        value = value * 10 + (text[i] - '0');
    }
    text.remove_prefix(n);
    return value;
}

bool take(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

std::optional<std::int64_t> take_date(std::string_view& text) {
    const int year = take_digits(text, 4);
    if (year < 0 || !take(text, '-')) return std::nullopt;
    const int month = take_digits(text, 2);
    if (month < 0 || !take(text, '-')) return std::nullopt;
    const int day = take_digits(text, 2);
    if (day < 0) return std::nullopt;
    const std::chrono::year_month_day date{
        std::chrono::year{year},
        std::chrono::month{static_cast<unsigned>(month)},
        std::chrono::day{static_cast<unsigned>(day)}};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days{date}.time_since_epoch().count();
}

/// The digits behind the point, in parts of a second.
std::optional<std::int64_t> take_fraction(std::string_view& text, std::int64_t parts) {
    if (!take(text, '.')) return 0;
    if (text.empty() || !is_digit(text.front())) return std::nullopt;
    std::int64_t value = 0;
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
        const int digit = text.front() - '0';
        parts /= 10;
        if (parts == 0 && digit != 0) return std::nullopt;
        value += digit * parts;
    }
    return value;
}

std::optional<std::int64_t> take_time(std::string_view& text, std::int64_t parts) {
    const int hour = take_digits(text, 2);
    if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
    const int minute = take_digits(text, 2);
    if (minute < 0 || minute > 59) return std::nullopt;
    int second = 0;
    std::optional<std::int64_t> fraction = 0;
    if (take(text, ':')) {
        second = take_digits(text, 2);
        if (second < 0 || second > 59) return std::nullopt;
        fraction = take_fraction(text, parts);
        if (!fraction) return std::nullopt;
    }
    return (hour * 3600 + minute * 60 + second) * parts + *fraction;
}

/// Seconds east of UTC.
std::optional<std::int64_t> take_zone(std::string_view& text) {
    if (take(text, 'Z') || take(text, 'z')) return 0;
    const bool west = text.starts_with('-');
    if (!west && !text.starts_with('+')) return std::nullopt;
    text.remove_prefix(1);
    const int hours = take_digits(text, 2);
    if (hours < 0 || hours > 23) return std::nullopt;
    const int minutes = take(text, ':') ? take_digits(text, 2) : 0;
    if (minutes < 0 || minutes > 59) return std::nullopt;
    const std::int64_t offset = hours * 3600 + minutes * 60;
    return west ? -offset : offset;
}

/// An unsigned number of any size, in limbs of 32 bits, the lowest first.
class big_number {
public:
    void times_ten_plus(unsigned digit) {
        std::uint64_t carry = digit;
        for (std::size_t i = 0; i < used_; ++i) {
            carry += std::uint64_t{limbs_[i]} * 10;
            limbs_[i] = static_cast<std::uint32_t>(carry);
            carry >>= 32U;
        }
        if (carry != 0) limbs_[used_++] = static_cast<std::uint32_t>(carry);
    }

    void negate() {
        std::uint64_t carry = 1;
        for (std::size_t i = 0; i <= used_; ++i) {
            carry += static_cast<std::uint32_t>(~limbs_[i]);
            limbs_[i] = static_cast<std::uint32_t>(carry);
            carry >>= 32U;
        }
    }

    [[nodiscard]] std::uint8_t byte(std::size_t i) const {
        return static_cast<std::uint8_t>(limbs_[i / 4] >> (i % 4 * 8));
    }

    /// Bytes that hold it with its sign.
    [[nodiscard]] std::size_t bytes(bool negative) const {
        const std::uint8_t filler = negative ? 0xFF : 0;
        std::size_t n = used_ * 4 + 1;
        while (n > 1 && byte(n - 1) == filler && (byte(n - 2) >> 7U) == (filler >> 7U))
            --n;
        return n;
    }

private:
    // 10^1024 fills 107 limbs; one more holds the sign.
    std::array<std::uint32_t, 108> limbs_{};
    std::size_t used_{0};
};

}  // namespace

std::optional<std::int64_t> read_date(std::string_view text) noexcept {
    const auto date = take_date(text);
    return text.empty() ? date : std::nullopt;
}

std::optional<std::int64_t> read_time(std::string_view text, std::int64_t parts) noexcept {
    const auto time = take_time(text, parts);
    return text.empty() ? time : std::nullopt;
}

std::optional<std::int64_t> read_timestamp(std::string_view text, std::int64_t parts, zone zones) noexcept {
    const auto date = take_date(text);
    if (!date || !(take(text, 'T') || take(text, 't') || take(text, ' '))) return std::nullopt;
    const auto time = take_time(text, parts);
    if (!time) return std::nullopt;
    std::optional<std::int64_t> offset = 0;
    if (zones == zone::required) offset = take_zone(text);
    if (!offset || !text.empty()) return std::nullopt;
    return (*date * day_seconds - *offset) * parts + *time;
}

bool is_uuid(std::string_view text) noexcept {
    constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (text.size() != shape.size()) return false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const char c = text[i];
        const bool hex = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (shape[i] == 'x' ? !hex : c != '-') return false;
    }
    return true;
}

void append_unscaled(std::string& out, const decimal& value, unsigned scale, std::size_t size) {
    big_number number;
    for (std::size_t i = 0; i < value.digits(); ++i)
        number.times_ten_plus(value.digit(i));
    if (!value.zero()) {
        for (std::int64_t i = value.exponent() + scale; i > 0; --i)
            number.times_ten_plus(0);
    }
    if (value.negative()) number.negate();
    const std::size_t needed = number.bytes(value.negative());
    if (size > needed) out.append(size - needed, value.negative() ? '\xFF' : '\0');
    for (std::size_t i = needed; i > 0; --i)
        out += static_cast<char>(number.byte(i - 1));
}

}  // namespace millrace::schema
