#include "group/reset.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace millrace {

namespace {

// Parents first. A cycle, which no stream has, is cut where it is entered.
std::vector<const shard_row*> parents_first(const std::vector<shard_row>& rows) {
    std::map<shard_id, const shard_row*> by_id;
    for (const auto& row : rows)
        by_id.emplace(row.shard, &row);
    std::vector<const shard_row*> ordered;
    std::set<shard_id> entered;
    std::vector<std::pair<const shard_row*, std::size_t>> path;
    for (const auto& [id, start] : by_id) {
        if (!entered.insert(id).second) continue;
        path.emplace_back(start, 0);
        while (!path.empty()) {
            auto& [row, next_parent] = path.back();
            if (next_parent == row->parents.size()) {
                ordered.push_back(row);
                path.pop_back();
                continue;
            }
            const auto parent = by_id.find(row->parents[next_parent++]);
            if (parent == by_id.end() || !entered.insert(parent->first).second) continue;
            path.emplace_back(parent->second, 0);
        }
    }
    return ordered;
}

}  // namespace

shard_row reset_row(const shard_row& row, epoch above, write_id id) {
    auto next = row;
    next.owner = incarnation{};
    next.epoch = epoch{std::max(row.epoch, above).value() + 1};
    next.version = version{row.version.value() + 1};
    next.write_id = id;
    next.checkpoint.reset();
    next.finished_at.reset();
    return next;
}

reset_plan plan_reset(
    const reset_request& request,
    const std::optional<group_row>& group,
    const std::vector<shard_row>& rows,
    const std::function<std::uint64_t()>& random
) {
    reset_plan plan;
    auto highest = group ? group->epoch_floor : epoch{};
    for (const auto& row : rows)
        highest = std::max(highest, row.epoch);
    if (group) {
        plan.group = group;
        plan.group->version = version{group->version.value() + 1};
        plan.group->write_id = write_id{random()};
        plan.group->epoch_floor = highest;
        if (request.start) {
            plan.group->start = request.start->policy;
            plan.group->start_at = request.start->at;
        }
    }
    for (const auto* row : parents_first(rows))
        plan.shards.push_back(reset_row(*row, highest, write_id{random()}));
    return plan;
}

}  // namespace millrace
