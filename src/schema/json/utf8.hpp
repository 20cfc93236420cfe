/// Characters of text that is known to be valid UTF-8. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::schema {

[[nodiscard]] constexpr bool continues(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

[[nodiscard]] inline std::size_t code_points(std::string_view text) noexcept {
    std::size_t n = 0;
    for (const char c : text)
        n += continues(c) ? 0U : 1U;
    return n;
}

/// A name for a message: at most 40 characters of it, and no control characters.
[[nodiscard]] inline std::string shortened(std::string_view name) {
    constexpr std::size_t shown = 40;
    std::string out;
    std::size_t n = 0;
    for (const char c : name) {
        if (!continues(c) && ++n > shown) return out + "...";
        out += static_cast<unsigned char>(c) < 0x20U || c == 0x7F ? '?' : c;
    }
    return out;
}

}  // namespace millrace::schema
