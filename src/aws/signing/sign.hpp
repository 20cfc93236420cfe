/// Signature Version 4 of AWS, in headers.
///
/// Pure: the time is an argument. Paths are normalised and encoded once more, as every service but S3 asks.
#pragma once

#include "keys.hpp"

#include <millrace/time.hpp>

#include <array>
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

/// Signs again and again for one scope. The key that a signature is made with holds for a day and a secret:
/// it is kept until either changes, for it takes four times the work of the signature itself.
class signer {
public:
    signer(std::string region, std::string service)
        : region_(std::move(region)), service_(std::move(service)) {}

    /// As the function of this name.
    [[nodiscard]] header_list sign(const signable& what, const aws_keys& keys, wall_time now);

private:
    void make_key(const std::string& secret, std::string_view day);

    std::string region_;
    std::string service_;
    std::string secret_;  // that `key_` was made of, as the day
    std::string day_;
    std::array<unsigned char, 32> key_{};
};

/// The text whose hash is signed; for tests. `headers` are all that are signed.
[[nodiscard]] std::string canonical_request(const signable& what);

}  // namespace millrace::aws
