/// Asks by HTTP and waits, for the thread that fetches keys.
///
/// Thread-safe. A wait ends at once when the stop token is told to.
#pragma once

#include "http.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <stop_token>
#include <string_view>

namespace millrace::aws {

/// The reply, whatever its status; `cancelled` after a stop.
[[nodiscard]] result<http_reply> ask(http& by, const http_request& what, const std::stop_token& stop);

/// How often a question is put, and how long the first pause is; each further one is twice as long.
struct persistence {
    std::uint32_t attempts{3};
    milliseconds pause{100};
};

/// As above, again while nothing answers or the status is 429 or 5xx.
[[nodiscard]] result<http_reply> ask_again(
    http& by, const http_request& what, persistence how, const std::stop_token& stop
);

/// An answer that is none of those expected: `the container answers 403`, with the advice to try again later.
[[nodiscard]] tl::unexpected<error> refused_by(std::string_view who, const http_reply& reply);

/// Nobody answered: the reason, behind who was asked.
[[nodiscard]] tl::unexpected<error> unanswered_by(std::string_view who, error why);

}  // namespace millrace::aws
