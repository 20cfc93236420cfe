/// Whether a leader gives way to a relay that waits: whoever it asks does not answer this process, and might
/// answer another.
///
/// Sinks and outboxes are judged apart. Where one process leads several outboxes, an answer to any of them
/// shows that the process reaches the servers, so that moving away would mend nothing. Pure.
#pragma once

#include <millrace/time.hpp>

#include <optional>
#include <span>

namespace millrace {

struct reach {
    std::optional<mono_time> silent_since;
    std::optional<mono_time> answered;  ///< Last.
};

/// Of one outbox that is led.
struct seat_reach {
    reach sink;
    reach outbox;
};

/// `led` under one membership: what gives way gives way with all of it.
[[nodiscard]] bool gives_way(
    mono_time now, std::span<const seat_reach> led, bool others_wait, nanoseconds yield_after
);

}  // namespace millrace
