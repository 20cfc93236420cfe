/// Moves the events of an outbox to a sink, at least once and in order per key, while this process leads.
///
/// Any number of relays may run on one outbox: one leads, the others wait and take over in at most a lease
/// time. `run` blocks and needs no other thread of the caller; a relay runs once.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/options.hpp>
#include <millrace/outbox_look.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace millrace {

/// Totals since the start, and gauges.
struct relay_status {
    bool leading{false};
    millrace::epoch epoch;  ///< Of the present or latest lease.
    std::uint64_t published{0};
    std::uint64_t acknowledged{0};
    std::uint64_t deleted{0};  ///< Delivered and gone from the outbox.
    std::uint64_t retried{0};
    std::uint64_t buried{0};  ///< Moved to the dead letters.
    std::uint64_t in_flight{0};
    std::uint64_t gaps{0};  ///< Ranges of ids that may still be filled.

    /// A second old at most while leading. Unknown before the first look.
    std::optional<outbox_look> outbox;

    std::uint64_t duplicates_at_risk{0};  ///< What a crash now would publish again, at most.
    std::uint64_t bytes_in_memory{0};

    /// The latest trouble with anything that is tried again; none once nothing is left to deliver.
    std::optional<error> last_error;
};

struct relay_settings {
    std::string outbox;  ///< `sqlite:PATH`
    std::string sink;    ///< `local:PATH`; the topic of an event names the stream.

    relay_options tuning;
    nanoseconds lease{std::chrono::seconds{5}};  ///< A waiting relay takes over from a dead one in this time.
    millrace::worker_id worker;                  ///< Empty: made from host, process and a random number.

    bool once{false};  ///< Return when nothing deliverable is left.
    /// SIGTERM and SIGINT stop it as the stop token does; a second one ends the process.
    bool stop_on_signals{false};

    log_sink* log{nullptr};  ///< Null: nothing is logged. Must outlive the relay.

    /// Called on the relay's loop, so they must return at once.
    std::function<void(bool leading)> on_leadership;
    std::function<void(const relay_status&)> on_progress;  ///< About four times a second.
};

class relay {
public:
    explicit relay(relay_settings settings);
    ~relay();
    relay(const relay&) = delete;
    relay& operator=(const relay&) = delete;

    /// Works until `stop` is requested (then drains within `tuning.drain_limit` and gives the lease back),
    /// until nothing is left with `once`, or until it cannot go on. Errors: settings (`invalid_config`,
    /// `invalid_argument`), what is missing or unusable, and the refusal that the `stop` policy met.
    [[nodiscard]] result<relay_status> run(const std::stop_token& stop = {});

    /// At most a quarter of a second old. Thread-safe.
    [[nodiscard]] relay_status status() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
