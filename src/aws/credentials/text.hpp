/// Small pure functions on text that the parsers of this folder share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace millrace::aws {

constexpr std::string_view blanks = " \t\r\n\v\f";

[[nodiscard]] inline std::string_view without_blanks(std::string_view text) {
    const auto begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// ASCII letters alone.
[[nodiscard]] inline std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower;
}

/// ASCII without blanks and control characters: what may stand in a header.
[[nodiscard]] inline bool is_graphic(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

/// Fit for a message: at most `most` bytes, what is not printable ASCII as `?`.
[[nodiscard]] inline std::string shown(std::string_view text, std::size_t most = 300) {
    std::string out(text.substr(0, most));
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < ' ' || c >= '\x7f'; }, '?'
    );
    if (text.size() > most) out += "...";
    return out;
}

}  // namespace millrace::aws
