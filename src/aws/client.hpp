/// The client of one AWS service in one region.
///
/// Signs each request, sends it over pooled connections, judges what comes back (`classify.hpp`), and repeats
/// what may be repeated (`attempts.hpp`). It has one thread, on which every outcome is told: an outcome that
/// takes long there delays all others of this client, so adapters that must not wait for each other have a
/// client each. All functions are thread-safe.
#pragma once

#include "api.hpp"
#include "keys.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace millrace::aws {

struct client_options {
    std::string service;   ///< As it signs: "kinesis", "dynamodb".
    std::string region;    ///< "eu-west-1".
    std::string endpoint;  ///< "http://127.0.0.1:4567"; empty: AWS's own for service and region.

    std::size_t connections_max{32};  ///< And requests under way; further ones wait. HTTP/2 shares one.
    std::size_t requests_max{4'096};  ///< Waiting or under way; above, a request fails with `throttled`.
    std::size_t reply_bytes_max{std::size_t{24} << 20};  ///< 10 MiB of records are up to 17 in JSON.

    milliseconds connect_timeout{3'000};  ///< For name, connection and TLS together.
    milliseconds stall_timeout{5'000};    ///< A repeatable attempt fails when no byte moves for so long.

    std::uint32_t attempts_max{8};        ///< Of one request, within its own time-out.
    milliseconds throttled_pause{500};    ///< Ceiling of the first pause; doubles, with full jitter.
    milliseconds transient_pause{100};    ///< The same after other failures.
    milliseconds pause_max{5'000};        ///< Ceiling of any pause.
    std::uint32_t retries_in_store{500};  ///< Retries beyond a tenth of the requests, until successes refill.

    /// PEM file of the authorities to trust; empty: AWS_CA_BUNDLE, and without it the system's.
    std::string ca_file;

    [[nodiscard]] result<void> validate() const;
};

class client final : public api {
public:
    /// The options must be valid.
    client(client_options options, std::shared_ptr<key_source> keys);

    /// Completes what is not done with `cancelled`, and does not wait for the network. Not inside a `done`.
    ~client() override;
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    void send(api_request what, api_done done) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::aws
