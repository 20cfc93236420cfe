/// Where an AWS service is reached.
///
/// Pure functions; plain data.
#pragma once

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace::aws {

struct endpoint {
    std::string url;   ///< With a path, at least "/".
    std::string host;  ///< As the header Host has it: without the scheme's own port.
    std::string path;  ///< Of the URL.

    bool operator==(const endpoint&) const = default;
};

/// AWS's own endpoint of a service in a region, over TLS.
[[nodiscard]] std::string endpoint_of(std::string_view service, std::string_view region);

/// "http://127.0.0.1:4567", "https://[::1]/path". `invalid_config` for whatever cannot be signed or called.
[[nodiscard]] result<endpoint> parse_endpoint(std::string_view url);

}  // namespace millrace::aws
