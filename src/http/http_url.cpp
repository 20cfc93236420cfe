#include "http_url.hpp"

#include <algorithm>

namespace millrace {

namespace {

bool is_port(std::string_view text) {
    if (text.empty() || text.size() > 5) return false;
    unsigned value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value >= 1 && value <= 65'535;
}

bool is_host(std::string_view text) {
    if (text.starts_with('[')) {
        return text.size() > 2 && text.ends_with(']') &&
               text.find_first_not_of("0123456789abcdefABCDEF:.", 1) == text.size() - 1;
    }
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_';
    });
}

bool is_path(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return c > ' ' && c < 0x7f && c != '?' && c != '#';
    });
}

}  // namespace

tl::expected<http_url, std::string_view> parse_http_url(std::string_view url) {
    http_url parts;
    parts.tls = url.starts_with("https://");
    if (!parts.tls && !url.starts_with("http://"))
        return tl::unexpected<std::string_view>("begins with neither http:// nor https://");
    const auto rest = url.substr(parts.tls ? 8 : 7);
    const auto slash = std::min(rest.find('/'), rest.size());
    parts.authority = rest.substr(0, slash);
    parts.path = rest.substr(slash);
    if (parts.authority.find('@') != std::string_view::npos)
        return tl::unexpected<std::string_view>("must not hold a user or password");
    if (rest.find_first_of("?# ") != std::string_view::npos)
        return tl::unexpected<std::string_view>("has a query, a fragment or a space");
    const auto bracket = parts.authority.rfind(']');
    const auto colon = parts.authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
    parts.host = parts.authority.substr(0, colon);
    if (colon != std::string_view::npos) parts.port = parts.authority.substr(colon + 1);
    constexpr std::size_t host_max = 255;  // of a name in DNS
    if (parts.host.size() > host_max)
        return tl::unexpected<std::string_view>("names a host of more than 255 characters");
    if (!is_host(parts.host)) return tl::unexpected<std::string_view>("names no host");
    if (colon != std::string_view::npos && !is_port(parts.port))
        return tl::unexpected<std::string_view>("has no port from 1 to 65535");
    if (!is_path(parts.path)) return tl::unexpected<std::string_view>("has a query, a fragment or a space");
    return parts;
}

}  // namespace millrace
