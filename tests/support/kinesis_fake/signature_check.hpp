/// Whether a request is signed as the service wants it (Signature Version 4), worked out apart from the
/// library.
///
/// More than the service: every `x-amz-` header must be signed. Pure functions.
#pragma once

#include "support/kinesis_fake/stream_model.hpp"

#include <millrace/time.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::kinesis_fake {

struct signed_request {
    std::map<std::string, std::string> headers;  ///< Names in lower case.
    std::string body;
};

/// A header's value; empty when it is missing.
[[nodiscard]] std::string header_of(const signed_request& what, const std::string& name);

/// Nothing when the request may be served at `now` (five minutes either way). An empty secret checks all but
/// the signature itself.
[[nodiscard]] std::optional<refusal> check_signature(
    const signed_request& what, std::string_view secret, wall_time now
);

}  // namespace millrace::kinesis_fake
