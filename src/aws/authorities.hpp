/// Whom to trust for TLS where no option names it, as AWS's other tools do. Reads the environment.
#pragma once

#include "curl_http.hpp"

namespace millrace::aws {

/// With the file that AWS_CA_BUNDLE names, where `options` name none.
[[nodiscard]] curl_http_options with_authorities(curl_http_options options);

}  // namespace millrace::aws
