#include "address.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

bool is_region(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

/// Scheme and host, without a user: keys come from elsewhere, and a user's password would be shown.
bool is_endpoint(std::string_view text) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!text.starts_with(scheme)) continue;
        const auto host =
            text.substr(scheme.size(), text.find_first_of("/?#", scheme.size()) - scheme.size());
        return !host.empty() && host.find_first_of("@ ") == std::string_view::npos;
    }
    return false;
}

}  // namespace

result<address> parse_address(std::string_view given) {
    constexpr std::string_view parameter = "endpoint=";
    const auto refuse = [](std::string why) { return fail(errc::invalid_argument, std::move(why)); };
    const auto begin = given.find("://");
    if (begin == std::string_view::npos) return refuse("names no region");
    auto rest = given.substr(begin + 3);
    address found;
    if (const auto query = rest.find('?'); query != std::string_view::npos) {
        const auto settings = rest.substr(query + 1);
        rest = rest.substr(0, query);
        if (!settings.starts_with(parameter)) {
            return refuse(fmt::format(
                "has the parameter \"{}\"; only endpoint=URL is known", settings.substr(0, settings.find('='))
            ));
        }
        found.endpoint = settings.substr(parameter.size());
        if (!is_endpoint(found.endpoint))
            return refuse("has an endpoint that is not http://HOST[:PORT] or https://HOST[:PORT]");
    }
    const auto slash = std::min(rest.find('/'), rest.size());
    found.region = rest.substr(0, slash);
    found.name = rest.substr(std::min(slash + 1, rest.size()));
    if (!is_region(found.region)) {
        return refuse(fmt::format("has \"{}\" for a region such as eu-west-1", found.region));
    }
    return found;
}

}  // namespace millrace::aws
