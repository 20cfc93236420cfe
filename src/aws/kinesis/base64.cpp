#include "kinesis/base64.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::aws::kinesis {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t no_digit = 0xff000000;  // stays visible when four values are joined

/// The value of a character, shifted to its place in a group of four.
constexpr auto shifted_values = [] {
    std::array<std::array<std::uint32_t, 256>, 4> tables{};
    for (auto& table : tables)
        table.fill(no_digit);
    for (std::uint32_t value = 0; value < alphabet.size(); ++value) {
        const auto at = static_cast<unsigned char>(alphabet[value]);
        for (std::uint32_t place = 0; place < 4; ++place)
            tables[place][at] = value << (18 - 6 * place);
    }
    return tables;
}();

std::uint32_t group_at(const char* text) noexcept {
    const auto at = [&](std::size_t i) { return shifted_values[i][static_cast<unsigned char>(text[i])]; };
    return at(0) | at(1) | at(2) | at(3);
}

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
    const auto old_size = out.size();
    out.resize(old_size + (bytes.size() + 2) / 3 * 4, '=');
    auto* to = out.data() + old_size;
    const auto byte = [&](std::size_t at) -> std::uint32_t { return static_cast<unsigned char>(bytes[at]); };
    std::size_t at = 0;
    for (; at + 3 <= bytes.size(); at += 3, to += 4) {
        const auto group = byte(at) << 16U | byte(at + 1) << 8U | byte(at + 2);
        to[0] = alphabet[group >> 18U];
        to[1] = alphabet[group >> 12U & 63U];
        to[2] = alphabet[group >> 6U & 63U];
        to[3] = alphabet[group & 63U];
    }
    if (at == bytes.size()) return;
    const bool two = at + 2 == bytes.size();
    const auto group = byte(at) << 16U | (two ? byte(at + 1) << 8U : 0U);
    to[0] = alphabet[group >> 18U];
    to[1] = alphabet[group >> 12U & 63U];
    if (two) to[2] = alphabet[group >> 6U & 63U];
}

std::optional<std::size_t> write_from_base64(char* out, std::string_view text) noexcept {
    if (text.size() % 4 != 0) return std::nullopt;
    if (text.empty()) return 0;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    const auto whole = text.size() / 4 - (padding > 0 ? 1 : 0);
    auto* to = out;
    std::uint32_t seen = 0;
    for (std::size_t i = 0; i < whole; ++i, to += 3) {
        const auto group = group_at(text.data() + 4 * i);
        seen |= group;
        to[0] = static_cast<char>(group >> 16U);
        to[1] = static_cast<char>(group >> 8U & 0xffU);
        to[2] = static_cast<char>(group & 0xffU);
    }
    if (padding > 0) {
        std::array<char, 4> last{text[4 * whole], text[4 * whole + 1], text[4 * whole + 2], 'A'};
        if (padding == 2) last[2] = 'A';
        const auto group = group_at(last.data());
        seen |= group;
        if ((group & (padding == 2 ? 0xffffU : 0xffU)) != 0)
            return std::nullopt;  // bits behind the last byte
        *to++ = static_cast<char>(group >> 16U);
        if (padding == 1) *to++ = static_cast<char>(group >> 8U & 0xffU);
    }
    if ((seen & no_digit) != 0) return std::nullopt;
    return static_cast<std::size_t>(to - out);
}

bool append_from_base64(std::string& out, std::string_view text) {
    const auto old_size = out.size();
    out.resize(old_size + text.size() / 4 * 3);
    const auto written = write_from_base64(out.data() + old_size, text);
    out.resize(old_size + written.value_or(0));
    return written.has_value();
}

}  // namespace millrace::aws::kinesis
