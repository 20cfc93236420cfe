#include "client/endpoint.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::aws {

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

tl::unexpected<error> malformed(std::string_view why) {
    return fail(
        errc::invalid_config,
        fmt::format("the endpoint {}; write it as in \"http://127.0.0.1:4567\" or \"https://host\"", why)
    );
}

}  // namespace

std::string endpoint_of(std::string_view service, std::string_view region) {
    std::string_view domain = "amazonaws.com";
    if (region.starts_with("cn-")) domain = "amazonaws.com.cn";
    if (region.starts_with("us-iso-")) domain = "c2s.ic.gov";
    if (region.starts_with("us-isob-")) domain = "sc2s.sgov.gov";
    return fmt::format("https://{}.{}.{}", service, region, domain);
}

result<endpoint> parse_endpoint(std::string_view url) {
    const bool tls = url.starts_with("https://");
    if (!tls && !url.starts_with("http://")) return malformed("begins with neither http:// nor https://");
    const auto rest = url.substr(tls ? 8 : 7);
    const auto slash = std::min(rest.find('/'), rest.size());
    const auto authority = rest.substr(0, slash);
    auto path = std::string(rest.substr(slash));
    if (path.empty()) path = "/";
    if (authority.find('@') != std::string_view::npos) return malformed("must not hold a user or password");
    const auto bracket = authority.rfind(']');
    const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
    const auto host = authority.substr(0, colon);
    const auto port = colon == std::string_view::npos ? std::string_view() : authority.substr(colon + 1);
    if (!is_host(host)) return malformed("names no host");
    if (colon != std::string_view::npos && !is_port(port)) return malformed("has no port from 1 to 65535");
    if (!is_path(path)) return malformed("has a query, a fragment or a space");
    const bool own_port = port.empty() || port == (tls ? "443" : "80");
    return endpoint{
        std::string(url.substr(0, tls ? 8 : 7)).append(authority).append(path),
        own_port ? std::string(host) : fmt::format("{}:{}", host, port),
        std::move(path)};
}

}  // namespace millrace::aws
