/// What the admin server tells about a running relay or consumer: filled on its loop, read by the server.
/// Thread-safe.
#pragma once

#include <millrace/consumer.hpp>
#include <millrace/relay.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

namespace millrace::app {

/// One figure, by the name that /metrics gives it.
struct metric {
    std::string name;
    std::string help;
    double value{0};
    bool counter{false};  ///< Only grows; otherwise a gauge.
};

class service {
public:
    enum class kind : std::uint8_t { relay, consumer };

    explicit service(kind what);

    void update(const relay_status& now);
    void update(const consumer_status& now);

    /// A relay that leads or waits for the lease; a consumer that has seen its group.
    [[nodiscard]] bool ready() const;

    /// All figures, also those of the state: leading and ready are 0 or 1.
    [[nodiscard]] std::vector<metric> metrics() const;

    /// The same as one JSON object.
    [[nodiscard]] std::string status_json() const;

private:
    mutable std::mutex turn_;
    bool seen_{false};
    std::variant<relay_status, consumer_status> latest_;
};

}  // namespace millrace::app
