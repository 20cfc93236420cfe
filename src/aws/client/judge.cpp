#include "client/judge.hpp"

#include "client/classify.hpp"
#include "client/error_body.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <curl/curl.h>
#include <fmt/format.h>
#include <zlib.h>

namespace millrace::aws {

namespace {

/// Below, a date says nothing: it is in whole seconds, and a reply may take a while.
constexpr auto offset_noise = std::chrono::seconds{30};

/// "GetRecords" of "Kinesis_20131202.GetRecords".
std::string_view name_of_operation(std::string_view target) {
    return target.substr(target.rfind('.') + 1);
}

bool wrong_checksum(const http_reply& reply) {
    const auto given = reply.header("x-amz-crc32");
    if (given.empty()) return false;
    std::uint32_t expected = 0;
    const auto read = std::from_chars(given.data(), given.data() + given.size(), expected);
    if (read.ec != std::errc() || read.ptr != given.data() + given.size()) return true;
    const auto* const bytes = reinterpret_cast<const Bytef*>(reply.body.data());
    return crc32_z(0, bytes, reply.body.size()) != expected;
}

/// A page of a proxy or a gate that answers instead of the service, with status 200.
bool is_page(const http_reply& reply) {
    return reply.header("Content-Type").starts_with("text/html") && reply.body.starts_with('<');
}

failed_attempt bad_reply(http_reply reply, const attempt_facts& facts, std::string_view why) {
    return {
        {{errc::unavailable,
          retry_advice::after_delay,
          true,
          fmt::format("{} at {}: {}", name_of_operation(facts.operation), facts.host, why)},
         {},
         {},
         std::move(reply.body),
         reply.status},
        {failure_class::transient, true, false},
        {}};
}

failed_attempt no_reply(error why, const attempt_facts& facts) {
    const auto kind = why.code == errc::unavailable ? failure_class::transient : failure_class::final;
    const bool effect_possible = why.in_doubt;
    why.detail = fmt::format("{}: {}", name_of_operation(facts.operation), why.detail);
    return {{std::move(why), {}, {}, {}, 0}, {kind, effect_possible, false}, {}};
}

failed_attempt refused(http_reply reply, const attempt_facts& facts) {
    auto said = read_error(reply.header("Content-Type"), reply.header("x-amzn-ErrorType"), reply.body);
    const auto means = classify(reply.status, said.type, said.message);
    auto detail = fmt::format("{} at {}: ", name_of_operation(facts.operation), facts.host);
    if (said.type.empty()) {
        detail += fmt::format("HTTP status {}", reply.status);
    } else {
        detail += said.type;
        if (!said.message.empty()) detail += ": " + shown_message(said.message);
    }
    detail.append("; ").append(means.advice);

    failed_attempt out{
        {{means.code, means.retry, means.effect_possible, std::move(detail)},
         std::move(said.type),
         std::move(said.message),
         {},
         reply.status},
        {means.kind, means.effect_possible, false},
        {}};
    if (means.kind == failure_class::clock_skew) {
        if (const auto date = date_of(reply)) {
            out.offset = *date - facts.received;
            const auto moved = *out.offset - facts.offset;
            out.what.clock_was_wrong = moved >= offset_noise || moved <= -offset_noise;
        }
    }
    out.failure.body = std::move(reply.body);
    return out;
}

}  // namespace

std::optional<wall_time> date_of(const http_reply& reply) {
    const std::string text(reply.header("Date"));
    if (text.empty()) return std::nullopt;
    const auto seconds = curl_getdate(text.c_str(), nullptr);
    if (seconds == -1) return std::nullopt;
    return wall_time(std::chrono::seconds(seconds));
}

tl::expected<api_reply, failed_attempt> judge(result<http_reply> came, const attempt_facts& facts) {
    if (!came) return tl::unexpected(no_reply(std::move(came.error()), facts));
    if (wrong_checksum(*came)) {
        return tl::unexpected(bad_reply(
            std::move(*came),
            facts,
            "the reply's checksum is wrong: it was damaged on the way; it is tried again"
        ));
    }
    if (came->status < 200 || came->status > 299) return tl::unexpected(refused(std::move(*came), facts));
    if (is_page(*came)) {
        return tl::unexpected(bad_reply(
            std::move(*came),
            facts,
            "a web page came instead of a reply; check the endpoint, and proxies between"
        ));
    }
    const auto date = date_of(*came).value_or(facts.received + facts.offset);
    auto content_type = std::string(came->header("Content-Type"));
    return api_reply{std::move(came->body), std::move(content_type), date};
}

}  // namespace millrace::aws
