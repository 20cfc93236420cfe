/// Reads one shard under one lease and feeds it to the handler, from the grant to the end of the lease.
///
/// Carries out `shard_reader` and `shard_delivery` on the source, the pool and the group. Lives on the loop;
/// only the handler's call runs elsewhere. Once `over`, its owner may destroy it; destroyed earlier, it
/// leaves the lease as it is, and a call under way runs on without effect.
#pragma once

#include "consumer_driver.hpp"
#include "group_driver.hpp"
#include "paced_log.hpp"
#include "port/host.hpp"
#include "port/record_source.hpp"
#include "read_memory.hpp"

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/options.hpp>
#include <millrace/shard_progress.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace millrace {

/// What a shard needs of the group; meanings and errors as in `group_driver`.
class shard_leases {
public:
    virtual ~shard_leases() = default;
    virtual result<void> advance(
        const shard_id& shard, epoch e, checkpoint reached, std::uint64_t records
    ) = 0;
    virtual void finish(const shard_id& shard, epoch e, completion<void> done) = 0;
    virtual void release(const shard_id& shard, epoch e, completion<void> done) = 0;
    virtual void discover_soon() = 0;
    [[nodiscard]] virtual bool unlisted(const shard_id& shard) const = 0;
    [[nodiscard]] virtual std::optional<stream_moment> stream() const = 0;

    /// How long a shard that is to be given back may wait for its acknowledgements.
    [[nodiscard]] virtual nanoseconds drain_limit() const = 0;
};

/// What all shards of one consumer share. Everything outlives the shards.
struct shard_surroundings {
    host& loop;
    record_source& source;
    record_handler& handler;
    handler_pool& pool;
    dead_letter_sink* dead_letters;
    const shard_options& options;
    const std::optional<checkpoint_place>& place;  ///< Given: the handler writes the checkpoints.
    shard_leases& leases;
    read_memory& memory;
    consumer_counters& counters;
    paced_log& failures;          ///< For what may go wrong with many records.
    std::function<void()> ended;  ///< Some shard is `over`; called on the loop, in a call of its own.
};

class shard_driver {
public:
    shard_driver(const shard_surroundings& around, lease_grant grant);
    ~shard_driver();
    shard_driver(const shard_driver&) = delete;
    shard_driver& operator=(const shard_driver&) = delete;

    /// Tells the handler and begins to read. While `held_back`, nothing is handed over: an earlier lease's
    /// call for this shard has not returned yet.
    void start(bool held_back);
    void call_freed();

    /// Hands nothing more over, waits for the call under way within the drain limit, then releases.
    void revoke();

    /// Stops at once.
    void lost(const error& why);

    void source_changed();

    /// It was refused memory and may try again.
    void memory_turn();

    /// Its checkpoint is older than what the stream keeps. Reported once a lease, with what the reader finds.
    void possible_gap();

    [[nodiscard]] read_memory::member memory_member() const;
    [[nodiscard]] const shard_id& shard() const;

    /// The lease has ended; a call of the handler may still be under way.
    [[nodiscard]] bool ended() const;

    /// Ended, and no call is under way.
    [[nodiscard]] bool over() const;

    [[nodiscard]] shard_progress progress() const;

    /// Why it has not been read for some seconds, if it has not.
    [[nodiscard]] std::optional<error> trouble() const;

    /// Why nothing more of it can be read: what is stored is damaged, and all before it is acknowledged.
    [[nodiscard]] const error* damage() const;

    /// At the tip (or stopped by policy), with nothing read that is not acknowledged.
    [[nodiscard]] bool idle() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
