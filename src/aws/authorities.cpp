#include "authorities.hpp"

#include <cstdlib>
#include <utility>

namespace millrace::aws {

curl_http_options with_authorities(curl_http_options options) {
    options.ca_setting = "AWS_CA_BUNDLE";
    if (options.ca_file.empty()) {
        if (const char* const named = std::getenv("AWS_CA_BUNDLE")) options.ca_file = named;
    }
    return options;
}

}  // namespace millrace::aws
