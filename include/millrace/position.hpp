/// Where a record stands in its shard.
///
/// Positions are small values without heap memory; comparing two costs a few instructions.
#pragma once

#include <millrace/error.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

/// A decimal integer of up to 129 digits (the limit of the Kinesis API), compared as a number, never as text.
class sequence_number {
public:
    static constexpr std::size_t digits_max = 129;

    /// Zero.
    constexpr sequence_number() = default;
    constexpr explicit sequence_number(std::uint64_t value) { words_.back() = value; }

    /// Reads `0` or a decimal without sign, leading zeros allowed. `invalid_argument` for anything else.
    [[nodiscard]] static result<sequence_number> parse(std::string_view decimal);

    [[nodiscard]] std::string to_string() const;

    /// The value where it fits 64 bits, as in the local stream; the low bits otherwise.
    [[nodiscard]] constexpr std::uint64_t low64() const noexcept { return words_.back(); }

    constexpr auto operator<=>(const sequence_number&) const = default;

private:
    std::array<std::uint64_t, 7> words_{};  // most significant first, so that comparison is lexicographic
};

/// Sequence number and, inside a KPL aggregate, the index of the sub-record.
struct position {
    sequence_number sequence;
    std::uint64_t sub_sequence{0};

    constexpr auto operator<=>(const position&) const = default;
};

}  // namespace millrace
