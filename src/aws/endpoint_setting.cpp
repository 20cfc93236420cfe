#include "endpoint_setting.hpp"

#include "client/endpoint.hpp"
#include "credentials/text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::aws {

result<std::string> configured_endpoint(const environment& variables, std::string_view service) {
    if (in_lower_case(variables("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) == "true") return std::string();
    std::string of_all = "AWS_ENDPOINT_URL";
    auto of_service = of_all + "_" + std::string(service);
    std::transform(of_service.begin(), of_service.end(), of_service.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    for (const auto& name : {of_service, of_all}) {
        auto url = variables(name);
        if (url.empty()) continue;
        if (const auto place = parse_endpoint(url); !place) {
            return fail(
                errc::invalid_config, fmt::format("{} is no address: {}", name, place.error().detail)
            );
        }
        return url;
    }
    return std::string();
}

}  // namespace millrace::aws
