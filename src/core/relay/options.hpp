/// The settings of a relay.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace {

using namespace std::chrono_literals;

/// What is done with a row that the sink will never take.
enum class poison_policy : std::uint8_t { park_row, park_key, stop };

struct relay_options {
    poison_policy on_poison{poison_policy::park_key};
    std::uint32_t max_attempts{0};  ///< Verdicts that may mend, before the policy applies; 0: for ever.
    nanoseconds retry_min{100ms};   ///< Doubles up to `retry_max`, with jitter.
    nanoseconds retry_max{30s};

    std::size_t fetch_rows{2'000};  ///< Of one read-ahead.
    std::size_t fetch_bytes{1 << 20};
    std::size_t window_rows{20'000};  ///< Read and not yet deleted.
    std::size_t window_bytes{8 << 20};
    std::size_t client_window_rows{
        10'000};  ///< Handed to the sink and not yet acknowledged: what a zombie can still publish.
    std::size_t client_window_bytes{4 << 20};
    std::size_t delete_rows{1'000};    ///< Of one DELETE: how long writers can be made to wait.
    nanoseconds delete_delay{20ms};    ///< An acknowledged row is deleted within this time.
    std::size_t gaps_max{1'000};       ///< Above, neighbouring gaps are merged and re-scanned as a range.
    std::size_t probes_in_flight{16};  ///< Suspect rows that are sent alone at a time.

    nanoseconds poll_min{1ms};   ///< While rows arrive.
    nanoseconds poll_max{50ms};  ///< While idle, when the source signals no change.
    nanoseconds gap_probe_every{100ms};
    nanoseconds sweep_every{60s};  ///< A slow re-read from the head, for ids that no proof can cover.
    double sweep_share{0.1};       ///< Largest share of time that a sweep may take.
    nanoseconds drain_limit{5s};

    [[nodiscard]] result<void> validate() const;
};

}  // namespace millrace
