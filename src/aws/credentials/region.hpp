/// Which region is meant where an address names none.
#pragma once

#include "credentials/environment.hpp"
#include "credentials/profiles.hpp"

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace::aws {

/// AWS_REGION, else AWS_DEFAULT_REGION, else the profile's; empty where nothing says. `files` may be null.
/// `invalid_config` when it is no name of a region.
[[nodiscard]] result<std::string> region_of(const environment& variables, const profiles* files);

/// Whether it can be part of a host's name: `eu-west-1`.
[[nodiscard]] bool is_region(std::string_view name);

}  // namespace millrace::aws
