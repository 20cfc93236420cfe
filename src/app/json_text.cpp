#include "json_text.hpp"

#include "record/bytes_text.hpp"

#include <array>
#include <cstddef>

namespace millrace::app {

namespace {

/// What follows the backslash of a character; 0 for none, 'u' for the long form.
constexpr std::array<char, 256> escapes = [] {
    std::array<char, 256> table{};
    for (std::size_t c = 0; c < 0x20; ++c)
        table[c] = 'u';
    table['"'] = '"';
    table['\\'] = '\\';
    table['\b'] = 'b';
    table['\f'] = 'f';
    table['\n'] = 'n';
    table['\r'] = 'r';
    table['\t'] = 't';
    return table;
}();

constexpr unsigned char byte_at(std::string_view text, std::size_t i) {
    return static_cast<unsigned char>(text[i]);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    out += '"';
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned char c = byte_at(text, i);
        const char escape = escapes[c];
        if (escape == 0) continue;
        out.append(text.data() + begin, i - begin);
        begin = i + 1;
        out += '\\';
        out += escape;
        if (escape == 'u') {
            out += "00";
            out += hex[c >> 4U];
            out += hex[c & 15U];
        }
    }
    out.append(text.data() + begin, text.size() - begin);
    out += '"';
}

std::string json_string(std::string_view text) {
    std::string out;
    if (is_utf8(text)) {
        append_json_string(out, text);
        return out;
    }
    std::string clean{text};
    for (char& c : clean) {
        if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
    append_json_string(out, clean);
    return out;
}

}  // namespace millrace::app
