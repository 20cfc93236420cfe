/// What the admin server tells about a running relay or consumer: filled on its loop, read by the server.
/// Thread-safe.
#pragma once

#include <millrace/consumer.hpp>
#include <millrace/relay.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace millrace::app {

/// One figure, by the name that /metrics gives it; several samples where there are several outboxes, or
/// several of what is named.
struct metric {
    struct sample {
        std::vector<std::pair<std::string, std::string>> labels;
        double value{0};
    };

    std::string name;
    std::string help;
    bool counter{false};  ///< Only grows; otherwise a gauge.
    std::vector<sample> samples;
};

class service {
public:
    enum class kind : std::uint8_t { relay, consumer };

    explicit service(kind what) : kind_(what) {}

    /// The sum, and each outbox.
    void update(const relay_status& sum, std::vector<relay_status> outboxes);
    void update(const consumer_status& now);

    /// Why it cannot do its work now; empty when it can. A relay that waits for the lease is ready.
    [[nodiscard]] std::string not_ready() const;

    [[nodiscard]] std::vector<metric> metrics() const;

    /// The same and more as one JSON object.
    [[nodiscard]] std::string status_json() const;

private:
    const kind kind_;
    mutable std::mutex turn_;
    bool seen_{false};
    relay_status sum_;
    std::vector<relay_status> outboxes_;
    consumer_status consumer_;

    [[nodiscard]] std::string why_not_ready() const;
};

}  // namespace millrace::app
