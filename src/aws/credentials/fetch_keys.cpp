#include "credentials/fetch_keys.hpp"

#include "credentials/ask.hpp"
#include "credentials/key_document.hpp"
#include "credentials/read_file.hpp"
#include "credentials/run_program.hpp"
#include "credentials/text.hpp"
#include "overload.hpp"

#include <utility>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

constexpr std::size_t token_bytes_max = std::size_t{16} << 10;

/// The value of the header Authorization; empty without one.
result<std::string> authorization(const keys_from::container& agent) {
    std::string token = agent.token;
    if (!agent.token_file.empty()) {
        auto content = read_file(agent.token_file, token_bytes_max);
        if (!content) return tl::unexpected(content.error());
        token = without_blanks(*content);
    }
    const bool one_line = token.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
    if (one_line) return token;
    return fail(
        errc::invalid_config,
        "the container's authorization token has more than one line, so it is not sent; mend it",
        retry_advice::after_delay
    );
}

}  // namespace

result<aws_keys> fetch_from(const keys_from::container& agent, const fetch_tools& with) {
    constexpr std::string_view who = "the container's agent";
    auto token = authorization(agent);
    if (!token) return tl::unexpected(token.error());
    http_request request{
        .url = agent.url,
        .headers = {{"Accept", "application/json"}},
        .timeout = with.options.agent_timeout,
        .proxy = agent.url.starts_with("https:")};
    if (!token->empty()) request.headers.emplace_back("Authorization", std::move(*token));
    const auto reply = ask_again(with.by, request, with.options.asking, with.stop);
    if (!reply) return unanswered_by(who, reply.error());
    if (reply->status != 200) return refused_by(who, *reply);
    return read_keys(reply->body, key_dialect::agent, who);
}

result<aws_keys> fetch_from(const keys_from::program& program, const fetch_tools& with) {
    const auto who = fmt::format("credential_process ({})", shown(program.command.front(), 64));
    const program_limits limits{with.options.program_timeout, with.options.program_bytes_max};
    const auto printed = run_program(program.command, limits, with.stop);
    if (!printed) {
        auto why = printed.error();
        if (why.code != errc::cancelled) why.detail = fmt::format("{} {}", who, why.detail);
        return tl::unexpected(std::move(why));
    }
    return read_keys(*printed, key_dialect::program, who);
}

result<aws_keys> fetch_keys(const key_plan& plan, const fetch_tools& with) {
    auto keys = std::visit(
        overload{
            [](const keys_from::values& values) { return result<aws_keys>(values.keys); },
            [&](const keys_from::web_identity& identity) {
                return fetch_by_web_identity(identity, plan.sts, with);
            },
            [&](const auto& origin) { return fetch_from(origin, with); }},
        plan.origin
    );
    for (const auto& as : plan.roles) {
        if (!keys) break;
        keys = fetch_by_role(as, *keys, plan.sts, with);
    }
    return keys;
}

}  // namespace millrace::aws
