// Keys by STS: for a role by other keys, or by the token of a web identity.

#include "client/endpoint.hpp"
#include "credentials/ask.hpp"
#include "credentials/fetch_keys.hpp"
#include "credentials/read_file.hpp"
#include "credentials/sts_reply.hpp"
#include "credentials/text.hpp"
#include "signing/sign.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <fmt/format.h>

namespace millrace::aws {

namespace {

constexpr std::size_t token_bytes_max = std::size_t{64} << 10;

using form = std::vector<std::pair<std::string_view, std::string>>;

/// As a query has it: everything but letters, digits and -._~ as %XX.
std::string encoded(std::string_view text) {
    constexpr std::string_view plain = "-._~";
    std::string out;
    for (const char c : text) {
        const bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          plain.find(c) != std::string_view::npos;
        if (keep)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

std::string body_of(const form& values) {
    std::string body;
    for (const auto& [name, value] : values) {
        if (!body.empty()) body += '&';
        body += name;
        body += '=';
        body += encoded(value);
    }
    return body;
}

form form_of(std::string_view action, const role& as) {
    form values{
        {"Action", std::string(action)},
        {"Version", "2011-06-15"},
        {"RoleArn", as.arn},
        {"RoleSessionName", as.session_name},
        {"DurationSeconds", std::to_string(as.duration.count())}};
    if (!as.external_id.empty()) values.emplace_back("ExternalId", as.external_id);
    return values;
}

http_request request_of(const sts_place& sts, const form& values, const fetch_tools& with) {
    return {
        .method = "POST",
        .url = sts.url,
        .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}},
        .body = body_of(values),
        .timeout = with.options.sts_timeout};
}

/// The moment in the header Date where it is far from ours, so that a signature of ours is refused.
std::optional<wall_time> other_time(const http_reply& reply, wall_time ours) {
    const auto seconds = ::curl_getdate(std::string(reply.header("Date")).c_str(), nullptr);
    if (seconds < 0) return std::nullopt;
    const wall_time theirs{std::chrono::seconds{seconds}};
    const auto apart = theirs < ours ? ours - theirs : theirs - ours;
    return apart > std::chrono::minutes{1} ? std::optional(theirs) : std::nullopt;
}

void sign_request(http_request& request, const aws_keys& by, const sts_place& sts, wall_time now) {
    const auto place = parse_endpoint(sts.url).value();
    auto headers = request.headers;
    headers.emplace_back("Host", place.host);
    const signable what{request.method, place.path, {}, headers, request.body};
    for (auto& header : sign(what, by, {sts.region, "sts"}, now))
        request.headers.push_back(std::move(header));
}

tl::unexpected<error> refused_with(const std::string& who, const http_reply& reply) {
    const auto said = read_sts_failure(reply.body);
    if (said.code.empty()) return refused_by(who, reply);
    const bool passes =
        reply.status >= 500 || said.code == "Throttling" || said.code == "IDPCommunicationError";
    return fail(
        passes ? errc::unavailable : errc::permission_denied,
        fmt::format("{} gives no AWS credentials: {}: {}", who, said.code, said.message),
        retry_advice::after_delay
    );
}

/// `ours`: this machine's clock, by which the end of the keys is told.
result<aws_keys> keys_of(const std::string& who, const result<http_reply>& reply, wall_time ours) {
    if (!reply) return unanswered_by(who, reply.error());
    if (reply->status != 200) return refused_with(who, *reply);
    auto keys = read_sts_keys(reply->body, who);
    if (!keys || !keys->expires) return keys;
    if (const auto theirs = other_time(*reply, ours)) *keys->expires += ours - *theirs;
    return keys;
}

std::string title(const role& as) {
    return fmt::format("STS, asked for the role {},", shown(as.arn, 128));
}

}  // namespace

result<aws_keys> fetch_by_web_identity(
    const keys_from::web_identity& identity, const sts_place& sts, const fetch_tools& with
) {
    const auto token = read_file(identity.token_file, token_bytes_max);
    if (!token) return tl::unexpected(token.error());
    auto values = form_of("AssumeRoleWithWebIdentity", identity.as);
    values.emplace_back("WebIdentityToken", std::string(without_blanks(*token)));
    const auto request = request_of(sts, values, with);
    const auto reply = ask_again(with.by, request, with.options.asking, with.stop);
    return keys_of(title(identity.as), reply, with.now());
}

result<aws_keys> fetch_by_role(
    const role& as, const aws_keys& by, const sts_place& sts, const fetch_tools& with
) {
    const auto plain = request_of(sts, form_of("AssumeRole", as), with);
    auto request = plain;
    sign_request(request, by, sts, with.now());
    auto reply = ask_again(with.by, request, with.options.asking, with.stop);
    if (reply && reply->status == 403) {
        if (const auto theirs = other_time(*reply, with.now())) {
            request = plain;
            sign_request(request, by, sts, *theirs);
            reply = ask(with.by, request, with.stop);
        }
    }
    return keys_of(title(as), reply, with.now());
}

}  // namespace millrace::aws
