/// The endpoint of a service where the address names none: as AWS's other tools take it from the environment.
#pragma once

#include "credentials/environment.hpp"

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace::aws {

/// AWS_ENDPOINT_URL_<SERVICE>, else AWS_ENDPOINT_URL; empty, which is AWS's own, where none is set or
/// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is true. `invalid_config` names the variable. Pure.
[[nodiscard]] result<std::string> configured_endpoint(const environment& variables, std::string_view service);

}  // namespace millrace::aws
