/// The values of a profile that describe a role. Pure.
#pragma once

#include "credentials/key_plan.hpp"
#include "credentials/profiles.hpp"

#include <millrace/error.hpp>

#include <string_view>

namespace millrace::aws {

/// role_arn, role_session_name, external_id and duration_seconds within the limits of STS. `source` begins
/// the message: `profile "work"`.
[[nodiscard]] result<role> read_role(const profile& values, std::string_view source);

/// The value of a name; empty when it is absent.
[[nodiscard]] std::string_view value_of(const profile& values, std::string_view name);

}  // namespace millrace::aws
