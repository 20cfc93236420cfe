#include "registry_failure.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace millrace::registry {

namespace {

constexpr std::int64_t subject_unknown = 40401;
constexpr std::int64_t version_unknown = 40402;
constexpr std::int64_t schema_unknown = 40403;
constexpr std::int64_t invalid_version = 42202;

/// Of those that do not name the schema but its subject, as of schemas that others deleted.
failure_kind kind_of_404(const refusal& said, const question& what) {
    if (!said.error_code) return failure_kind::not_a_registry;
    switch (*said.error_code) {
        case subject_unknown:
            return failure_kind::no_such_subject;
        case version_unknown:
            return failure_kind::no_such_version;
        case schema_unknown:
            return failure_kind::no_such_schema;
        case 404:  // of a path that it does not have
            return failure_kind::not_a_registry;
        default:  // softly deleted subjects and versions, and what may come
            return std::holds_alternative<ask_id>(what) ? failure_kind::no_such_schema
                                                        : failure_kind::no_such_subject;
    }
}

failure_kind kind_of(int status, const refusal& said, const question& what) {
    switch (status) {
        case 401:
            return failure_kind::unauthorized;
        case 403:
            return failure_kind::forbidden;
        case 404:
            return kind_of_404(said, what);
        case 408:
            return failure_kind::out_of_order;
        case 405:
        case 406:
        case 415:  // by what does not know this API
            return failure_kind::not_a_registry;
        case 409:
            return failure_kind::incompatible;
        case 422:
            return said.error_code == invalid_version ? failure_kind::no_such_version
                                                      : failure_kind::invalid_schema;
        case 429:
            return failure_kind::throttled;
        default:
            break;
    }
    if (status >= 500 && status <= 599) return failure_kind::out_of_order;
    if (status < 400 || status > 499 || !said.error_code) return failure_kind::not_a_registry;
    return failure_kind::refused;
}

struct advice {
    errc code;
    retry_advice retry;
    std::string_view what_to_do;
};

advice advice_for(failure_kind kind) {
    constexpr auto later = retry_advice::after_delay;
    constexpr auto never = retry_advice::never;
    switch (kind) {
        case failure_kind::unreachable:
            return {errc::unavailable, later, "check that it runs, and the address"};
        case failure_kind::out_of_order:
            return {errc::unavailable, later, "it is tried again; look into the registry's own log"};
        case failure_kind::throttled:
            return {errc::throttled, later, "it is asked more slowly; raise the registry's limit"};
        case failure_kind::unauthorized:
            return {errc::permission_denied, later, "correct the user and password, or the token"};
        case failure_kind::forbidden:
            return {
                errc::permission_denied, later, "let this user read the subject (and write it, to register)"};
        case failure_kind::not_a_registry:
            return {
                errc::corrupt,
                later,
                "check the URL with its path, such as /apis/ccompat/v7, and proxies on the way"};
        case failure_kind::cancelled:
            return {errc::cancelled, never, "it was given up because the process stops"};
        case failure_kind::no_such_subject:
            return {
                errc::not_found, later, "register its schema, or correct the rule that chooses the subject"};
        case failure_kind::no_such_version:
            return {errc::not_found, later, "register it, or correct the version"};
        case failure_kind::no_such_schema:
            return {errc::not_found, later, "register it, or correct the id"};
        case failure_kind::incompatible:
            return {
                errc::conflict,
                never,
                "change the schema, or the compatibility that the registry demands of this subject"};
        case failure_kind::invalid_schema:
            return {errc::invalid_argument, never, "correct the schema"};
        case failure_kind::refused:
        case failure_kind::bad_references:
        case failure_kind::cache_full:
            break;
    }
    return {errc::invalid_argument, never, "correct the question or the registry's settings"};
}

/// What came back when it has no words of its own, without showing it.
std::string shape_of(const http_reply& reply) {
    if (reply.status >= 300 && reply.status <= 399) return "a redirect, which is not followed";
    if (reply.body.empty()) return "no body";
    auto type = std::string(reply.header("Content-Type").substr(0, 60));
    std::replace_if(
        type.begin(), type.end(), [](char c) { return c < ' ' || c > '~'; }, '?'
    );
    return fmt::format("{} bytes of {}", reply.body.size(), type.empty() ? "an unknown type" : type);
}

/// Seconds; a date is taken for nothing, and the usual pauses are kept.
milliseconds retry_after_of(const http_reply& reply) {
    const auto given = reply.header("Retry-After");
    constexpr std::size_t digits_max = 9;
    if (given.empty() || given.size() > digits_max) return milliseconds{0};
    std::int64_t seconds = 0;
    for (const char c : given) {
        if (c < '0' || c > '9') return milliseconds{0};
        seconds = seconds * 10 + (c - '0');
    }
    return milliseconds{seconds * 1'000};
}

}  // namespace

std::string_view name_of(failure_kind kind) noexcept {
    constexpr std::array names{
        "unreachable",
        "out_of_order",
        "throttled",
        "unauthorized",
        "forbidden",
        "not_a_registry",
        "cancelled",
        "no_such_subject",
        "no_such_version",
        "no_such_schema",
        "incompatible",
        "invalid_schema",
        "refused",
        "bad_references",
        "cache_full"};
    return names[static_cast<std::size_t>(kind)];
}

registry_failure judge(const question& what, const http_reply& reply, std::string_view where) {
    const auto said = read_refusal(reply.body);
    const auto kind = kind_of(reply.status, said, what);
    const auto [code, retry, what_to_do] = advice_for(kind);
    registry_failure failure;
    failure.kind = kind;
    failure.why = {
        code,
        retry,
        false,
        fmt::format(
            "the schema registry at {} answered {} to {}: {}; {}",
            where,
            said.error_code && *said.error_code != reply.status
                ? fmt::format("{} ({})", reply.status, *said.error_code)
                : std::to_string(reply.status),
            describe(what),
            said.message.empty() ? shape_of(reply) : fmt::format("\"{}\"", said.message),
            what_to_do
        )};
    if (reply.status == 429 || reply.status == 503) failure.retry_after = retry_after_of(reply);
    return failure;
}

registry_failure judge(const question& what, const error& why) {
    registry_failure failure;
    failure.why = why;
    failure.why.in_doubt = false;  // asked again it has the same effect
    if (why.code == errc::cancelled) {
        failure.kind = failure_kind::cancelled;
        return failure;
    }
    failure.kind = why.code == errc::corrupt ? failure_kind::not_a_registry : failure_kind::unreachable;
    failure.why.retry = retry_advice::after_delay;
    failure.why.detail =
        fmt::format("the schema registry gave no answer to {}: {}", describe(what), why.detail);
    return failure;
}

registry_failure unreadable(error why, std::string_view where) {
    const auto [code, retry, what_to_do] = advice_for(failure_kind::not_a_registry);
    why.code = code;
    why.retry = retry;
    why.detail =
        fmt::format("the schema registry at {} cannot be understood: {}; {}", where, why.detail, what_to_do);
    return {failure_kind::not_a_registry, std::move(why), milliseconds{0}};
}

}  // namespace millrace::registry
