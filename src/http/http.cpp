#include "http.hpp"

#include <algorithm>

namespace millrace {

namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return lower(x) == lower(y);
    });
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view spaces = " \t\r";
    const auto begin = text.find_first_not_of(spaces);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

}  // namespace

std::string_view http_reply::header(std::string_view name) const {
    std::string_view rest = head;
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        const auto line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const auto colon = line.find(':');
        if (colon != std::string_view::npos && same_name(line.substr(0, colon), name)) {
            return trimmed(line.substr(colon + 1));
        }
    }
    return {};
}

}  // namespace millrace
