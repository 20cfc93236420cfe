/// A worker's part in a group: sees the other workers, takes and gives back shards, writes their rows.
///
/// Lives on the loop. What is done with a shard is the listener's business: a consumer reads it, a relay
/// drains an outbox, an application does what it likes.
#pragma once

#include "group/options.hpp"
#include "lease_guard.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"
#include "port/record_source.hpp"
#include "session_driver.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace millrace {

/// A lease that this worker now holds.
struct lease_grant {
    shard_id shard;
    millrace::epoch epoch;
    std::optional<millrace::checkpoint> checkpoint;
    std::vector<shard_id> parents;
    start_position start;  ///< Where to read without a checkpoint; follows from the group row.

    /// `may_act` for other threads than the loop. Never null.
    std::shared_ptr<const lease_guard> guard;

    incarnation owner{};  ///< This session; empty in all-shards mode.
};

class group_listener {
public:
    virtual ~group_listener() = default;

    virtual void granted(const lease_grant& grant) = 0;

    /// Another worker is to have the shard, or this one stops: finish what is under way, then call `release`.
    virtual void revoke(const shard_id& shard) = 0;

    /// No longer ours; stop at once. What is still written under its epoch is refused.
    virtual void lost(const shard_id& shard, const error& why) = 0;

    /// This worker's place among the live ones; advisory.
    virtual void membership(std::size_t /*index*/, std::size_t /*total*/) {}

    /// The group cannot go on in this process (doubled worker id, refused all-shards mode, format too new).
    virtual void failed(const error& why) = 0;
};

/// Totals since the start.
struct group_counters {
    std::uint64_t checkpoints_written{0};
    std::uint64_t leases_taken{0};
    std::uint64_t leases_released{0};  ///< Given back.
    std::uint64_t leases_lost{0};
    std::uint64_t shards_finished{0};
};

/// One line of a status: what this worker knows of a shard.
struct shard_view {
    shard_row row;
    bool listed{false};
    bool ready{false};
    bool mine{false};
    bool open_again{false};               ///< Finished, and yet listed as open.
    bool owner_lapsed{false};             ///< Its owner is gone or has been silent for longer than its lease.
    std::optional<lease_holder> other{};  ///< Who has it, when that is another session that lives.
};

class group_driver final : public session_listener {
public:
    /// `session` is null in all-shards mode. `process_gone` says whether a process of this machine has ended.
    /// All references must outlive the driver.
    group_driver(
        host& loop,
        lease_store& store,
        shard_lister& lister,
        session_view* session,
        group_options options,
        process_identity self,
        std::function<bool(const process_identity&)> process_gone,
        group_listener& listener
    );
    ~group_driver() override;

    void start();

    /// Asks the listener to give back every shard; completes when all are released. Bounded by the drain
    /// limit: what is not back by then is released from its last acknowledged position.
    void stop(completion<void> done);

    /// Whether this worker may act on the shard under this epoch now: held, and before the deadline.
    [[nodiscard]] bool may_act(const shard_id& shard, epoch e) const;

    /// Remembers an acknowledged position; written at the next checkpoint interval. Memory only.
    /// Errors: `not_owner`, `already_released`, `already_finished`, `invalid_argument` when it would go back.
    result<void> advance(const shard_id& shard, epoch e, checkpoint reached, std::uint64_t records);

    /// Writes what was advanced, now.
    void persist(const shard_id& shard, epoch e, completion<void> done);

    /// The shard's end was read and everything acknowledged: durable and final. The lease ends with it.
    void finish(const shard_id& shard, epoch e, completion<void> done);

    /// Writes the checkpoint and gives the shard back.
    void release(const shard_id& shard, epoch e, completion<void> done);

    /// Lists the stream's shards now: one has just ended, or the caller knows of a change.
    void discover_soon();

    /// The stream contradicts the group: it was restored from an older copy, and the group must be reset.
    [[nodiscard]] std::optional<error> contradiction() const;

    /// The row of a shard cannot be read, by the latest listing: nobody takes that shard.
    [[nodiscard]] std::optional<error> unreadable() const;

    /// The row of a worker cannot be read, by the latest listing: it counts for nobody, and all else goes on.
    [[nodiscard]] std::optional<error> unreadable_worker() const;

    /// Why it cannot do all its work now: what the latest listing of the stream, else of the workers, met.
    [[nodiscard]] std::optional<error> trouble() const;

    /// As `coordinator::stream_is_known`; and what the latest listing of the stream met.
    [[nodiscard]] bool stream_is_known() const;
    [[nodiscard]] std::optional<error> stream_trouble() const;

    /// As `coordinator::stream`.
    [[nodiscard]] std::optional<stream_moment> stream() const;

    [[nodiscard]] group_counters counters() const;

    /// Whether the latest complete listing of the stream lacks the shard; false before the first.
    [[nodiscard]] bool unlisted(const shard_id& shard) const;

    [[nodiscard]] nanoseconds drain_limit() const;

    /// What is known now; for status, `--idle-exit` and tests. Copies every row and traces the lineage.
    [[nodiscard]] std::vector<shard_view> shards() const;

    /// How many shards this worker holds; cheap.
    [[nodiscard]] std::size_t shards_held() const;

    /// Whether it is decided that this worker may be here: no other bears its id, or it was admitted to take
    /// all shards. Before that it may still be told to go.
    [[nodiscard]] bool settled() const;

    /// Acknowledged but not yet written: what a crash would repeat, beside what is in flight.
    [[nodiscard]] std::uint64_t records_at_risk() const;

    void session_started(const incarnation& mine) override;
    void session_ended(const incarnation& mine, const error& why) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
