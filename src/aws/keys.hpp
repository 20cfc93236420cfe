/// The keys that requests are signed with, and where they come from.
///
/// `aws_keys` is plain data and holds secrets: it is never logged or shown. Sources are thread-safe.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace millrace::aws {

struct aws_keys {
    std::string access_key;
    std::string secret_key;
    std::string session_token;         ///< Empty for long-term keys.
    std::optional<wall_time> expires;  ///< By this machine's clock, where the issuer's is known.

    bool operator==(const aws_keys&) const = default;
};

class key_source {
public:
    virtual ~key_source() = default;

    /// `done` is called once, on any thread, and may be called inside `get` when the keys are cached.
    virtual void get(std::function<void(result<aws_keys>)> done) = 0;

    /// The service says that these are expired or unknown: the next `get` gives others where there are any.
    virtual void refused(const aws_keys& which) = 0;
};

/// Always the same keys.
class fixed_keys final : public key_source {
public:
    explicit fixed_keys(aws_keys keys) : keys_(std::move(keys)) {}

    void get(std::function<void(result<aws_keys>)> done) override { done(keys_); }
    void refused(const aws_keys& /*which*/) override {}

private:
    aws_keys keys_;
};

}  // namespace millrace::aws
