#include "record/hash_key.hpp"

#include "assert.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace millrace {

namespace {

__extension__ using wide = unsigned __int128;

constexpr wide widen(const hash_key& key) {
    return (static_cast<wide>(key.high) << 64U) | key.low;
}

constexpr hash_key narrow(wide value) {
    return {static_cast<std::uint64_t>(value >> 64U), static_cast<std::uint64_t>(value)};
}

constexpr wide ring_end = ~wide{0};

}  // namespace

hash_key hash_key::from_digest(std::span<const unsigned char, bytes> digest) noexcept {
    wide value = 0;
    for (const auto byte : digest)
        value = (value << 8U) | byte;
    return narrow(value);
}

result<hash_key> hash_key::parse(std::string_view decimal) {
    const auto bad = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "hash \"{}\" {}; expected a decimal integer from 0 to 2^128 - 1 = {}",
                decimal.substr(0, 60),
                why,
                hash_key::largest().to_string()
            )
        );
    };
    if (decimal.empty()) return bad("is empty");
    if (!std::ranges::all_of(decimal, [](char c) { return c >= '0' && c <= '9'; }))
        return bad("is not decimal");
    wide value = 0;
    for (const char c : decimal) {
        const auto digit = static_cast<unsigned>(c - '0');
        if (value > (ring_end - digit) / 10) return bad("is too large");
        value = value * 10 + digit;
    }
    return narrow(value);
}

std::string hash_key::to_string() const {
    auto value = widen(*this);
    std::string reversed;
    do {
        reversed.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value > 0);
    return {reversed.rbegin(), reversed.rend()};
}

std::vector<hash_range> split_evenly(std::uint32_t count) {
    MILLRACE_ASSERT(count >= 1);
    if (count == 1) return {hash_range{}};
    const wide rest = ring_end % count;
    const wide width = ring_end / count + (rest + 1 == count ? 1 : 0);  // floor(2^128 / count)
    std::vector<hash_range> ranges;
    ranges.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const wide from = width * i;
        ranges.push_back({narrow(from), i + 1 == count ? hash_key::largest() : narrow(from + width - 1)});
    }
    return ranges;
}

result<std::pair<hash_range, hash_range>> split_at(const hash_range& whole, const hash_key& at) {
    if (at <= whole.from || at > whole.to) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "hash {} does not split the range {} to {}; the second half must begin above the first and "
                "not above the last of these hashes",
                at.to_string(),
                whole.from.to_string(),
                whole.to.to_string()
            )
        );
    }
    return std::pair{hash_range{whole.from, narrow(widen(at) - 1)}, hash_range{at, whole.to}};
}

result<std::pair<hash_range, hash_range>> split_in_middle(const hash_range& whole) {
    const wide from = widen(whole.from);
    const wide span = widen(whole.to) - from;
    return split_at(whole, narrow(from + span / 2 + span % 2));
}

result<hash_range> join(const hash_range& one, const hash_range& other) {
    const auto& lower = std::min(one, other);
    const auto& upper = std::max(one, other);
    if (lower.to == hash_key::largest() || narrow(widen(lower.to) + 1) != upper.from) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "the ranges {} to {} and {} to {} are not adjacent; one must begin right after the other "
                "ends",
                lower.from.to_string(),
                lower.to.to_string(),
                upper.from.to_string(),
                upper.to.to_string()
            )
        );
    }
    return hash_range{lower.from, upper.to};
}

}  // namespace millrace
