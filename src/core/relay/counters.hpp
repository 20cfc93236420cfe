/// What a relay has done and holds. Plain numbers; exporters read them.
#pragma once

#include <cstdint>

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
    std::uint64_t awaiting{0};            ///< Rows of lanes whose first row awaits something, now.
};

}  // namespace millrace
