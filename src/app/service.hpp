/// What the admin server tells about a running relay or consumer: filled on its loop, read by the server.
///
/// The loop is to be heard of several times a second. Silent for longer than a limit, it stands still, and
/// whatever it last told is no longer believed. Thread-safe.
#pragma once

#include "event_loop.hpp"

#include <millrace/consumer.hpp>
#include <millrace/relay.hpp>
#include <millrace/time.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
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

    /// The limit of a loop's silence, by its lease: after that, another may lead.
    static nanoseconds silence_limit(nanoseconds lease) {
        return std::max<nanoseconds>(std::chrono::seconds{5}, lease);
    }

    explicit service(
        kind what,
        nanoseconds silence = silence_limit(nanoseconds{0}),
        std::function<mono_time()> clock = boot_now
    )
        : kind_(what), silence_(silence), clock_(std::move(clock)), heard_at_(clock_()) {}

    /// Where the count of dropped log lines comes from. Before anybody asks.
    void count_dropped_lines(std::function<std::uint64_t()> by) { dropped_lines_ = std::move(by); }

    /// The sum, and each outbox.
    void update(const relay_status& sum, std::vector<relay_status> outboxes);
    void update(const consumer_status& now);

    /// Why the process should be ended and started anew; empty while it works or waits for something.
    [[nodiscard]] std::string not_healthy() const;

    /// Why it cannot do its work now; empty when it can. A relay that waits for the lease is ready.
    [[nodiscard]] std::string not_ready() const;

    [[nodiscard]] std::vector<metric> metrics() const;

    /// The same and more as one JSON object.
    [[nodiscard]] std::string status_json() const;

private:
    const kind kind_;
    const nanoseconds silence_;
    const std::function<mono_time()> clock_;
    std::function<std::uint64_t()> dropped_lines_;
    mutable std::mutex turn_;
    mono_time heard_at_;
    bool seen_{false};
    relay_status sum_;
    std::vector<relay_status> outboxes_;
    consumer_status consumer_;

    [[nodiscard]] std::string why_not_healthy() const;
    [[nodiscard]] std::string why_not_ready() const;
    [[nodiscard]] relay_status believed(relay_status s) const;
};

}  // namespace millrace::app
