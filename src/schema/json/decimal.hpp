/// Decimal numbers as they are written, without losing a digit. Pure; allocates nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace millrace::schema {

/// `digits` x 10^`exponent`, without leading and trailing zeros; zero has no digits. Refers to the text it
/// was read from.
class decimal {
public:
    /// The grammar of a JSON number; beyond it a leading `+` and leading zeros. Nothing for any other text,
    /// and for an exponent of more than nine digits.
    [[nodiscard]] static std::optional<decimal> read(std::string_view text) noexcept;

    [[nodiscard]] bool negative() const noexcept { return negative_; }
    [[nodiscard]] bool zero() const noexcept { return digits() == 0; }
    [[nodiscard]] std::size_t digits() const noexcept { return head_.size() + tail_.size(); }
    [[nodiscard]] unsigned digit(std::size_t i) const noexcept {
        const char c = i < head_.size() ? head_[i] : tail_[i - head_.size()];
        return static_cast<unsigned>(c - '0');
    }
    [[nodiscard]] std::int64_t exponent() const noexcept { return exponent_; }

    [[nodiscard]] bool integral() const noexcept { return exponent_ >= 0 || zero(); }

    /// The value as a whole number, where it is one and fits.
    [[nodiscard]] std::optional<std::int64_t> to_int64() const noexcept;

    /// Whether it is a whole multiple of `divisor`, which is above zero and has at most 18 digits.
    [[nodiscard]] bool multiple_of(const decimal& divisor) const noexcept;

    /// Compares the values: 1.0 and 1 are equal.
    [[nodiscard]] std::strong_ordering operator<=>(const decimal& other) const noexcept;
    [[nodiscard]] bool operator==(const decimal& other) const noexcept { return *this <=> other == 0; }

private:
    bool negative_{false};
    std::string_view head_;  ///< The digits before the point,
    std::string_view tail_;  ///< and behind it.
    std::int64_t exponent_{0};
};

}  // namespace millrace::schema
