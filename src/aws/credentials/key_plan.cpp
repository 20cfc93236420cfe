#include "credentials/key_plan.hpp"

#include "credentials/command_words.hpp"
#include "credentials/origins.hpp"
#include "credentials/region.hpp"
#include "credentials/role_values.hpp"
#include "credentials/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

tl::unexpected<error> wrong(std::string detail) {
    return fail(errc::invalid_config, std::move(detail));
}

std::string title(std::string_view name) {
    return fmt::format("profile \"{}\"", shown(name, 64));
}

/// An origin that must be set up, since a profile asks for it.
template <class T>
result<key_origin> needed(result<std::optional<T>> found, const std::string& who, std::string_view what) {
    if (!found) return tl::unexpected(found.error());
    if (!*found) return wrong(fmt::format("{} has credential_source, but {}", who, what));
    return key_origin(std::move(**found));
}

result<key_origin> by_credential_source(
    const environment& variables, std::string_view source, const std::string& who
) {
    if (source == "Environment")
        return needed(environment_keys(variables), who, "AWS_ACCESS_KEY_ID is not set");
    if (source == "EcsContainer") {
        return needed(
            environment_container(variables), who, "no AWS_CONTAINER_CREDENTIALS_... address is set"
        );
    }
    if (source == "Ec2InstanceMetadata")
        return needed(environment_instance(variables), who, "AWS_EC2_METADATA_DISABLED is true");
    return wrong(fmt::format(
        "{} has an unknown credential_source; write Environment, Ec2InstanceMetadata or EcsContainer", who
    ));
}

/// Follows a profile to where its keys begin.
class profile_walk {
public:
    profile_walk(const environment& variables, const profiles& files)
        : variables_(variables), files_(files) {}

    /// Where the keys of the profile come from; nothing when it has none. Roles are added from the last.
    result<std::optional<key_origin>> follow(const std::string& name, key_plan& plan) {
        const auto found = files_.by_name.find(name);
        if (found == files_.by_name.end()) return missing(name);
        visited_.push_back(name);
        const auto& values = found->second;
        const auto who = title(name);
        if (!value_of(values, "role_arn").empty()) return by_role(name, values, plan);
        if (has_sso(values)) {
            return wrong(fmt::format(
                "{} signs in by IAM Identity Center (sso_...), which is not supported; use "
                "credential_process "
                "with a program that signs in",
                who
            ));
        }
        if (const auto command = value_of(values, "credential_process"); !command.empty()) {
            auto words = command_words(command);
            if (!words) return wrong(fmt::format("{}: credential_process {}", who, words.error().detail));
            return key_origin(keys_from::program{std::move(*words)});
        }
        return with_static_keys(values, who);
    }

private:
    [[nodiscard]] tl::unexpected<error> missing(const std::string& name) const {
        if (visited_.empty()) {
            return wrong(fmt::format(
                "{} of AWS_PROFILE is neither in {}; name one that is", title(name), files_.looked_in
            ));
        }
        return wrong(fmt::format(
            "{}, the source_profile of {}, is neither in {}; name one that is",
            title(name),
            title(visited_.back()),
            files_.looked_in
        ));
    }

    static bool has_sso(const profile& values) {
        const auto first = values.lower_bound("sso_");
        return first != values.end() && first->first.starts_with("sso_");
    }

    static result<std::optional<key_origin>> with_static_keys(const profile& values, const std::string& who) {
        aws_keys keys;
        keys.access_key = value_of(values, "aws_access_key_id");
        keys.secret_key = value_of(values, "aws_secret_access_key");
        keys.session_token = value_of(values, "aws_session_token");
        if (keys.access_key.empty() && keys.secret_key.empty()) return std::nullopt;
        if (auto fine = check_keys(keys, who); !fine) return tl::unexpected(fine.error());
        return key_origin(keys_from::values{std::move(keys)});
    }

