/// The settings of reading and handling shards, of a group, of a relay, and of who leads.
///
/// Plain values with defaults that suit most uses. Durations are positive and at most a year; `validate`
/// names the field that is wrong, its value and the limit.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

using namespace std::chrono_literals;

/// Where a group begins to read a shard that has no checkpoint.
enum class start_policy : std::uint8_t { trim_horizon, latest, at_timestamp };

/// The settings of a group.
struct group_options {
    /// How a shard without a checkpoint is begun. Only the group's first start decides; a later, different
    /// value is ignored with a warning.
    start_policy start{start_policy::trim_horizon};
    std::optional<wall_time> start_at;  ///< For `at_timestamp`.

    nanoseconds tick{300ms};                    ///< Between two listings of the workers; at most 500 ms.
    nanoseconds shard_list_every{30s};          ///< Shard rows are listed at least so often.
    nanoseconds discover_every{30s};            ///< The stream's shards are listed at least so often.
    nanoseconds checkpoint_every{1s};           ///< The age of an acknowledgement that is not yet written.
    std::uint64_t checkpoint_records{10'000};   ///< So many unwritten acknowledgements are written at once.
    std::uint32_t checkpoints_per_second{200};  ///< Budget of this worker over all its shards.
    nanoseconds drain_limit{10s};  ///< A shard to be given back waits so long for its acknowledgements.
    nanoseconds tidy_after{std::chrono::hours{1}};  ///< Finished rows whose shard is unlisted for so long go.

    /// One process, no session: takes every shard, is refused by live sessions and by a second process.
    bool all_shards{false};

    [[nodiscard]] result<void> validate() const;
};

/// What is done with a record that the handler fails on.
enum class failure_policy : std::uint8_t { retry, stop, dead_letter };

/// Who writes the checkpoints of a shard: the runtime, from what is acknowledged, or the handler, in the
/// transaction of its effects (`postgres_checkpoint.hpp`).
enum class checkpoint_writer : std::uint8_t { runtime, handler };

/// The settings of reading and handling shards.
struct shard_options {
    /// `handler` needs a state in PostgreSQL and workers that share the shards. Acknowledgements then move
    /// no checkpoint; they still free memory and let a shard be finished or given back.
    checkpoint_writer checkpoints{checkpoint_writer::runtime};

    failure_policy on_failure{failure_policy::retry};
    std::uint32_t dead_letter_after{3};  ///< Attempts before a record is given up; `dead_letter` only.
    nanoseconds retry_min{100ms};  ///< First pause after a failure; doubles up to `retry_max`, with jitter.
    nanoseconds retry_max{30s};

    std::size_t batch_records{1'000};    ///< Handed to the handler at once, at most.
    std::size_t read_records{10'000};    ///< Of one read.
    std::size_t read_bytes{1 << 20};     ///< Of one read.
    std::size_t reads_in_flight{32};     ///< Requests to the stream at a time, over all shards.
    std::size_t memory_bytes{16 << 20};  ///< Of all records read and not yet acknowledged, over all shards.
    std::size_t shard_unacknowledged{50'000};  ///< Records of one shard that wait for an acknowledgement.

    nanoseconds read_interval{0ms};  ///< Shortest time between two reads of a shard that has more.
    nanoseconds tip_interval{1s};    ///< Between two reads at the tip when the source signals no change.

    /// Of one shard, by all who read it; 0: no limit. Empty: what the stream allows, which is 5 reads and
    /// 2 MiB for Kinesis and no limit for others.
    std::optional<std::uint64_t> reads_per_second;
    std::optional<std::uint64_t> read_bytes_per_second;

    nanoseconds backoff_min{100ms};  ///< After a throttled or failed read; doubles up to `backoff_max`.
    nanoseconds backoff_max{10s};

    [[nodiscard]] result<void> validate() const;
};

/// What is done with a row that the sink will never take.
enum class poison_policy : std::uint8_t { park_row, park_key, stop };

/// The settings of a relay.
struct relay_options {
    poison_policy on_poison{poison_policy::park_key};
    std::uint32_t max_attempts{0};  ///< Verdicts that may mend, before the policy applies; 0: for ever.
    nanoseconds retry_min{100ms};   ///< Doubles up to `retry_max`, with jitter.
    nanoseconds retry_max{30s};

    std::size_t fetch_rows{8'000};  ///< Of one read-ahead.
    std::size_t fetch_bytes{3 << 20};
    std::size_t window_rows{20'000};  ///< Read and not yet deleted.
    std::size_t window_bytes{8 << 20};
    std::size_t client_window_rows{
        10'000};  ///< Handed to the sink and not yet acknowledged: what a zombie can still publish.
    std::size_t client_window_bytes{4 << 20};
    std::uint64_t rows_per_second{0};  ///< Handed to the sink, retries included; 0: no limit.
    std::size_t delete_rows{1'000};    ///< Of one DELETE: how long writers can be made to wait.
    nanoseconds delete_delay{20ms};    ///< An acknowledged row is deleted within this time.
    std::size_t gaps_max{1'000};       ///< Above, neighbouring gaps are merged and re-scanned as a range.
    std::size_t probes_in_flight{16};  ///< Suspect rows that are sent alone at a time.

    nanoseconds poll_min{1ms};   ///< While rows arrive; up to ten times as long while many do.
    nanoseconds poll_max{50ms};  ///< While idle, when the source signals no change.
    nanoseconds gap_probe_every{100ms};
    nanoseconds sweep_every{60s};  ///< A slow re-read from the head, for ids that no proof can cover.
    double sweep_share{0.1};       ///< Largest share of time that a sweep may take.
    nanoseconds drain_limit{5s};

    [[nodiscard]] result<void> validate() const;
};

/// By what relays agree on who leads: a lease in a database, or the group protocol of goharvest on Kafka.
enum class leadership_way : std::uint8_t { lease, kafka_group };

/// How the relays of an outbox agree on who leads.
struct leadership_options {
    leadership_way by{leadership_way::lease};

    /// A leader whose requests go unanswered for so long gives way to another relay that waits; 1 s to 1 h.
    nanoseconds yield_after{30s};

    // Of `kafka_group` alone; groups and topics are 1 to 249 of a-z A-Z 0-9 . _ -
    std::string kafka;  ///< `kafka://…` of the cluster that elects; empty: the sink's.
    std::string group;  ///< As goharvest's leaderGroupID. Needed; it must be of this outbox's relays alone.
    std::string topic;  ///< As goharvest's leaderTopic; empty: `<group>.neli`. Made if it is missing.
    std::string name;   ///< In heartbeats, without %; empty: the worker's.

    /// A leader without a confirmed heartbeat for so long stops; a dead one is replaced after three times
    /// this, which the broker must allow as a session time-out (6 s to 30 min by default). 1 s to 5 min.
    nanoseconds heartbeat_timeout{5s};

    [[nodiscard]] result<void> validate() const;
};

}  // namespace millrace
