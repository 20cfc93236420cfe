#include "address.hpp"

#include "client/endpoint.hpp"
#include "credentials/region.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::aws {

result<void> check_region(std::string_view region) {
    if (is_region(region)) return {};
    return fail(errc::invalid_argument, fmt::format("has \"{}\" for a region such as eu-west-1", region));
}

result<void> check_endpoint(std::string_view url) {
    const auto parsed = parse_endpoint(url);
    if (parsed) return {};
    return fail(errc::invalid_argument, fmt::format("has a wrong endpoint: {}", parsed.error().detail));
}

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
        if (const auto valid = check_endpoint(found.endpoint); !valid) return tl::unexpected(valid.error());
    }
    const auto slash = std::min(rest.find('/'), rest.size());
    found.region = rest.substr(0, slash);
    found.name = rest.substr(std::min(slash + 1, rest.size()));
    if (const auto valid = check_region(found.region); !valid) return tl::unexpected(valid.error());
    return found;
}

}  // namespace millrace::aws
