/// A Kinesis API over HTTP/1.1 on a free port of this machine, within the process of the test.
///
/// One thread serves all connections. The model, the faults and the counts are looked at and changed by
/// `with`, also while requests come; several servers may run at once. Ends with the object.
#pragma once

#include "support/kinesis_fake/fault_plan.hpp"
#include "support/kinesis_fake/operations.hpp"
#include "support/kinesis_fake/stream_model.hpp"

#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace millrace::kinesis_fake {

struct server_options {
    model_limits limits{};
    std::uint64_t seed{1};
    milliseconds clock_skew{0};    ///< Of the service's clock, and so of `Date`, against the machine's.
    bool speaks_cbor{true};        ///< Otherwise only JSON, as some stand-ins of the service.
    std::string secret{"secret"};  ///< Signatures are checked against it; empty: their form and time alone.
};

class server {
public:
    explicit server(server_options options = {});
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string endpoint() const;  ///< `http://127.0.0.1:PORT`

    /// `kinesis://us-east-1/STREAM?endpoint=…`
    [[nodiscard]] std::string url(const std::string& stream) const;
    [[nodiscard]] std::string sink_url() const;  ///< The same without a stream.

    struct inside {
        stream_model& model;
        fault_plan& faults;
    };
    /// While no request is served.
    void with(const std::function<void(inside)>& what);

    /// Requests for an operation, for one shard or (empty) for all together.
    [[nodiscard]] std::uint64_t requests(const std::string& operation, const std::string& shard = {}) const;

    /// Requests that had a fault of the plan.
    [[nodiscard]] std::uint64_t faults_drawn() const;

    /// Advances the service's clock against the machine's.
    void shift_clock(milliseconds by);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::kinesis_fake
