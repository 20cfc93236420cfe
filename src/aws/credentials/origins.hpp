/// The origins of keys that the environment sets up. Pure; errors name the variable, never a secret.
#pragma once

#include "credentials/environment.hpp"
#include "credentials/key_plan.hpp"

#include <millrace/error.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace millrace::aws {

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; nothing where none of the first two is set.
[[nodiscard]] result<std::optional<keys_from::values>> environment_keys(const environment& variables);

/// AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN.
[[nodiscard]] result<std::optional<keys_from::web_identity>> environment_web_identity(
    const environment& variables
);

/// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, else AWS_CONTAINER_CREDENTIALS_FULL_URI.
[[nodiscard]] result<std::optional<keys_from::container>> environment_container(const environment& variables);

/// The metadata service, unless AWS_EC2_METADATA_DISABLED is true.
[[nodiscard]] result<std::optional<keys_from::instance>> environment_instance(const environment& variables);

/// Plain HTTP is for the machine itself and for the addresses of the agents of ECS and EKS; HTTPS for any
/// host.
[[nodiscard]] bool may_give_keys(std::string_view url);

/// STS in a region; in none, its old global address.
[[nodiscard]] result<sts_place> sts_of(const environment& variables, const std::string& region);

/// What may stand in the headers of a signed request. `source` begins the message.
[[nodiscard]] result<void> check_keys(const aws_keys& keys, std::string_view source);

}  // namespace millrace::aws
