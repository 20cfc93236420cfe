/// Why a registry gave no schema, by kind: what is retried, what is tried at another address, what is told to
/// whoever asked.
///
/// Pure functions; plain data. A failure shows the registry's own words, cut to 1,000 bytes, and never a
/// body.
#pragma once

#include "http.hpp"
#include "registry_codec.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace::registry {

enum class failure_kind : std::uint8_t {
    // Of the registry, whatever is asked: retried for as long as anybody waits.
    unreachable,     ///< No connection, no trust in its certificate, or no reply in time.
    out_of_order,    ///< 5xx.
    throttled,       ///< 429.
    unauthorized,    ///< 401: the credentials are wrong or missing.
    forbidden,       ///< 403: they do not suffice.
    not_a_registry,  ///< What came back is nothing that a registry says: a redirect, a page, a broken reply.
    cancelled,       ///< This side stops.
    // Answers: told to whoever asked.
    no_such_subject,  ///< 404 with 40401.
    no_such_version,  ///< 404 with 40402.
    no_such_schema,   ///< 404 with 40403: no such id, or not under this subject.
    incompatible,     ///< 409: the schema was not registered.
    invalid_schema,   ///< 422, except for a bad version.
    refused,          ///< Any other 4xx, or a question that cannot be asked.
    // Found here, and likewise told.
    bad_references,  ///< They form a circle, or go beyond the limits.
    cache_full       ///< Every schema that the cache may hold is being waited for.
};

inline constexpr std::size_t failure_kinds = static_cast<std::size_t>(failure_kind::cache_full) + 1;

/// Stable lower-case names, for logs.
[[nodiscard]] std::string_view name_of(failure_kind kind) noexcept;

/// The registry is at fault, not what was asked; nothing can be said about the schema.
[[nodiscard]] constexpr bool is_trouble(failure_kind kind) noexcept {
    return kind <= failure_kind::cancelled;
}

/// Another address of the same registry may do better.
[[nodiscard]] constexpr bool another_may_answer(failure_kind kind) noexcept {
    return kind == failure_kind::unreachable || kind == failure_kind::out_of_order ||
           kind == failure_kind::not_a_registry;
}

struct registry_failure {
    failure_kind kind{failure_kind::unreachable};
    error why;
    milliseconds retry_after{0};  ///< What the registry asked for, in a 429 or 503; 0: nothing.

    bool operator==(const registry_failure&) const = default;
};

/// A reply of any status but 200. `where` is the registry's base URL.
[[nodiscard]] registry_failure judge(const question& what, const http_reply& reply, std::string_view where);

/// A request without a reply.
[[nodiscard]] registry_failure judge(const question& what, const error& why);

/// A reply of status 200 that cannot be read.
[[nodiscard]] registry_failure unreadable(error why, std::string_view where);

}  // namespace millrace::registry
