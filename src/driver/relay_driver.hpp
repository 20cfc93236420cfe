/// Carries out the relay machine on an outbox and a sink while this process holds the outbox's lease.
///
/// Lives on the loop.
#pragma once

#include "group/give_way.hpp"
#include "port/event_sink.hpp"
#include "port/host.hpp"
#include "port/outbox_source.hpp"
#include "relay/counters.hpp"
#include "relay/options.hpp"
#include "relay/overdue.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

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

    /// The lease is gone: forgets everything at once and purges the sink, rows on probe included.
    void halt();

    /// Everything deliverable has been delivered and deleted. False before the first complete look.
    [[nodiscard]] bool empty() const;
    [[nodiscard]] relay_counters counters() const;

    /// The latest trouble with anything that is tried again; none once nothing is left to deliver.
    [[nodiscard]] std::optional<error> last_error() const;

    /// What the outbox has not done for longest with rows that are done with.
    [[nodiscard]] std::optional<overdue> late() const;

    /// Whether the sink and the outbox answer, since the present start.
    [[nodiscard]] seat_reach reach() const;

    /// The first rows that went to the dead letters since this driver was made, at most `named_max`.
    static constexpr std::size_t named_max = 20;
    [[nodiscard]] const std::vector<row_id>& first_buried() const;

    /// The lowest rows that were read and are neither deleted nor parked, at most `named_max`.
    [[nodiscard]] std::vector<row_id> unsettled() const;

    /// Called when the `stop` policy meets a row that the sink refuses, and with `not_owner` when the outbox
    /// refuses this epoch; the relay then publishes nothing more until `start`.
    void on_stopped(std::function<void(const error&)> what);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
