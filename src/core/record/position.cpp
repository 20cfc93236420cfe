#include <millrace/position.hpp>

#include <algorithm>

namespace millrace {

namespace {

constexpr std::uint64_t chunk_base =
    10'000'000'000'000'000'000U;  // 10^19, the largest power of ten below 2^64
constexpr std::size_t chunk_digits = 19;

__extension__ using wide = unsigned __int128;

std::uint64_t power_of_ten(std::size_t exponent) {
    std::uint64_t power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

}  // namespace

result<sequence_number> sequence_number::parse(std::string_view decimal) {
    const auto bad = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            "sequence number \"" + std::string(decimal.substr(0, 140)) + "\" " + std::string(why) +
                "; expected a decimal integer of at most 129 digits"
        );
    };
    if (decimal.empty()) return bad("is empty");
    if (decimal.size() > digits_max) return bad("has more than 129 digits");
    if (!std::ranges::all_of(decimal, [](char c) { return c >= '0' && c <= '9'; }))
        return bad("is not decimal");

    sequence_number number;
    std::size_t used = 0;  // words from the lowest on; those above are zero
    for (std::size_t at = 0; at < decimal.size();) {
        const auto digits = decimal.substr(at, std::min(chunk_digits, decimal.size() - at));
        std::uint64_t chunk = 0;
        for (const char c : digits)
            chunk = chunk * 10 + static_cast<std::uint64_t>(c - '0');

        const auto scale = digits.size() == chunk_digits ? chunk_base : power_of_ten(digits.size());
        wide carry = chunk;
        for (std::size_t i = 0; i < used; ++i) {
            auto& word = number.words_[number.words_.size() - 1 - i];
            carry += static_cast<wide>(word) * scale;
            word = static_cast<std::uint64_t>(carry);
            carry >>= 64U;
        }
        // 129 digits fit the words, so there is one left for what is carried.
        if (carry != 0) number.words_[number.words_.size() - 1 - used++] = static_cast<std::uint64_t>(carry);
        at += digits.size();
    }
    return number;
}

std::string sequence_number::to_string() const {
    auto words = words_;
    std::string reversed;
    const auto is_zero = [&] { return std::ranges::all_of(words, [](std::uint64_t w) { return w == 0; }); };
    do {
        wide remainder = 0;
        for (auto& word : words) {
            remainder = (remainder << 64U) | word;
            word = static_cast<std::uint64_t>(remainder / chunk_base);
            remainder %= chunk_base;
        }
        auto chunk = static_cast<std::uint64_t>(remainder);
        const bool last = is_zero();
        for (std::size_t i = 0; i < chunk_digits && (!last || chunk > 0); ++i, chunk /= 10) {
            reversed.push_back(static_cast<char>('0' + chunk % 10));
        }
    } while (!is_zero());
    if (reversed.empty()) reversed.push_back('0');
    return {reversed.rbegin(), reversed.rend()};
}

}  // namespace millrace
