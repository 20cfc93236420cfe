#include "credentials/origins.hpp"

#include "client/endpoint.hpp"
#include "credentials/role_values.hpp"
#include "credentials/text.hpp"
#include "endpoint_setting.hpp"

#include <array>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

tl::unexpected<error> wrong(std::string detail) {
    return fail(errc::invalid_config, std::move(detail));
}

bool is_true(const std::string& value) {
    return in_lower_case(value) == "true";
}

/// Digits of an IPv4 address of the machine itself.
bool is_loopback(std::string_view host) {
    if (in_lower_case(host) == "localhost" || host == "[::1]") return true;
    int parts = 0;
    int first = -1;
    for (std::string_view rest = host; parts < 5; ++parts) {
        const auto part = rest.substr(0, rest.find('.'));
        int number = 0;
        const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
        if (part.empty() || part.size() > 3 || part.front() == '-' || read.ec != std::errc{} ||
            read.ptr != part.data() + part.size() || number > 255)
            return false;
        if (first < 0) first = number;
        if (part.size() == rest.size()) break;
        rest.remove_prefix(part.size() + 1);
    }
    return parts == 3 && first == 127;
}

/// The host of `http://HOST[:PORT]...`, with the brackets of IPv6; empty where it could be read in two ways.
std::string_view host_of(std::string_view behind_scheme) {
    const auto authority = behind_scheme.substr(0, behind_scheme.find_first_of("/?#"));
    if (authority.find_first_of("@\\%") != std::string_view::npos) return {};
    const auto end = authority.starts_with('[') ? authority.find(']') : authority.find(':');
    if (authority.starts_with('[') && end == std::string_view::npos) return {};
    const auto host = authority.starts_with('[') ? authority.substr(0, end + 1) : authority.substr(0, end);
    const auto port = authority.substr(host.size());
    const bool has_port = !port.empty();
    if (has_port &&
        (port.front() != ':' || port.find_first_not_of("0123456789", 1) != std::string_view::npos))
        return {};
    return host;
}

}  // namespace

bool may_give_keys(std::string_view url) {
    if (!is_graphic(url)) return false;
    const auto scheme = in_lower_case(url.substr(0, std::min(url.size(), url.find("://"))));
    if (scheme.size() == url.size()) return false;
    const auto host = host_of(url.substr(scheme.size() + 3));
    if (host.empty()) return false;
    if (scheme == "https") return true;
    return scheme == "http" && (is_loopback(host) || host == "169.254.170.2" || host == "169.254.170.23" ||
                                in_lower_case(host) == "[fd00:ec2::23]");
}

result<void> check_keys(const aws_keys& keys, std::string_view source) {
    if (keys.access_key.empty() || keys.secret_key.empty()) {
        return wrong(fmt::format("{} lacks the access key's id or its secret; give both", source));
    }
    if (is_graphic(keys.access_key) && is_graphic(keys.secret_key) && is_graphic(keys.session_token))
        return {};
    return wrong(
        fmt::format("{} holds keys with blanks or other characters that no key has; copy them again", source)
    );
}

result<std::optional<keys_from::values>> environment_keys(const environment& variables) {
    keys_from::values found;
    found.keys.access_key = variables("AWS_ACCESS_KEY_ID");
    found.keys.secret_key = variables("AWS_SECRET_ACCESS_KEY");
    found.keys.session_token = variables("AWS_SESSION_TOKEN");
    if (found.keys.access_key.empty() && found.keys.secret_key.empty()) return std::nullopt;
    if (found.keys.access_key.empty() || found.keys.secret_key.empty()) {
        return wrong("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both, or none");
    }
    if (auto fine = check_keys(found.keys, "the environment"); !fine) return tl::unexpected(fine.error());
    return found;
}

result<std::optional<keys_from::web_identity>> environment_web_identity(const environment& variables) {
    keys_from::web_identity found;
    found.token_file = variables("AWS_WEB_IDENTITY_TOKEN_FILE");
    if (found.token_file.empty()) return std::nullopt;
    auto as = read_role(
        {{"role_arn", variables("AWS_ROLE_ARN")}, {"role_session_name", variables("AWS_ROLE_SESSION_NAME")}},
        "the environment's AWS_ROLE_ARN"
    );
    if (!as) return tl::unexpected(as.error());
    found.as = std::move(*as);
    return found;
}

result<std::optional<keys_from::container>> environment_container(const environment& variables) {
    keys_from::container found;
    const auto path = variables("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    found.url =
        path.empty() ? variables("AWS_CONTAINER_CREDENTIALS_FULL_URI") : "http://169.254.170.2" + path;
    if (found.url.empty()) return std::nullopt;
    if (!path.empty() && !path.starts_with('/')) {
        return wrong("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with \"/\"; mend it");
    }
    if (!may_give_keys(found.url)) {
        return wrong(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI names a place that is not asked for keys; use https, or http "
            "with the machine itself, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]"
        );
    }
    found.token_file = variables("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (found.token_file.empty()) found.token = variables("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    return found;
}

result<std::optional<keys_from::instance>> environment_instance(const environment& variables) {
    if (is_true(variables("AWS_EC2_METADATA_DISABLED"))) return std::nullopt;
    keys_from::instance found;
    found.v1 = !is_true(variables("AWS_EC2_METADATA_V1_DISABLED"));
    const auto mode = in_lower_case(variables("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"));
    if (mode == "ipv6")
        found.endpoint = "http://[fd00:ec2::254]";
    else if (!mode.empty() && mode != "ipv4")
        return wrong("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE is neither IPv4 nor IPv6; set one of them");
    auto given = variables("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (given.empty()) return found;
    if (const auto place = parse_endpoint(given); !place)
        return wrong("AWS_EC2_METADATA_SERVICE_ENDPOINT is no address: " + place.error().detail);
    while (given.ends_with('/'))
        given.pop_back();
    found.endpoint = std::move(given);
    return found;
}

result<sts_place> sts_of(const environment& variables, const std::string& region) {
    auto url = configured_endpoint(variables, "sts");
    if (!url) return tl::unexpected(url.error());
    if (url->empty()) url = region.empty() ? "https://sts.amazonaws.com" : endpoint_of("sts", region);
    const auto place = parse_endpoint(*url);
    if (!place) return wrong("STS has no address: " + place.error().detail);
    return sts_place{place->url, region.empty() ? "us-east-1" : region};
}

}  // namespace millrace::aws
