#include "group/shard_table.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

bool shard_table::put(const shard_row& row, step_count seen) {
    highest_ = std::max(highest_, row.epoch);
    const auto [found, created] = rows_.try_emplace(row.shard, entry{row, seen, seen});
    auto& known = found->second;
    if (created) return true;
    if (is_newer(known.row, row)) return false;
    known.seen = seen;
    if (row.owner != known.row.owner) known.owner_seen = seen;
    if (row == known.row) return false;
    known.row = row;
    return true;
}

void shard_table::merge(
    const std::vector<shard_row>& rows, step_count begun, step_count seen, const std::set<shard_id>& keep
) {
    std::set<shard_id> listed;
    for (const auto& row : rows) {
        // What was read after the known row was seen is newer, whatever it counts from.
        const auto known = rows_.find(row.shard);
        const bool made_anew =
            known != rows_.end() && known->second.seen < begun && is_newer(known->second.row, row);
        if (made_anew) rows_.erase(known);
        put(row, seen);
        listed.insert(row.shard);
    }
    std::erase_if(rows_, [&](const auto& known) {
        return known.second.seen < begun && !listed.contains(known.first) && !keep.contains(known.first);
    });
}

const shard_row* shard_table::find(const shard_id& shard) const {
    const auto found = rows_.find(shard);
    return found == rows_.end() ? nullptr : &found->second.row;
}

std::vector<shard_row> shard_table::rows() const {
    std::vector<shard_row> all;
    all.reserve(rows_.size());
    for (const auto& [shard, known] : rows_)
        all.push_back(known.row);
    return all;
}

bool shard_table::takeable(const shard_id& shard, const worker_listing& workers) const {
    const auto found = rows_.find(shard);
    if (found == rows_.end() || found->second.row.finished_at) return false;
    const auto& known = found->second;
    if (!known.row.unreadable.empty()) return false;
    if (known.row.owner.value().empty()) return true;
    return workers.begun >= known.owner_seen && !workers.sessions.contains(known.row.owner);
}

}  // namespace millrace
