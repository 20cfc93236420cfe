/// An in-memory outbox with the ids of PostgreSQL: drawn before the commit, visible in another order.
///
/// `outbox_table` is the database, shared by the world; writers call it directly, relays through a
/// `fake_outbox` of their own, over a link that fails.
#pragma once

#include "link.hpp"
#include "port/outbox_source.hpp"

#include <millrace/event.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace millrace::sim {

/// An event as the table keeps it.
struct stored_row {
    row_id id;
    millrace::event event;
    wall_time created_at;
    std::string malformed;
};

struct dead_row {
    stored_row row;
    std::string reason;
    std::string detail;
    std::uint32_t attempts{0};
    nanoseconds tried_for{0};
};

[[nodiscard]] lane_key lane_of(const stored_row& row);

class outbox_table {
public:
    using transaction = std::uint64_t;

    /// What happened to a row, for oracles.
    enum class change : std::uint8_t { committed, deleted, buried, replayed, dropped };
    using observer = std::function<void(change what, const stored_row& row)>;

    explicit outbox_table(scheduler& world, bool signals = false) : world_(world), signals_(signals) {}

    // The applications' side.
    [[nodiscard]] transaction begin() { return next_transaction_++; }

    /// Takes the next id; `ahead` draws it as `nextval` before the INSERT does: no lock shows the gap.
    row_id draw(transaction writer, bool ahead = false);
    void insert(transaction writer, row_id id, event what, std::string malformed = {});
    void commit(transaction writer);
    void roll_back(transaction writer);

    /// Leaves ids unused, as a sequence cache does; returns the first.
    row_id skip_ids(std::int64_t count) { return row_id{std::exchange(next_id_, next_id_ + count)}; }

    /// Begin, draw, insert and commit at one moment, as an embedded database with one writer does.
    row_id put(event what, std::string malformed = {});

    // The operator's side: both un-park the lane.
    std::size_t replay(const lane_key& lane);
    std::size_t drop(const lane_key& lane);
    void recreate() { ++identity_; }

    /// An empty topic stands for all.
    void pause(std::string topic) { paused_.insert(std::move(topic)); }
    void resume(const std::string& topic) {
        if (paused_.erase(topic) > 0) ++generation_;
    }

    /// The epoch of the outbox's lease row; unset, every epoch is accepted.
    std::function<epoch()> owner_epoch;

    // The relay's side.
    [[nodiscard]] std::shared_ptr<const row_batch> read_ahead(const fetch_request& request, bool& more) const;
    [[nodiscard]] std::shared_ptr<const row_batch> read_gaps(const fetch_request& request, bool& more) const;
    [[nodiscard]] std::vector<std::uint64_t> writers() const;
    std::uint64_t remove(const std::vector<id_range>& delivered);

    /// The hint for the next owner, with the state that it speaks of.
    void remember(outbox_start hint) { hint_ = std::move(hint); }
    /// What is parked, and the hint while it holds.
    [[nodiscard]] outbox_start start() const;
    result<void> bury(const bury_request& request, epoch mine);
    [[nodiscard]] bool owned_under(epoch mine) const { return !owner_epoch || owner_epoch() == mine; }

    [[nodiscard]] std::string identity() const { return "table-" + std::to_string(identity_); }
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    [[nodiscard]] const std::map<row_id, stored_row>& rows() const noexcept { return rows_; }
    [[nodiscard]] const std::vector<dead_row>& dead() const noexcept { return dead_; }
    [[nodiscard]] const std::set<lane_key>& parked() const noexcept { return parked_; }
    [[nodiscard]] const std::set<std::string>& paused() const noexcept { return paused_; }
    void observe(observer what) { observer_ = std::move(what); }

    /// Whether who reads may see what was drawn last.
    bool tells_sequence{false};
    [[nodiscard]] row_id drawn() const noexcept { return row_id{tells_sequence ? next_id_ - 1 : 0}; }

    [[nodiscard]] bool signals_changes() const noexcept { return signals_; }

    /// Calls `changed` in the world after a commit, until the token is gone; never where it signals nothing.
    void watch(std::weak_ptr<const char> token, std::function<void()> changed);

private:
    struct open_transaction {
        bool locks_table{false};
        std::vector<stored_row> rows;
    };
    struct watcher {
        std::weak_ptr<const char> token;
        std::function<void()> changed;
    };

    void tell(change what, const stored_row& row) const {
        if (observer_) observer_(what, row);
    }
    void changed_rows();
    [[nodiscard]] bool held_back(const stored_row& row) const {
        return paused_.contains(row.event.topic) || paused_.contains({});
    }

    scheduler& world_;
    const bool signals_;
    std::map<row_id, stored_row> rows_;
    std::vector<dead_row> dead_;
    std::set<lane_key> parked_;
    std::set<std::string> paused_;
    std::map<transaction, open_transaction> open_;
    transaction next_transaction_{1};
    std::int64_t next_id_{1};
    std::uint64_t identity_{1};
    std::uint64_t generation_{0};
    outbox_start hint_;
    observer observer_;
    std::vector<watcher> watchers_;
};

class fake_outbox final : public outbox_source {
public:
    fake_outbox(outbox_table& table, scheduler& world, host& client, rng& random, const faults& plan)
        : table_(table), link_(world, client, random, plan, "the outbox") {}

    void fetch(fetch_request request, completion<fetch_reply> done) override;
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override;
    void bury(bury_request request, epoch mine, completion<void> done) override;
    void start(completion<outbox_start> done) override;
    void watch(std::function<void()> changed) override;
    [[nodiscard]] bool signals_changes() const override { return table_.signals_changes(); }

    /// Requests by name: `fetch`, `remove`, `bury`, `start`.
    void force(std::string_view request, fate what) { link_.force(request, what); }

private:
    outbox_table& table_;
    link link_;
    std::uint64_t generation_seen_{0};
    std::shared_ptr<const char> watching_;
};

}  // namespace millrace::sim
