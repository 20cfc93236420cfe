/// The settings of reading and handling shards.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace {

using namespace std::chrono_literals;

/// What is done with a record that the handler fails on.
enum class failure_policy : std::uint8_t { retry, stop, dead_letter };

struct shard_options {
    failure_policy on_failure{failure_policy::retry};
    std::uint32_t dead_letter_after{3};  ///< Attempts before a record is given up; `dead_letter` only.
    nanoseconds retry_min{100ms};  ///< First pause after a failure; doubles up to `retry_max`, with jitter.
    nanoseconds retry_max{30s};

    std::size_t batch_records{1'000};    ///< Handed to the handler at once, at most.
    std::size_t read_records{10'000};    ///< Of one read.
    std::size_t read_bytes{1 << 20};     ///< Of one read.
    std::size_t memory_bytes{16 << 20};  ///< Of all records read and not yet acknowledged, over all shards.
    std::size_t shard_unacknowledged{50'000};  ///< Records of one shard that wait for an acknowledgement.

    nanoseconds read_interval{0ms};  ///< Shortest time between two reads of a shard that has more.
    nanoseconds tip_interval{1s};    ///< Between two reads at the tip when the source signals no change.
    nanoseconds backoff_min{100ms};  ///< After a throttled or failed read; doubles up to `backoff_max`.
    nanoseconds backoff_max{10s};

    [[nodiscard]] result<void> validate() const;
};

}  // namespace millrace
