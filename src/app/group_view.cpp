#include "group_view.hpp"

#include "json_text.hpp"
#include "output.hpp"
#include "shard/lineage.hpp"
#include "units.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace millrace::app {

namespace {

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
        line.live = now - row.updated_at <= row.lease && !gone(row.process);
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
    const std::function<bool(const process_identity&)>& gone
) {
    group_view out;
    out.workers = view_workers(workers, now, gone);
    for (const shard_standing& standing : trace_lineage(listed, rows).shards) {
        shard_line line{
            .shard = standing.shard.value(), .owner = {}, .checkpoint = {}, .parents = standing.parents};
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const shard_row& r) {
            return r.shard == standing.shard;
        });
        if (row != rows.end()) {
            line.epoch = row->epoch.value();
            line.checkpoint = row->checkpoint;
            const auto owner = std::find_if(workers.begin(), workers.end(), [&](const worker_row& w) {
                return !row->owner.value().empty() && w.incarnation == row->owner;
            });
            if (owner != workers.end() && !row->finished_at) line.owner = owner->worker.value();
        }
        line.state = state_of(standing.stage, line.owner.has_value());
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
            R"({{"shard":{},"state":"{}","owner":{},"epoch":{},"checkpoint":{},"parents":[{}]}})",
            json_string(s.shard),
            s.state,
            s.owner ? json_string(*s.owner) : "null",
            s.epoch,
            checkpoint_json(s.checkpoint),
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
    table shards({"shard", "state", "owner", "epoch", "checkpoint", "parents"});
    for (const shard_line& s : view.shards) {
        std::string checkpoint = "-";
        if (s.checkpoint) {
            checkpoint = s.checkpoint->position.sequence.to_string();
            if (s.checkpoint->position.sub_sequence > 0) {
                checkpoint += fmt::format(":{}", s.checkpoint->position.sub_sequence);
            }
        }
        shards.add(
            {s.shard,
             std::string{s.state},
             s.owner.value_or("-"),
             fmt::format("{}", s.epoch),
             checkpoint,
             s.parents.empty() ? "-" : join_ids(s.parents, ",")}
        );
    }
    return workers.text() + "\n" + shards.text();
}

}  // namespace millrace::app
