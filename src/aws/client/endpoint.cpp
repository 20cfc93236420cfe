#include "client/endpoint.hpp"

#include "http_url.hpp"

#include <utility>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

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
    const auto parts = parse_http_url(url);
    if (!parts) return malformed(parts.error());
    const bool own_port = parts->port.empty() || parts->port == (parts->tls ? "443" : "80");
    auto path = std::string(parts->path);
    if (path.empty()) path = "/";
    return endpoint{
        std::string(parts->tls ? "https://" : "http://").append(parts->authority).append(path),
        own_port ? std::string(parts->host) : fmt::format("{}:{}", parts->host, parts->port),
        std::move(path)};
}

}  // namespace millrace::aws
