/// Points and ranges of the ring of 128-bit hashes by which keys are spread over shards.
///
/// How a key becomes a point (MD5 in Kinesis and in the local stream) is left to the adapters. Plain values.
#pragma once

#include <millrace/error.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

/// An unsigned number of 128 bits.
struct hash_key {
    std::uint64_t high{0};
    std::uint64_t low{0};

    static constexpr std::size_t bytes = 16;

    /// 2^128 - 1 = 340282366920938463463374607431768211455.
    [[nodiscard]] static constexpr hash_key largest() noexcept {
        return {~std::uint64_t{0}, ~std::uint64_t{0}};
    }

    /// Reads a digest as a big-endian number.
    [[nodiscard]] static hash_key from_digest(std::span<const unsigned char, bytes> digest) noexcept;

    /// Reads a decimal without sign, leading zeros allowed. `invalid_argument` for anything else.
    [[nodiscard]] static result<hash_key> parse(std::string_view decimal);

    [[nodiscard]] std::string to_string() const;

    constexpr auto operator<=>(const hash_key&) const = default;
};

/// Inclusive at both ends.
struct hash_range {
    hash_key from;
    hash_key to{hash_key::largest()};

    [[nodiscard]] constexpr bool contains(const hash_key& point) const noexcept {
        return from <= point && point <= to;
    }

    constexpr auto operator<=>(const hash_range&) const = default;
};

/// The whole ring in `count` neighbouring ranges, in order: each floor(2^128 / count) points wide, and the
/// last one longer by the rest, as Kinesis does it. `count` is at least 1.
[[nodiscard]] std::vector<hash_range> split_evenly(std::uint32_t count);

/// Two ranges, the second of which begins at `at`. `invalid_argument` unless `from < at <= to`.
[[nodiscard]] result<std::pair<hash_range, hash_range>> split_at(const hash_range& whole, const hash_key& at);

/// Halves a range; the second half begins at the upper middle. `invalid_argument` when it is a single point.
[[nodiscard]] result<std::pair<hash_range, hash_range>> split_in_middle(const hash_range& whole);

/// The range that covers both; `invalid_argument` unless one begins right after the other ends.
[[nodiscard]] result<hash_range> join(const hash_range& one, const hash_range& other);

}  // namespace millrace
