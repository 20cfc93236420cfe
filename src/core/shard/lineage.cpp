#include "shard/lineage.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>

namespace millrace {

namespace {

using rows_by_shard = std::unordered_map<std::string_view, const shard_row*>;
using index_by_shard = std::unordered_map<std::string_view, std::size_t>;

rows_by_shard newest_rows(std::span<const shard_row> rows) {
    rows_by_shard newest;
    newest.reserve(rows.size());
    for (const auto& row : rows) {
        auto& slot = newest.try_emplace(row.shard.value(), &row).first->second;
        if (is_newer(row, *slot)) slot = &row;
    }
    return newest;
}

/// The parents without the shard itself and without repetitions.
std::vector<shard_id> clean_parents(const listed_shard& shard, std::vector<std::string>& problems) {
    std::vector<shard_id> parents;
    for (const auto& parent : shard.parents) {
        if (parent == shard.shard) {
            problems.push_back(
                "shard " + shard.shard.value() + " is listed as its own parent; that parent is ignored"
            );
        } else if (std::find(parents.begin(), parents.end(), parent) == parents.end()) {
            parents.push_back(parent);
        }
    }
    if (parents.size() > 2) {
        problems.push_back(
            "shard " + shard.shard.value() + " is listed with " + std::to_string(parents.size()) +
            " parents; a stream has at most two, and all of them are waited for"
        );
    }
    return parents;
}

/// Takes away, again and again, every node whose `needs` are all taken away; returns those that stay.
std::vector<bool> peel(const std::vector<std::vector<std::size_t>>& needs, std::vector<bool> stays) {
    std::vector<std::vector<std::size_t>> needed_by(needs.size());
    std::vector<std::size_t> missing(needs.size(), 0);
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        if (!stays[i]) continue;
        for (const auto need : needs[i]) {
            if (!stays[need]) continue;
            needed_by[need].push_back(i);
            ++missing[i];
        }
        if (missing[i] == 0) free.push_back(i);
    }
    while (!free.empty()) {
        const auto done = free.back();
        free.pop_back();
        stays[done] = false;
        for (const auto next : needed_by[done])
            if (--missing[next] == 0) free.push_back(next);
    }
    return stays;
}

/// Names the waiting shards that wait for themselves, directly or through others.
void report_cycles(lineage& result, const index_by_shard& index) {
    std::vector<std::vector<std::size_t>> waits_for(result.shards.size());
    std::vector<std::vector<std::size_t>> waited_for_by(result.shards.size());
    for (std::size_t i = 0; i < result.shards.size(); ++i) {
        for (const auto& parent : result.shards[i].waits_for) {
            const auto p = index.at(parent.value());
            waits_for[i].push_back(p);
            waited_for_by[p].push_back(i);
        }
    }
    // What is left after peeling from the parents' side is in a cycle or behind one; peeling that from the
    // children's side leaves the cycles and what lies between two of them.
    const auto stuck = peel(waits_for, std::vector<bool>(result.shards.size(), true));
    const auto cyclic = peel(waited_for_by, stuck);
    std::string names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < cyclic.size(); ++i) {
        if (!cyclic[i]) continue;
        if (++count <= 5) names += (count > 1 ? ", " : "") + result.shards[i].shard.value();
    }
    if (count == 0) return;
    result.problems.push_back(
        std::to_string(count) + " shards are listed as ancestors of each other (" + names +
        (count > 5 ? ", ..." : "") +
        "); they and their children wait until the stream lists them without the cycle"
    );
}

}  // namespace

lineage trace_lineage(std::span<const listed_shard> listed, std::span<const shard_row> rows) {
    lineage result;
    const auto known = newest_rows(rows);
    index_by_shard index;
    index.reserve(listed.size());
    result.shards.reserve(listed.size());

    const auto finished = [&](const shard_id& shard) {
        const auto row = known.find(shard.value());
        return row != known.end() && row->second->finished_at.has_value();
    };

    for (const auto& shard : listed) {
        if (!index.try_emplace(shard.shard.value(), result.shards.size()).second) {
            result.problems.push_back(
                "shard " + shard.shard.value() + " is listed more than once; the first entry counts"
            );
            continue;
        }
        auto& standing = result.shards.emplace_back();
        standing.shard = shard.shard;
        standing.listed = true;
        standing.has_row = known.contains(shard.shard.value());
        standing.open_again = !shard.closed && finished(shard.shard);
        standing.parents = clean_parents(shard, result.problems);
    }
    bool any_waits = false;
    for (auto& standing : result.shards) {
        if (finished(standing.shard)) {
            standing.stage = shard_stage::finished;
            continue;
        }
        for (const auto& parent : standing.parents)
            if (index.contains(parent.value()) && !finished(parent)) standing.waits_for.push_back(parent);
        standing.stage = standing.waits_for.empty() ? shard_stage::ready : shard_stage::waiting;
        any_waits = any_waits || !standing.waits_for.empty();
    }
    if (any_waits) report_cycles(result, index);

    for (const auto& row : rows) {
        if (index.contains(row.shard.value()) || known.at(row.shard.value()) != &row) continue;
        const auto stage = row.finished_at ? shard_stage::finished : shard_stage::gone;
        result.shards.push_back({row.shard, stage, false, true, false, row.parents, {}});
    }
    return result;
}

std::string contradiction_of(const shard_id& open_again) {
    return "shard " + open_again.value() +
           " is finished in this group, but open in the stream, so what is appended to it is not delivered: "
           "the stream was restored from a copy older than the end of that shard; stop the workers and begin "
           "again with `millrace group reset`, with --start at the time of the copy";
}

start_position start_of(const group_row& group) {
    if (group.start == start_policy::trim_horizon || !group.start_at) return from::trim_horizon{};
    return from::timestamp{*group.start_at};
}

}  // namespace millrace
