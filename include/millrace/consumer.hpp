/// Reads a stream as one worker of a group and gives the records to a handler, in order per key.
///
/// Each shard is processed by one worker at a time, from its checkpoint; shards move when workers come and
/// go. `run` blocks; handlers run on threads of the consumer. A consumer runs once.
#pragma once

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/options.hpp>
#include <millrace/shard_progress.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace millrace {

/// Totals since the start, and gauges.
struct consumer_status {
    std::size_t shards{0};   ///< Held now.
    std::size_t index{0};    ///< Of this worker among the live ones; advisory.
    std::size_t total{0};    ///< Live workers; 0 before the first listing.
    std::uint64_t reads{0};  ///< Requests for records, also those that failed.
    std::uint64_t reads_throttled{0};
    std::uint64_t reads_failed{0};  ///< Of them and of openings; throttled ones are not among them.
    std::uint64_t records_read{0};
    std::uint64_t bytes_read{0};
    std::uint64_t aggregates{0};           ///< Of the Kinesis Producer Library, opened.
    std::uint64_t sub_records{0};          ///< In them, those left out included.
    std::uint64_t sub_records_foreign{0};  ///< Left out: they belong to another shard.
    std::uint64_t records_acknowledged{0};
    std::uint64_t records_dead_lettered{0};
    std::uint64_t handler_failures{0};
    nanoseconds handler_time{0};  ///< Of all calls that have ended.
    std::uint64_t checkpoints_written{0};
    std::uint64_t leases_taken{0};
    std::uint64_t leases_released{0};  ///< Given back.
    std::uint64_t leases_lost{0};      ///< To another worker, or with the session.
    std::uint64_t shards_finished{0};
    std::uint64_t gaps_reported{0};   ///< Not records: a lease that found some dropped before they were read.
    std::uint64_t shards_stopped{0};  ///< By the failure policy.
    std::uint64_t records_at_risk{0};  ///< Acknowledged and not yet in a checkpoint: repeated after a crash.
    std::uint64_t bytes_in_memory{0};
    bool idle{false};  ///< At the tip of every shard held.

    /// Why it cannot do all its work now: stream or state do not answer, or are not there, or a shard has not
    /// been read for some seconds.
    std::optional<error> trouble;

    /// How far what was read last lies behind the newest record of its shard; the largest of all shards held.
    milliseconds behind{0};

    /// The longest, and the least, of `shard_progress` of all shards held.
    nanoseconds blocked{0};
    nanoseconds failing{0};
    std::optional<nanoseconds> retention_left;

    /// Those that want a look first: not read or blocked for longest, then furthest behind; at most
    /// `shards_told`.
    static constexpr std::size_t shards_told = 100;
    std::vector<shard_progress> progress;
};

struct consumer_settings {
    std::string stream;  ///< An address, as the others; see `<millrace/url.hpp>`.
    std::string group;   ///< Workers of the same name and state share the stream.
    std::string state;   ///< Where leases and checkpoints are kept.

    millrace::worker_id worker;  ///< Empty: made from host, process and a random number.
    group_options sharing;       ///< With the start position and `all_shards`.
    shard_options reading;       ///< With the failure policy; the drain limit is that of `sharing`.
    std::string dead_letters;    ///< For that policy only.

    nanoseconds lease{std::chrono::seconds{10}};  ///< A dead worker's shards move after this time.
    std::size_t threads{0};                       ///< For handlers; 0: four, or as many as there are cores.

    /// Return when for so long all shards held are at the tip and none is free, waiting for its parents, or
    /// held by a worker that is gone. Zero: at the first such moment. A shard whose stored records are
    /// damaged counts as read to its end, and `run` then returns that error; so it does when there is no such
    /// stream, at once at the start, which is waited for without this, and when stream or state could not be
    /// worked with, and nothing was read or acknowledged, for so long and for 30 s.
    std::optional<nanoseconds> idle_exit;
    /// SIGTERM and SIGINT stop it as the stop token does; a second one ends the process.
    bool stop_on_signals{false};

    log_sink* log{nullptr};  ///< Null: nothing is logged. Must outlive the consumer.

    /// Called on the consumer's loop about four times a second, so it must return at once. If it throws, the
    /// run ends (`handler_failed`).
    std::function<void(const consumer_status&)> on_progress;
};

class consumer {
public:
    /// `handler` must outlive the consumer.
    consumer(consumer_settings settings, record_handler& handler);
    ~consumer();
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;

    /// Works until `stop` is requested (then waits for handlers within `sharing.drain_limit`, writes the
    /// checkpoints and gives the shards back), until `idle_exit`, or until it cannot go on. It does not
    /// return while a handler runs. Errors: settings (`invalid_config`, `invalid_argument`), what is missing
    /// or unusable, and `worker_id_taken`.
    [[nodiscard]] result<consumer_status> run(const std::stop_token& stop = {});

    /// Asks `run` to drain and return `why` in place of a status: for a handler whose output is gone.
    /// Thread-safe; without effect unless it runs.
    void abort(error why);

    /// At most a quarter of a second old. Thread-safe.
    [[nodiscard]] consumer_status status() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
