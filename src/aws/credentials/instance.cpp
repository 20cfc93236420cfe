// The metadata service of EC2, version 2, and version 1 where it must be.

#include "credentials/ask.hpp"
#include "credentials/fetch_keys.hpp"
#include "credentials/key_document.hpp"
#include "credentials/text.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

constexpr std::string_view who = "the metadata service of EC2";
constexpr std::string_view roles = "/latest/meta-data/iam/security-credentials/";

tl::unexpected<error> wrong(errc code, std::string_view what) {
    return fail(code, fmt::format("{} {}", who, what), retry_advice::after_delay);
}

http_request request_of(const keys_from::instance& service, std::string_view path, const fetch_tools& with) {
    return {
        .url = service.endpoint + std::string(path), .timeout = with.options.agent_timeout, .proxy = false};
}

/// What is sent with each question.
struct pass {
    std::optional<std::string> token;  ///< Empty: version 1.
    bool lost{false};                  ///< No reply to the question for a token came.
};

result<pass> without_token(const keys_from::instance& service, bool lost) {
    if (service.v1) return pass{std::nullopt, lost};
    return wrong(
        errc::permission_denied,
        "gives no session token, and AWS_EC2_METADATA_V1_DISABLED forbids to ask without; in a container, "
        "raise the instance's hop limit to 2"
    );
}

result<pass> get_pass(const keys_from::instance& service, const fetch_tools& with) {
    auto request = request_of(service, "/latest/api/token", with);
    request.method = "PUT";
    request.headers.emplace_back("X-aws-ec2-metadata-token-ttl-seconds", "21600");
    const auto lost = [](const result<http_reply>& reply) { return !reply && reply.error().in_doubt; };
    // An instance that has just started may need more; a reply that was lost will be lost again.
    auto reply = ask(with.by, request, with.stop);
    if (!lost(reply) && (!reply || reply->status >= 500))
        reply = ask_again(with.by, request, with.options.asking, with.stop);
    if (lost(reply)) return without_token(service, true);
    if (!reply) return unanswered_by(who, reply.error());
    if (reply->status == 403 || reply->status == 404 || reply->status == 405)
        return without_token(service, false);
    if (reply->status != 200) return refused_by(who, *reply);
    const auto token = without_blanks(reply->body);
    if (token.empty() || token.size() > 4'096 || !is_graphic(token))
        return wrong(errc::unavailable, "gives a session token that is none");
    return pass{std::string(token), false};
}

result<http_reply> get(
    const keys_from::instance& service, std::string_view path, const pass& by, const fetch_tools& with
) {
    auto request = request_of(service, path, with);
    if (by.token) request.headers.emplace_back("X-aws-ec2-metadata-token", *by.token);
    auto reply = ask_again(with.by, request, with.options.asking, with.stop);
    if (!reply) return unanswered_by(who, reply.error());
    if (reply->status == 200) return reply;
    if (reply->status == 401 && !by.token && by.lost) {
        return wrong(
            errc::permission_denied,
            "answers nothing without a session token, and its reply with one does not arrive; in a "
            "container, raise the instance's hop limit to 2"
        );
    }
    return reply->status == 404 ? wrong(errc::not_found, "does not know what was asked for")
                                : refused_by(who, *reply);
}

/// The first line of the listing.
result<std::string> role_of(const http_reply& listing) {
    const auto name = without_blanks(std::string_view(listing.body).substr(0, listing.body.find('\n')));
    if (!name.empty() && name.size() <= 128 && is_graphic(name) &&
        name.find_first_of("/?#%<>") == std::string_view::npos)
        return std::string(name);
    return wrong(errc::unavailable, "gives no role's name where it should");
}

}  // namespace

result<aws_keys> fetch_from(const keys_from::instance& service, const fetch_tools& with) {
    const auto by = get_pass(service, with);
    if (!by) return tl::unexpected(by.error());
    const auto listing = get(service, roles, *by, with);
    if (!listing && listing.error().code == errc::not_found)
        return wrong(errc::permission_denied, "knows no role; attach one to the instance");
    if (!listing) return tl::unexpected(listing.error());
    const auto name = role_of(*listing);
    if (!name) return tl::unexpected(name.error());
    const auto reply = get(service, fmt::format("{}{}", roles, *name), *by, with);
    if (!reply) return tl::unexpected(reply.error());
    return read_keys(reply->body, key_dialect::agent, who);
}

}  // namespace millrace::aws
