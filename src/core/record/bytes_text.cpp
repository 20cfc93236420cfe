#include "bytes_text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 0xff;

constexpr auto digit_values = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(no_digit);
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
    }
    return values;
}();

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

/// Length of the character that `lead` begins, with the smallest and largest second byte; 0 when it begins
/// none.
struct utf8_lead {
    std::size_t length;
    unsigned char second_min;
    unsigned char second_max;
};

utf8_lead lead_of(unsigned char lead) {
    if (lead < 0x80) return {1, 0, 0};
    if (lead >= 0xc2 && lead <= 0xdf) return {2, 0x80, 0xbf};
    if (lead == 0xe0) return {3, 0xa0, 0xbf};
    if (lead == 0xed) return {3, 0x80, 0x9f};
    if (lead >= 0xe1 && lead <= 0xef) return {3, 0x80, 0xbf};
    if (lead == 0xf0) return {4, 0x90, 0xbf};
    if (lead >= 0xf1 && lead <= 0xf3) return {4, 0x80, 0xbf};
    if (lead == 0xf4) return {4, 0x80, 0x8f};
    return {0, 0, 0};
}

}  // namespace

std::string to_base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const auto group = byte_at(bytes, at) << 16U | byte_at(bytes, at + 1) << 8U | byte_at(bytes, at + 2);
        text.push_back(alphabet[group >> 18U]);
        text.push_back(alphabet[group >> 12U & 63U]);
        text.push_back(at + 1 < bytes.size() ? alphabet[group >> 6U & 63U] : '=');
        text.push_back(at + 2 < bytes.size() ? alphabet[group & 63U] : '=');
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    const auto digits = text.substr(0, text.size() - padding);
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t group = 0;
    std::uint32_t bits = 0;
    for (const char c : digits) {
        const auto value = digit_values[static_cast<unsigned char>(c)];
        if (value == no_digit) return std::nullopt;
        group = group << 6U | value;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        bytes.push_back(static_cast<char>(group >> bits & 0xffU));
    }
    if ((group & ((1U << bits) - 1U)) != 0) return std::nullopt;
    return bytes;
}

bool is_utf8(std::string_view bytes) noexcept {
    std::size_t at = 0;
    while (at < bytes.size()) {
        // Most text is ASCII: eight bytes at a time.
        std::uint64_t word = 0;
        if (bytes.size() - at >= sizeof word) {
            std::memcpy(&word, bytes.data() + at, sizeof word);
            if ((word & 0x8080808080808080U) == 0) {
                at += sizeof word;
                continue;
            }
        }
        const auto [length, second_min, second_max] = lead_of(static_cast<unsigned char>(bytes[at]));
        if (length == 0 || length > bytes.size() - at) return false;
        for (std::size_t i = 1; i < length; ++i) {
            const auto next = static_cast<unsigned char>(bytes[at + i]);
            const bool fits = i == 1 ? next >= second_min && next <= second_max : (next & 0xc0U) == 0x80U;
            if (!fits) return false;
        }
        at += length;
    }
    return true;
}

}  // namespace millrace
