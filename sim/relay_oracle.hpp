/// Watches the relays from outside: the outbox table and what the sink appends.
#pragma once

#include "fake_outbox.hpp"
#include "fake_sink.hpp"
#include "publish_book.hpp"
#include "relay/options.hpp"
#include "trace.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace millrace::sim {

class relay_oracle {
public:
    relay_oracle(scheduler& world, trace& t, verdicts& v, poison_policy policy, const health_book& health)
        : world_(world), trace_(t), verdicts_(v), policy_(policy), book_(world, v, health) {}

    /// The row may come after rows that were committed later: no proof covers its id.
    void sneaks_in(row_id id) { sneaky_.insert(id); }

    /// The sink refuses this row at least once, or it cannot be sent at all.
    void culprit(row_id id) { culprits_.insert(id); }

    void changed(outbox_table::change what, const stored_row& row);
    void appended(const outbox_row& row, epoch under);

    /// What a relay asks for, and under which epoch of its own.
    void buries(const bury_request& request, epoch mine);

    /// Accounts for what is published more than once.
    [[nodiscard]] publish_book& book() noexcept { return book_; }

    /// The epoch of the outbox's lease.
    std::function<epoch()> owner_epoch;

    [[nodiscard]] std::uint64_t repeated() const noexcept { return repeated_; }
    [[nodiscard]] std::size_t committed() const noexcept { return rows_.size(); }

    /// A row, older than `age`, of a lane without a culprit, that was not delivered; empty when there is
    /// none.
    [[nodiscard]] std::string lagging(nanoseconds age) const;

    /// A row that is neither at the sink nor in the dead letters; empty when there is none.
    [[nodiscard]] std::string missing() const;

private:
    struct row_state {
        lane_key lane;
        std::uint64_t committed{0};  // order of commits
        world_time committed_at{0};
        std::uint32_t appended{0};
        bool in_table{false};
        bool was_dead{false};
        bool dead{false};
        bool dropped{false};
    };

    [[nodiscard]] bool lane_has_culprit(const lane_key& lane) const;

    scheduler& world_;
    trace& trace_;
    verdicts& verdicts_;
    poison_policy policy_;
    std::map<row_id, row_state> rows_;
    std::map<lane_key, std::set<row_id>> lanes_;
    std::set<row_id> sneaky_;
    std::set<row_id> culprits_;
    std::set<std::pair<row_id, epoch>> asked_to_bury_;
    std::uint64_t commits_{0};
    std::uint64_t repeated_{0};
    publish_book book_;
};

}  // namespace millrace::sim
