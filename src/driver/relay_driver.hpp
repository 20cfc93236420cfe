/// Carries out the relay machine on an outbox and a sink while this process holds the outbox's lease.
///
/// Lives on the loop.
#pragma once

#include "port/event_sink.hpp"
#include "port/host.hpp"
#include "port/outbox_source.hpp"
#include "relay/options.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace millrace {

/// Totals since the start, and gauges.
struct relay_counters {
    std::uint64_t read{0};
    std::uint64_t published{0};  ///< Handed to the sink.
    std::uint64_t acknowledged{0};
    std::uint64_t deleted{0};
    std::uint64_t retried{0};
    std::uint64_t buried{0};  ///< Moved to the dead letters.
    std::uint64_t window_rebuilds{0};
    std::uint64_t in_flight{0};  ///< Now.
    std::uint64_t bytes_in_memory{0};
    std::uint64_t gaps{0};                ///< Ranges of ids that may still be filled, now.
    std::uint64_t duplicates_at_risk{0};  ///< Acknowledged but not yet deleted, and in flight, now.
};

class relay_driver {
public:
    /// `may_act` checks the lease's deadline. All references must outlive the driver.
    relay_driver(
        host& loop,
        outbox_source& source,
        event_sink& sink,
        relay_options options,
        std::function<bool()> may_act
    );
    ~relay_driver();

    /// Begins under a lease of this epoch, with an empty window.
    void start(epoch mine);

    /// Publishes nothing more, waits for what is in flight, deletes what was acknowledged. Completes at the
    /// drain limit at the latest, then with an error that says how many rows may come twice.
    void drain(completion<void> done);

    /// The lease is gone: forgets everything at once and purges the sink.
    void halt();

    /// Everything deliverable has been delivered and deleted. False before the first complete look.
    [[nodiscard]] bool empty() const;
    [[nodiscard]] relay_counters counters() const;

    /// Called when the `stop` policy meets a row that the sink refuses; the relay then does nothing more.
    void on_stopped(std::function<void(const error&)> what);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
