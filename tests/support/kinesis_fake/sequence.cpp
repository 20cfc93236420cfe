#include "support/kinesis_fake/sequence.hpp"

#include <array>
#include <cstddef>

namespace millrace::kinesis_fake {

namespace {

constexpr std::size_t words = 6;

/// 192 bits, the lowest word first.
using wide = std::array<std::uint32_t, words>;

constexpr std::uint32_t version = 2;

/// Fields from the lowest bit on: version 4, shard 32, second 36, unused 8, index 64, shard 4, born 36,
/// mark 4.
struct field {
    unsigned from;
    unsigned bits;
};
constexpr field version_field{0, 4};
constexpr field shard_field{4, 32};
constexpr field second_field{36, 36};
constexpr field unused_field{72, 8};
constexpr field index_field{80, 64};
constexpr field shard_mark_field{144, 4};
constexpr field born_field{148, 36};
constexpr field mark_field{184, 4};
constexpr unsigned bits_used = 188;

void set(wide& number, field where, std::uint64_t value) {
    for (unsigned i = 0; i < where.bits; ++i) {
        const unsigned bit = where.from + i;
        if (((value >> i) & 1U) != 0) number[bit / 32] |= std::uint32_t{1} << (bit % 32);
    }
}

std::uint64_t get(const wide& number, field where) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < where.bits; ++i) {
        const unsigned bit = where.from + i;
        if (((number[bit / 32] >> (bit % 32)) & 1U) != 0) value |= std::uint64_t{1} << i;
    }
    return value;
}

/// Divides by ten and returns the rest.
std::uint32_t next_digit(wide& number) {
    std::uint64_t rest = 0;
    for (std::size_t i = words; i-- > 0;) {
        const std::uint64_t part = (rest << 32U) | number[i];
        number[i] = static_cast<std::uint32_t>(part / 10);
        rest = part % 10;
    }
    return static_cast<std::uint32_t>(rest);
}

/// Multiplies by ten and adds; false when it grows out of the words.
bool add_digit(wide& number, std::uint32_t digit) {
    std::uint64_t carry = digit;
    for (auto& word : number) {
        const std::uint64_t part = std::uint64_t{word} * 10 + carry;
        word = static_cast<std::uint32_t>(part);
        carry = part >> 32U;
    }
    return carry == 0;
}

}  // namespace

std::string to_sequence(const sequence_parts& parts) {
    wide number{};
    set(number, version_field, version);
    set(number, shard_field, parts.shard);
    set(number, second_field, parts.second);
    set(number, index_field, parts.index);
    set(number, shard_mark_field, parts.shard & 0xfU);
    set(number, born_field, parts.shard_born);
    set(number, mark_field, version);
    std::string text;
    while (number != wide{})
        text.insert(text.begin(), static_cast<char>('0' + next_digit(number)));
    return text;
}

std::optional<sequence_parts> from_sequence(std::string_view decimal) {
    wide number{};
    if (decimal.empty()) return std::nullopt;
    for (const char c : decimal) {
        if (c < '0' || c > '9' || !add_digit(number, static_cast<std::uint32_t>(c - '0')))
            return std::nullopt;
    }
    const sequence_parts parts{
        get(number, born_field),
        get(number, index_field),
        get(number, second_field),
        static_cast<std::uint32_t>(get(number, shard_field))};
    const bool made_here =
        get(number, version_field) == version && get(number, mark_field) == version &&
        get(number, unused_field) == 0 && get(number, shard_mark_field) == (parts.shard & 0xfU) &&
        get(number, {bits_used, 192 - bits_used}) == 0 && parts.index <= sequence_index_max;
    if (!made_here) return std::nullopt;
    return parts;
}

}  // namespace millrace::kinesis_fake
