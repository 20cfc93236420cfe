/// The shard rows of a group as this worker knows them, from listings and from its own writes.
///
/// Replies may overtake each other, so a row only gives way to a newer one. Each row remembers when its owner
/// was first seen there, by a count of the coordinator's steps: a shard is takeable when its owner is
/// absent from a listing of the workers that was *begun* after that (the other way round it would be stolen
/// from a worker that has just registered). Within a step, requests follow what was taken in. Incarnations
/// are never used twice, so an absence is final.
#pragma once

#include "group/lapse.hpp"
#include "port/lease_store.hpp"

#include <millrace/names.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace millrace {

/// A count of steps; orders requests and replies without a clock.
using step_count = std::uint64_t;

/// The sessions of one listing of the workers.
struct worker_listing {
    step_count begun{0};
    std::set<incarnation> sessions;  ///< All that were listed, lapsed or not.
};

/// One shard as the coordinator knows it.
struct shard_status {
    shard_row row;
    bool listed{false};
    bool ready{false};
    bool mine{false};
    bool owner_lapsed{false};
    std::optional<lease_holder> other;  ///< Who has it, when that is a session that lives.
    bool open_again{false};             ///< As `shard_standing`.
};

class shard_table {
public:
    /// Takes a row unless a newer one is known; true if it changed anything.
    bool put(const shard_row& row, step_count seen);

    /// Takes a complete listing that was begun at `begun`: it tells the truth about every row that was not
    /// seen later, also of one that was deleted and created anew. Rows that it lacks are forgotten unless
    /// they were seen later or `keep` holds them.
    void merge(
        const std::vector<shard_row>& rows, step_count begun, step_count seen, const std::set<shard_id>& keep
    );

    void forget(const shard_id& shard) { rows_.erase(shard); }

    [[nodiscard]] const shard_row* find(const shard_id& shard) const;
    [[nodiscard]] std::vector<shard_row> rows() const;
    [[nodiscard]] epoch highest_epoch() const { return highest_; }

    /// Whether nobody holds the shard any more, as far as `workers` can prove it.
    [[nodiscard]] bool takeable(const shard_id& shard, const worker_listing& workers) const;

private:
    struct entry {
        shard_row row;
        step_count seen{0};        // of the row as it is
        step_count owner_seen{0};  // of its present owner
    };

    std::map<shard_id, entry> rows_;
    epoch highest_;
};

}  // namespace millrace
