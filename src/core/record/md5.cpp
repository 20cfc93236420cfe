#include "record/md5.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace {

namespace {

using state = std::array<std::uint32_t, 4>;

constexpr std::size_t block_bytes = 64;

// floor(2^32 * |sin(i + 1)|), RFC 1321.
constexpr std::array<std::uint32_t, 64> sines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

constexpr std::array<std::array<int, 4>, 4> turns{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

std::uint32_t word_at(const unsigned char* at) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
    return word;
}

template <int Round>
void round(state& s, const std::array<std::uint32_t, 16>& words) noexcept {
    for (std::size_t step = 0; step < 16; ++step) {
        const auto [a, b, c, d] = s;
        std::uint32_t mixed = 0;
        std::size_t word = 0;
        if constexpr (Round == 0) {
            mixed = d ^ (b & (c ^ d));
            word = step;
        } else if constexpr (Round == 1) {
            mixed = c ^ (d & (b ^ c));
            word = (5 * step + 1) % 16;
        } else if constexpr (Round == 2) {
            mixed = b ^ c ^ d;
            word = (3 * step + 5) % 16;
        } else {
            mixed = c ^ (b | ~d);
            word = (7 * step) % 16;
        }
        const auto sum = a + mixed + sines[Round * 16 + step] + words[word];
        s = {d, b + std::rotl(sum, turns[Round][step % 4]), b, c};
    }
}

void add_block(state& sum, const unsigned char* block) noexcept {
    std::array<std::uint32_t, 16> words{};
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = word_at(block + 4 * i);
    auto s = sum;
    round<0>(s, words);
    round<1>(s, words);
    round<2>(s, words);
    round<3>(s, words);
    for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += s[i];
}

}  // namespace

md5_digest md5(std::string_view bytes) noexcept {
    state sum{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
    auto left = bytes.size();
    for (; left >= block_bytes; at += block_bytes, left -= block_bytes)
        add_block(sum, at);

    std::array<unsigned char, 2 * block_bytes> tail{};
    if (left > 0) std::memcpy(tail.data(), at, left);
    tail[left] = 0x80;
    const auto end = left + 9 <= block_bytes ? block_bytes : 2 * block_bytes;
    const auto bits = static_cast<std::uint64_t>(bytes.size()) * 8;
    for (std::size_t i = 0; i < 8; ++i)
        tail[end - 8 + i] = static_cast<unsigned char>(bits >> (8 * i));
    for (std::size_t from = 0; from < end; from += block_bytes)
        add_block(sum, tail.data() + from);

    md5_digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<unsigned char>(sum[i / 4] >> (8 * (i % 4)));
    return digest;
}

}  // namespace millrace
