/// Decides when the session of another worker is over, by watching its counter on this machine's own clock.
///
/// A counter has stood still from the reply that first showed it to the sending of the latest request that
/// still showed it; beyond the lease time in that row the session has lapsed. A process of this very machine
/// that is gone needs no waiting. A row that cannot be read is renewed by nobody, or becomes readable by
/// that: it counts by what is known of its lease, and for the longest one where nothing is. Whoever acts on
/// it first ends the session (delete-if that counter); only then may its shards be taken. Lives on one
/// thread.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace millrace {

/// Whose lease it is, and when it will have lapsed unless a heartbeat is seen before; as of the latest
/// listing.
struct lease_holder {
    worker_id worker;
    mono_time until;
};

class lapse_observer {
public:
    using process_gone = std::function<bool(const process_identity&)>;

    /// `gone` is only asked about processes of the same boot and PID namespace as `self`.
    lapse_observer(process_identity self, process_gone gone)
        : self_(std::move(self)), gone_(std::move(gone)) {}

    /// Takes in a listing; returns the rows whose sessions are to be ended, as listed.
    [[nodiscard]] std::vector<worker_row> observe(
        mono_time sent, mono_time replied, const std::vector<worker_row>& rows
    );

    /// Whether a session counted as over in the latest listing.
    [[nodiscard]] bool lapsed(const incarnation& session) const;

    /// Empty when the session was not listed or counted as over.
    [[nodiscard]] std::optional<lease_holder> holder(const incarnation& session) const;

    /// The session's process ran on this machine and has ended.
    [[nodiscard]] bool gone_here(const worker_row& row) const;

private:
    struct sighting {
        version counter;
        nanoseconds lease;
        mono_time first_shown;
        lease_holder holder;
        bool over{false};
    };

    [[nodiscard]] static nanoseconds lease_of(const worker_row& row, const sighting* known);

    process_identity self_;
    process_gone gone_;
    std::map<incarnation, sighting> seen_;
};

}  // namespace millrace
