/// Signature Version 4 of AWS, in headers.
///
/// Pure: the time is an argument. Paths are normalised and encoded once more, as every service but S3 asks.
#pragma once

#include "keys.hpp"

#include <millrace/time.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::aws {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// What is signed. Every header given is, so give none that a proxy may change.
struct signable {
    std::string_view method;
    std::string_view path;   ///< As it goes over the wire; empty is "/".
    std::string_view query;  ///< The same, without "?"; any order.
    std::span<const std::pair<std::string, std::string>> headers;  ///< With "Host", without those of below.
    std::string_view body;
};

/// For whom: "eu-west-1" and "kinesis".
struct signing_scope {
    std::string_view region;
    std::string_view service;
};

/// The headers to add: X-Amz-Date, X-Amz-Security-Token where the keys have one, Authorization.
[[nodiscard]] header_list sign(
    const signable& what, const aws_keys& keys, const signing_scope& scope, wall_time now
);

/// The text whose hash is signed; for tests. `headers` are all that are signed.
[[nodiscard]] std::string canonical_request(const signable& what);

}  // namespace millrace::aws
