#include "group_view.hpp"

#include "json_text.hpp"
#include "output.hpp"
#include "shard/lineage.hpp"
#include "units.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace millrace::app {

namespace {

// Deeper, a line would be all space.
constexpr std::size_t indent_max = 20;

std::vector<worker_line> view_workers(
    std::vector<worker_row> rows, wall_time now, const std::function<bool(const process_identity&)>& gone
) {
    std::sort(rows.begin(), rows.end(), [](const worker_row& a, const worker_row& b) {
        return std::tie(a.worker, a.incarnation) < std::tie(b.worker, b.incarnation);
    });
    std::vector<worker_line> out;
    std::size_t index = 0;
    for (const worker_row& row : rows) {
        worker_line line{.worker = row.worker.value(), .index = {}, .updated_at = row.updated_at};
        const bool readable = row.unreadable.empty();
        if (!readable && line.worker.empty()) line.worker = "(unreadable)";
        line.live = readable && now - row.updated_at <= row.lease && !gone(row.process);
        if (line.live) line.index = index++;
        line.host = row.process.host;
        line.pid = row.process.pid;
        out.push_back(std::move(line));
    }
    return out;
}

std::string_view state_of(shard_stage stage, bool owned) {
    if (stage == shard_stage::finished) return "finished";
    if (stage == shard_stage::gone) return "gone";
    if (owned) return "processing";
    return stage == shard_stage::waiting ? "waiting" : "free";
}

std::string join_ids(const std::vector<shard_id>& ids, std::string_view by) {
    std::string out;
    for (const shard_id& id : ids) {
        if (!out.empty()) out += by;
        out += id.value();
    }
    return out;
}

/// A shard in the tree of its lineage.
struct tree_line {
    const shard_line* shard;
    std::size_t depth;
};

/// Children stand behind their parents, one deeper; what was merged, behind the last of them. Whatever is in
/// a circle comes at the end. Without recursion: a lineage may be thousands deep.
std::vector<tree_line> tree_of(const std::vector<shard_line>& shards) {
    std::map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < shards.size(); ++i)
        place.emplace(shards[i].shard, i);
    std::vector<std::vector<std::size_t>> children(shards.size());
    std::vector<std::size_t> waits(shards.size());  // for so many parents that are not shown yet
    for (std::size_t i = 0; i < shards.size(); ++i) {
        for (const shard_id& parent : shards[i].parents) {
            const auto known = place.find(parent.value());
            if (known == place.end()) continue;
            children[known->second].push_back(i);
            ++waits[i];
        }
    }
    std::vector<tree_line> out;
    std::vector<bool> shown(shards.size());
    std::vector<std::pair<std::size_t, std::size_t>> next;  // shard and depth; the last one is shown first
    const auto show = [&](std::size_t root) {
        next.emplace_back(root, 0);
        while (!next.empty()) {
            const auto [at, depth] = next.back();
            next.pop_back();
            if (shown[at]) continue;
            shown[at] = true;
            out.push_back({&shards[at], depth});
            for (auto child = children[at].rbegin(); child != children[at].rend(); ++child)
                if (--waits[*child] == 0) next.emplace_back(*child, depth + 1);
        }
    };
    for (std::size_t i = 0; i < shards.size(); ++i)
        if (waits[i] == 0 && !shown[i]) show(i);
    for (std::size_t i = 0; i < shards.size(); ++i)
        if (!shown[i]) out.push_back({&shards[i], 0});
    return out;
}

std::string checkpoint_json(const std::optional<checkpoint>& c) {
    if (!c) return "null";
    return fmt::format(
        R"({{"sequence":"{}","sub_sequence":{}}})", c->position.sequence.to_string(), c->position.sub_sequence
    );
}

}  // namespace

