/// Watches a group from outside: its rows in the store, the stream, and what the handlers are given.
///
/// It believes only what the fakes saw; nothing of the code under test is asked.
#pragma once

#include "delivery_book.hpp"
#include "fake_lease_store.hpp"
#include "fake_stream.hpp"
#include "trace.hpp"

#include <millrace/record.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace millrace::sim {

class group_oracle {
public:
    group_oracle(
        scheduler& world,
        trace& t,
        verdicts& v,
        const lease_table& table,
        fake_stream& stream,
        const health_book& health
    );

    // What the store and the stream saw.
    void row_changed(const std::string& client, const lease_row* before, const lease_row* after);
    void appended(const stored_shard& shard, const stored_record& record);

    // What the handlers saw.
    void handling(
        const std::string& who,
        const shard_id& shard,
        epoch e,
        std::uint32_t attempt,
        const record_batch& batch
    );
    /// The handler is done with the record: a checkpoint may pass it from now on.
    void done(const shard_id& shard, const position& at);

    /// The report of it reaches the driver now at the latest: a checkpoint is due.
    void acknowledged(const shard_id& shard, epoch e, const position& at);
    void failed(const shard_id& shard, epoch e, const position& at);

    /// Committed with the checkpoint by the handler itself: never again.
    void effect(const shard_id& shard, const position& at);
    [[nodiscard]] std::size_t effects() const noexcept { return effects_.size(); }

    /// Accounts for what is handed over more than once.
    [[nodiscard]] delivery_book& book() noexcept { return book_; }

    /// The owner of a worker row may deregister it at any time; `gone` says that a process has ended.
    std::function<bool(const process_identity&)> gone;
    std::int32_t drift_per_million{0};

    /// Records that were handed over more than once.
    [[nodiscard]] std::uint64_t repeated() const noexcept { return repeated_; }
    [[nodiscard]] std::uint64_t handed() const noexcept { return handed_; }

    /// A visible record, older than `age`, of a shard that is not sick and was not handled; empty when none.
    [[nodiscard]] std::string lagging(nanoseconds age) const;

    /// A record that was acknowledged, with all before it, longer than `age` ago and is not yet below the
    /// checkpoint: a crash would repeat it. Empty when there is none.
    [[nodiscard]] std::string unwritten(nanoseconds age) const;

    /// What is still missing when everything should be done; empty when nothing is.
    [[nodiscard]] std::string missing() const;

private:
    struct shard_state {
        const stored_shard* shard{nullptr};
        std::vector<std::uint8_t> handed;
        std::vector<std::uint8_t> acknowledged;
        std::vector<std::uint8_t> done;  // as the handler has it, before the driver must know
        std::vector<world_time> acknowledged_at;
        std::size_t settled{0};  // all below are acknowledged or need not be
        epoch highest;
        epoch granted;         // of the grant that `next` belongs to
        std::size_t begin{0};  // the first record above the checkpoint when the grant began
        std::size_t next{0};   // the record that this grant has to be given next
    };
    struct key_state {
        std::vector<std::pair<shard_state*, std::size_t>> records;
        std::size_t handed{0};  // all below were handed over
    };

    void shard_changed(const shard_row* before, const shard_row* after);
    void worker_changed(const std::string& client, const worker_row* before, const worker_row* after);
    void check_checkpoint(const shard_row* before, const shard_row& after);
    void check_parents(const shard_id& shard, const std::vector<shard_id>& parents);
    void check_key_order(shard_state& state, std::size_t index);
    std::size_t settle(shard_state& state);
    [[nodiscard]] bool exempt(const shard_state& state, std::size_t index) const;
    [[nodiscard]] bool before_start(const shard_state& state, std::size_t index) const;
    void account(const shard_row* before, const shard_row& after);
    shard_state& state_of(const shard_id& shard);

    scheduler& world_;
    trace& trace_;
    verdicts& verdicts_;
    const lease_table& table_;
    fake_stream& stream_;
    std::map<shard_id, shard_state> shards_;
    std::map<std::string, key_state> keys_;
    std::map<incarnation, world_time> heartbeats_;
    std::set<incarnation> ended_;  // for good, also when a late registration brings the row back
    std::set<write_id> write_ids_;
    std::set<std::pair<shard_id, position>> effects_;
    delivery_book book_;
    std::uint64_t repeated_{0};
    std::uint64_t handed_{0};
};

}  // namespace millrace::sim
