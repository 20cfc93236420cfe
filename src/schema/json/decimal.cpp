#include "json/decimal.hpp"

#include <algorithm>

namespace millrace::schema {

namespace {

__extension__ using wide = unsigned __int128;

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
    std::size_t n = 0;
    while (n < text.size() && is_digit(text[n]))
        ++n;
    const auto digits = text.substr(0, n);
    text.remove_prefix(n);
    return digits;
}

std::optional<std::int64_t> read_exponent(std::string_view text) {
    const bool minus = text.starts_with('-');
    if (minus || text.starts_with('+')) text.remove_prefix(1);
    constexpr std::size_t digits_max = 9;
    if (text.empty() || text.size() > digits_max) return std::nullopt;
    std::int64_t value = 0;
    for (const char c : text) {
        if (!is_digit(c)) return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return minus ? -value : value;
}

void strip_front(std::string_view& digits) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
}

std::size_t strip_back(std::string_view& digits) {
    const auto last = digits.find_last_not_of('0');
    const std::size_t kept = last == std::string_view::npos ? 0 : last + 1;
    const std::size_t gone = digits.size() - kept;
    digits = digits.substr(0, kept);
    return gone;
}

/// 10^n modulo m.
std::uint64_t power_of_ten(std::uint64_t n, std::uint64_t m) {
    wide result = 1 % m;
    wide base = 10 % m;
    for (; n != 0; n >>= 1U) {
        if ((n & 1U) != 0) result = result * base % m;
        base = base * base % m;
    }
    return static_cast<std::uint64_t>(result);
}

}  // namespace

std::optional<decimal> decimal::read(std::string_view text) noexcept {
    decimal d;
    d.negative_ = text.starts_with('-');
    if (d.negative_ || text.starts_with('+')) text.remove_prefix(1);
    d.head_ = take_digits(text);
    if (d.head_.empty()) return std::nullopt;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        d.tail_ = take_digits(text);
        if (d.tail_.empty()) return std::nullopt;
    }
    if (!text.empty()) {
        if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
        const auto exponent = read_exponent(text.substr(1));
        if (!exponent) return std::nullopt;
        d.exponent_ = *exponent;
    }
    strip_front(d.head_);
    strip_back(d.tail_);
    d.exponent_ -= static_cast<std::int64_t>(d.tail_.size());
    if (d.head_.empty()) strip_front(d.tail_);
    if (d.tail_.empty()) d.exponent_ += static_cast<std::int64_t>(strip_back(d.head_));
    if (d.zero()) d = {};
    return d;
}

std::optional<std::int64_t> decimal::to_int64() const noexcept {
    if (zero()) return 0;
    constexpr std::int64_t digits_max = 19;
    if (exponent_ < 0 || static_cast<std::int64_t>(digits()) + exponent_ > digits_max) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < digits(); ++i)
        value = value * 10 + digit(i);
    for (std::int64_t i = 0; i < exponent_; ++i)
        value *= 10;
    constexpr std::uint64_t limit = std::uint64_t{1} << 63U;
    if (negative_) {
        if (value > limit) return std::nullopt;
        return static_cast<std::int64_t>(~value + 1);
    }
    if (value >= limit) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

bool decimal::multiple_of(const decimal& divisor) const noexcept {
    if (zero()) return true;
    // Neither has a zero at its end, so a divisor with the larger exponent cannot divide without a rest.
    const std::int64_t shift = exponent_ - divisor.exponent_;
    if (shift < 0) return false;
    std::uint64_t m = 0;
    for (std::size_t i = 0; i < divisor.digits(); ++i)
        m = m * 10 + divisor.digit(i);
    if (m == 0) return false;
    wide rest = 0;
    for (std::size_t i = 0; i < digits(); ++i)
        rest = (rest * 10 + digit(i)) % m;
    return rest * power_of_ten(static_cast<std::uint64_t>(shift), m) % m == 0;
}

std::strong_ordering decimal::operator<=>(const decimal& other) const noexcept {
    if (zero() || other.zero() || negative_ != other.negative_) {
        const auto sign = [](const decimal& d) { return d.zero() ? 0 : d.negative_ ? -1 : 1; };
        return sign(*this) <=> sign(other);
    }
    const auto flip = [this](std::strong_ordering order) { return negative_ ? 0 <=> order : order; };
    const auto places = [](const decimal& d) { return static_cast<std::int64_t>(d.digits()) + d.exponent_; };
    if (places(*this) != places(other)) return flip(places(*this) <=> places(other));
    const std::size_t common = std::min(digits(), other.digits());
    for (std::size_t i = 0; i < common; ++i) {
        if (digit(i) != other.digit(i)) return flip(digit(i) <=> other.digit(i));
    }
    return flip(digits() <=> other.digits());
}

}  // namespace millrace::schema
