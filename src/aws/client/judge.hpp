/// Judges what came back for one attempt: a good reply, or a failure and how it may be followed.
///
/// Pure functions over what the transport gave.
#pragma once

#include "api.hpp"
#include "client/attempts.hpp"
#include "http.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <optional>
#include <string_view>

namespace millrace::aws {

/// What is known of an attempt besides its reply.
struct attempt_facts {
    std::string_view operation;  ///< "Kinesis_20131202.GetRecords"
    std::string_view host;
    wall_time received;      ///< By the clock of this machine.
    milliseconds offset{0};  ///< Of the service's clock, with which it was signed.
};

struct failed_attempt {
    api_failure failure;
    attempt_failure what;
    std::optional<milliseconds> offset;  ///< Of the service's clock, by the reply's date.
};

[[nodiscard]] tl::expected<api_reply, failed_attempt> judge(
    result<http_reply> came, const attempt_facts& facts
);

/// The header Date; nothing when it is absent or malformed.
[[nodiscard]] std::optional<wall_time> date_of(const http_reply& reply);

}  // namespace millrace::aws
