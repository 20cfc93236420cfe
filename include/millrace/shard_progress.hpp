/// How one shard that a worker holds gets on.
#pragma once

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <optional>

namespace millrace {

/// Totals since the shard was taken, and gauges.
struct shard_progress {
    shard_id shard;
    millrace::epoch epoch;
    std::uint64_t reads{0};  ///< Requests for records, also those that failed.
    std::uint64_t reads_throttled{0};
    std::uint64_t reads_failed{0};  ///< Of them and of openings; throttled ones are not among them.
    std::uint64_t records_read{0};
    std::uint64_t bytes_read{0};
    std::uint64_t records_acknowledged{0};

    /// How far what was read last lies behind the newest record; with `failing`, during which there may be
    /// more.
    milliseconds behind{0};

    /// How long no read has succeeded because requests fail or are not answered; 0 while they succeed.
    nanoseconds failing{0};

    /// How long nothing was acknowledged although records wait for it: what the handler takes, and how long
    /// it has failed or stood still.
    nanoseconds blocked{0};

    /// Until the stream drops the oldest record that is not acknowledged, below zero once it may be gone.
    /// Nothing when the stream keeps everything, or its retention is not known yet.
    std::optional<nanoseconds> retention_left;
};

}  // namespace millrace
