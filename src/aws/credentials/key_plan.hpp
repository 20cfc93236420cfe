/// Where the keys come from: the decision over environment and profiles, in the order of AWS's SDKs.
///
/// Pure; `fetch_keys.hpp` carries a plan out. A plan is made anew for each refresh, so that changed files
/// count. The first place that is set up decides, also when it then fails: going on to another identity
/// without a word would be worse than an error.
#pragma once

#include "credentials/environment.hpp"
#include "credentials/profiles.hpp"
#include "keys.hpp"

#include <millrace/error.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace millrace::aws {

/// A role of IAM that is taken on by STS.
struct role {
    std::string arn;
    std::string session_name;
    std::string external_id;
    std::chrono::seconds duration{3'600};

    bool operator==(const role&) const = default;
};

namespace keys_from {

struct values {
    aws_keys keys;
    bool operator==(const values&) const = default;
};

/// STS, by a token that somebody renews in a file.
struct web_identity {
    role as;
    std::string token_file;
    bool operator==(const web_identity&) const = default;
};

/// What a program prints.
struct program {
    std::vector<std::string> command;
    bool operator==(const program&) const = default;
};

/// The agent of ECS or EKS beside a container. The token's file goes before the token.
struct container {
    std::string url;
    std::string token;
    std::string token_file;
    bool operator==(const container&) const = default;
};

/// The metadata service of an EC2 instance.
struct instance {
    std::string endpoint{"http://169.254.169.254"};
    bool v1{true};  ///< May be asked without a session token where it gives none.
    bool operator==(const instance&) const = default;
};

}  // namespace keys_from

using key_origin = std::variant<
    keys_from::values,
    keys_from::web_identity,
    keys_from::program,
    keys_from::container,
    keys_from::instance>;

/// Where STS is asked.
struct sts_place {
    std::string url;
    std::string region;  ///< That requests are signed for.
    bool operator==(const sts_place&) const = default;
};

struct key_plan {
    std::string name;  ///< For messages: `profile "work"`.
    key_origin origin;
    std::vector<role> roles;  ///< Taken on one after the other, each with the keys of the one before.
    sts_place sts;

    /// The service may go on accepting keys behind their end, so they are kept while it gives no others.
    [[nodiscard]] bool may_outlive_expiry() const {
        return roles.empty() && (std::holds_alternative<keys_from::container>(origin) ||
                                 std::holds_alternative<keys_from::instance>(origin));
    }

    /// Whether they were found nowhere, so that only an instance could have some.
    bool last_resort{false};

    bool operator==(const key_plan&) const = default;
};

using profile_reader = std::function<result<profiles>()>;

/// `region` is of the service that the keys are for; empty: by environment and profile. `files` is read only
/// where profiles matter. Errors say what is missing or contradicts itself, never a secret.
[[nodiscard]] result<key_plan> plan_keys(
    const environment& variables, const profile_reader& files, const std::string& region = {}
);

}  // namespace millrace::aws