group_view view_group(
    const std::vector<listed_shard>& listed,
    const std::vector<worker_row>& workers,
    const std::vector<shard_row>& rows,
    wall_time now,
    std::optional<wall_time> stream_now,
    const std::function<bool(const process_identity&)>& gone
) {
    group_view out;
    out.workers = view_workers(workers, now, gone);
    for (const auto& worker : workers)
        if (!worker.unreadable.empty()) out.problems.push_back(worker.unreadable);
    for (const shard_standing& standing : trace_lineage(listed, rows).shards) {
        shard_line line{
            .shard = standing.shard.value(),
            .owner = {},
            .checkpoint = {},
            .parents = standing.parents,
            .lag_max = {}};
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const shard_row& r) {
            return r.shard == standing.shard;
        });
        if (row != rows.end()) {
            line.epoch = row->epoch.value();
            if (!row->unreadable.empty()) out.problems.push_back(row->unreadable);
            line.checkpoint = row->checkpoint;
            if (stream_now && row->checkpoint && !row->finished_at)
                line.lag_max = std::max<nanoseconds>(*stream_now - row->checkpoint->arrival, nanoseconds{0});
            const auto owner = std::find_if(workers.begin(), workers.end(), [&](const worker_row& w) {
                return !row->owner.value().empty() && w.incarnation == row->owner;
            });
            if (owner != workers.end() && !row->finished_at) line.owner = owner->worker.value();
        }
        line.state = state_of(standing.stage, line.owner.has_value());
        if (row != rows.end() && !row->unreadable.empty()) line.state = "unreadable";
        if (standing.open_again) out.problems.push_back(contradiction_of(standing.shard));
        out.shards.push_back(std::move(line));
    }
    return out;
}

std::string to_json(const group_view& view) {
    std::string out = R"({"liveness":"updated_at","workers":[)";
    for (const worker_line& w : view.workers) {
        if (out.back() == '}') out += ',';
        out += fmt::format(
            R"({{"worker":{},"index":{},"live":{},"updated_at":"{}","host":{},"pid":{}}})",
            json_string(w.worker),
            w.index ? fmt::format("{}", *w.index) : "null",
            w.live,
            format_time(w.updated_at),
            json_string(w.host),
            w.pid
        );
    }
    out += R"(],"shards":[)";
    for (const shard_line& s : view.shards) {
        if (out.back() == '}') out += ',';
        std::string parents;
        for (const shard_id& p : s.parents)
            parents += (parents.empty() ? "" : ",") + json_string(p.value());
        out += fmt::format(
            R"({{"shard":{},"state":"{}","owner":{},"epoch":{},"checkpoint":{},"lag_ms_max":{},"parents":[{}]}})",
            json_string(s.shard),
            s.state,
            s.owner ? json_string(*s.owner) : "null",
            s.epoch,
            checkpoint_json(s.checkpoint),
            s.lag_max ? fmt::format("{}", std::chrono::floor<milliseconds>(*s.lag_max).count()) : "null",
            parents
        );
    }
    return out + "]}\n";
}

std::string to_table(const group_view& view) {
    table workers({"worker", "index", "live (by updated-at)", "updated-at", "host", "pid"});
    for (const worker_line& w : view.workers) {
        workers.add(
            {w.worker,
             w.index ? fmt::format("{}", *w.index) : "-",
             w.live ? "yes" : "no",
             format_time(w.updated_at),
             w.host,
             fmt::format("{}", w.pid)}
        );
    }
    table shards({"shard", "state", "owner", "epoch", "checkpoint", "lag at most", "parents"});
    for (const auto& [shard, depth] : tree_of(view.shards)) {
        const shard_line& s = *shard;
        std::string checkpoint = "-";
        if (s.checkpoint) {
            checkpoint = s.checkpoint->position.sequence.to_string();
            if (s.checkpoint->position.sub_sequence > 0) {
                checkpoint += fmt::format(":{}", s.checkpoint->position.sub_sequence);
            }
        }
        shards.add(
            {std::string(2 * std::min(depth, indent_max), ' ') + s.shard,
             std::string{s.state},
             s.owner.value_or("-"),
             fmt::format("{}", s.epoch),
             checkpoint,
             s.lag_max ? format_span(std::chrono::floor<milliseconds>(*s.lag_max)) : "-",
             s.parents.empty() ? "-" : join_ids(s.parents, ",")}
        );
    }
    return workers.text() + "\n" + shards.text();
}

}  // namespace millrace::app