    result<std::optional<key_origin>> by_role(
        const std::string& name, const profile& values, key_plan& plan
    ) {
        const auto who = title(name);
        auto as = read_role(values, who);
        if (!as) return tl::unexpected(as.error());
        if (const auto file = value_of(values, "web_identity_token_file"); !file.empty())
            return key_origin(keys_from::web_identity{std::move(*as), std::string(file)});
        if (values.contains("mfa_serial")) {
            return wrong(fmt::format(
                "{} has mfa_serial, but nobody is there to type a code; use a role without it, or "
                "credential_process",
                who
            ));
        }
        const std::string next(value_of(values, "source_profile"));
        const auto source = value_of(values, "credential_source");
        if (next.empty() == source.empty()) {
            return wrong(fmt::format(
                "{} has role_arn with {} source_profile and credential_source; give one of them",
                who,
                next.empty() ? "neither" : "both"
            ));
        }
        auto origin =
            next.empty() ? by_credential_source(variables_, source, who) : by_source(name, next, plan);
        if (!origin) return tl::unexpected(origin.error());
        plan.roles.push_back(std::move(*as));
        return std::move(*origin);
    }

    result<key_origin> by_source(const std::string& name, const std::string& next, key_plan& plan) {
        result<std::optional<key_origin>> found;
        if (next == name) {
            found = with_static_keys(files_.by_name.find(name)->second, title(name));
        } else if (std::find(visited_.begin(), visited_.end(), next) != visited_.end()) {
            return wrong(fmt::format(
                "{} leads back to {} by source_profile; end the circle with a profile that has keys",
                title(name),
                title(next)
            ));
        } else {
            found = follow(next, plan);
        }
        if (!found) return tl::unexpected(found.error());
        if (*found) return std::move(**found);
        return wrong(fmt::format(
            "{} has no keys, and {} needs them as source_profile; give it some", title(next), title(name)
        ));
    }

    const environment& variables_;
    const profiles& files_;
    std::vector<std::string> visited_;
};

/// The plan by a profile; nothing when it, or the default one, has no keys.
result<std::optional<key_plan>> by_profile(
    const environment& variables, const profiles& files, const std::string& given
) {
    const std::string name = given.empty() ? "default" : given;
    if (given.empty() && !files.by_name.contains(name)) return std::nullopt;
    key_plan plan;
    plan.name = title(name);
    auto origin = profile_walk(variables, files).follow(name, plan);
    if (!origin) return tl::unexpected(origin.error());
    if (!*origin) return std::nullopt;
    plan.origin = std::move(**origin);
    return plan;
}

/// The first origin that is set up.
result<key_plan> first_origin(
    const environment& variables, const profile_reader& read_files, std::optional<profiles>& files
) {
    const auto plan = [](std::string name, auto origin) {
        return key_plan{std::move(name), std::move(origin)};
    };
    auto values = environment_keys(variables);
    if (!values) return tl::unexpected(values.error());
    if (*values) return plan("the environment", std::move(**values));
    auto identity = environment_web_identity(variables);
    if (!identity) return tl::unexpected(identity.error());
    if (*identity) return plan("the web identity of the environment", std::move(**identity));
    auto read = read_files();
    if (!read) return tl::unexpected(read.error());
    files = std::move(*read);
    auto of_profile = by_profile(variables, *files, variables("AWS_PROFILE"));
    if (!of_profile) return tl::unexpected(of_profile.error());
    if (*of_profile) return std::move(**of_profile);
    auto container = environment_container(variables);
    if (!container) return tl::unexpected(container.error());
    if (*container) return plan("the container", std::move(**container));
    auto instance = environment_instance(variables);
    if (!instance) return tl::unexpected(instance.error());
    if (*instance) {
        auto last = plan("the instance", std::move(**instance));
        last.last_resort = true;
        return last;
    }
    return fail(
        errc::permission_denied,
        fmt::format(
            "there are no AWS credentials: not in the environment, not in {}, no container's address is set, "
            "and AWS_EC2_METADATA_DISABLED is true; give some",
            files->looked_in
        )
    );
}

bool asks_sts(const key_plan& plan) {
    return !plan.roles.empty() || std::holds_alternative<keys_from::web_identity>(plan.origin);
}

}  // namespace

result<key_plan> plan_keys(
    const environment& variables, const profile_reader& read_files, const std::string& region
) {
    std::optional<profiles> files;
    auto plan = first_origin(variables, read_files, files);
    if (!plan || !asks_sts(*plan)) return plan;
    auto where =
        region.empty() ? region_of(variables, files ? &*files : nullptr) : result<std::string>(region);
    if (!where) return tl::unexpected(where.error());
    auto sts = sts_of(variables, *where);
    if (!sts) return tl::unexpected(sts.error());
    plan->sts = std::move(*sts);
    return plan;
}

}  // namespace millrace::aws
