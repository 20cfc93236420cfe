#include "world.hpp"

#include <algorithm>
#include <utility>

namespace millrace::sim {

namespace {

constexpr std::size_t shards_max = 12;

}  // namespace

void world::every(nanoseconds mean, const std::function<void()>& what) {
    if (mean == 0ns) return;
    const auto when = scheduler_.now() + mean / 2 + upto(mean);
    if (when >= plan_.faults_until) return;
    scheduler_.at(when, [this, mean, what] {
        what();
        every(mean, what);
    });
}

void world::plan_faults() {
    const auto& p = plan_.processes;
    every(p.crash_every, [this] { crash(); });
    every(p.pause_every, [this] { pause(false); });
    every(p.stall_every, [this] { pause(true); });
    every(p.stop_every, [this] { stop_cleanly(); });
    every(p.twin_every, [this] { start_twin(); });
    every(p.reshard_every, [this] { reshard(); });
    every(p.outage_every, [this] { outage(); });
    every(p.replay_every, [this] { replay(); });
    every(p.trim_every, [this] { trim(); });
    every(p.clock_every, [this] { set_a_clock(); });
    every(200ms, [this] { look_at_budgets(); });
    if (plan_.sick_shard) orders_->sick.insert(orders_->shards().front()->listed.shard);
    scheduler_.at(plan_.faults_until, [this] { calm_down(); });
}

world::seat* world::some_running() {
    auto& where = *seats_[random_.below(seats_.size())];
    return where.process && !where.stopping ? &where : nullptr;
}

void world::crash() {
    auto* where = some_running();
    if (where == nullptr) return;
    ++report_.crashes;
    trace_.say(where->process->part().name(), "crashes");
    kill(*where);
    if (random_.chance(40))
        where->id = fmt::format("{}{}", where->id.substr(0, 2), "abcdefgh"[random_.below(8)]);
    start_later(*where, random_.chance(50) ? 100ms : 2 * plan_.session.lease);
}

void world::pause(bool only_loop) {
    auto* where = some_running();
    if (where == nullptr) return;
    ++report_.pauses;
    auto& part = where->process->part();
    const auto lasts = 10ms + upto(plan_.processes.pause_max);
    health_.trouble(part.name());
    trace_.say(part.name(), "{} for {} ms", only_loop ? "stalls" : "pauses", lasts / 1ms);
    if (only_loop) {
        part.loop().pause();
    } else {
        part.pause();
    }
    scheduler_.at(scheduler_.now() + lasts, [this, where, pid = part.process().pid] {
        if (!where->process || where->process->part().process().pid != pid) return;
        health_.trouble(where->process->part().name());
        trace_.say(where->process->part().name(), "goes on");
        where->process->part().resume();
    });
}

void world::stop_cleanly() {
    auto* where = some_running();
    if (where == nullptr) return;
    where->stopping = true;
    auto& part = where->process->part();
    trace_.say(part.name(), "is stopped");
    const auto pid = part.process().pid;
    const auto gone = [this, where, pid](const char* how) {
        if (!where->process || where->process->part().process().pid != pid) return;
        trace_.say(where->process->part().name(), "{}", how);
        kill(*where);
        start_later(*where, 2s);
    };
    part.loop().post([this, where, gone] {
        where->process->stop([this, gone](const result<void>& outcome) {
            if (!outcome && outcome.error().detail.empty())
                verdicts_.broken("a stop failed and does not say why");
            scheduler_.at(scheduler_.now(), [gone] { gone("has stopped"); });
        });
    });
    // Whoever supervises it loses patience.
    const auto patience = plan_.group.drain_limit + plan_.relay.drain_limit + 3 * plan_.session.lease;
    scheduler_.at(scheduler_.now() + patience, [gone] { gone("is killed while it stops"); });
}

void world::start_twin() {
    auto* where = some_running();
    if (where == nullptr) return;
    trace_.say("operator", "starts a second {}", where->id);
    add_seat(where->role, where->id, 0ms);
}

void world::reshard() {
    std::vector<const stored_shard*> open;
    for (const auto& shard : orders_->shards())
        if (!shard->listed.closed) open.push_back(shard.get());
    ++report_.reshards;
    const auto* chosen = open[random_.below(open.size())];
    const auto name = chosen->listed.shard;
    if (random_.chance(50) && orders_->shards().size() < shards_max) {
        trace_.say("operator", "splits {}", name.value());
        (void)orders_->split(name);
        return;
    }
    for (const auto* other : open) {
        if (chosen->hash_to + 1 != other->hash_from || other->hash_from == 0) continue;
        trace_.say("operator", "merges {} and {}", name.value(), other->listed.shard.value());
        (void)orders_->merge(name, other->listed.shard);
        return;
    }
}

void world::outage() {
    faults* services[] = {&store_, &stream_faults_, &outbox_faults_, &sink_faults_};
    auto* down = services[random_.below(4)];
    const auto lasts = 100ms + upto(plan_.session.lease * 3 / 2);
    trace_.say("operator", "a service is down for {} ms", lasts / 1ms);
    down->down = true;
    scheduler_.at(scheduler_.now() + lasts, [down] { down->down = false; });
}

void world::replay() {
    if (random_.chance(10)) {
        trace_.say("operator", "restores the outbox table");
        outbox_.recreate();
        relay_oracle_.book().table_restored();
    }
    if (outbox_.dead().empty()) return;
    const auto lane = lane_of(outbox_.dead()[random_.below(outbox_.dead().size())].row);
    trace_.say("operator", "replays the lane {}/{}", lane.topic, lane.key.value_or("-"));
    outbox_.replay(lane);
}

void world::trim() {
    const auto horizon = scheduler_.now() - plan_.processes.keeps;
    std::vector<shard_id> empty;
    for (const auto& stored : orders_->shards()) {
        if (stored->expired) continue;
        const auto& records = stored->records;
        const auto old = static_cast<std::size_t>(
            std::count_if(records.begin(), records.end(), [&](const auto& r) { return r.arrived < horizon; })
        );
        if (old > stored->trimmed) {
            trace_.say("stream", "trims {} up to record {}", stored->listed.shard.value(), old);
            orders_->trim(stored->listed.shard, old - stored->trimmed);
        }
        // Parents leave the list before their children.
        const auto& parents = stored->listed.parents;
        const auto first = std::none_of(parents.begin(), parents.end(), [this](const shard_id& parent) {
            return orders_->find(parent) != nullptr;
        });
        const auto none_left = stored->listed.closed && stored->trimmed == records.size();
        if (first && none_left && !records.empty()) empty.push_back(stored->listed.shard);
    }
    for (const auto& shard : empty) {
        if (!random_.chance(30)) continue;
        trace_.say("stream", "no longer lists {}", shard.value());
        orders_->expire(shard);
    }
}

void world::set_a_clock() {
    auto* where = some_running();
    if (where == nullptr) return;
    const auto by = upto(10h) - 5h;
    trace_.say(where->process->part().name(), "its wall clock jumps by {} s", by / 1s);
    where->process->part().jump_wall(by);
}

void world::look_at_budgets() {
    if (plan_.quiet) {
        const auto what = group_oracle_.unwritten(plan_.group.checkpoint_every + 1s);
        if (!what.empty()) verdicts_.broken("{}", what);
    }
    for (const auto& where : seats_) {
        if (!where->process) continue;
        const auto over = where->process->over_budget();
        if (!over.empty()) verdicts_.broken("{}: {}", where->process->part().name(), over);
    }
}

void world::calm_down() {
    if (plan_.sick_shard) {
        constexpr auto patience = 5s;
        for (const auto& what : {group_oracle_.lagging(patience), relay_oracle_.lagging(patience)})
            if (!what.empty()) verdicts_.broken("{} although nothing ails it", what);
    }
    orders_->heal();
    trace_.say("operator", "the faults are over");
    faults_over_ = mended_ = true;
    for (auto* service : {&store_, &stream_faults_, &outbox_faults_, &sink_faults_})
        *service = service->calm();
    writers_->mend();
    (void)sink_.topic("lost", scheduler_, random_, {});
    const auto stopped = plan_.faulty && plan_.shard.on_failure == failure_policy::stop;
    for (const auto& where : seats_) {
        if (where->process && !where->stopping && stopped && where->role == seat::kind::worker) kill(*where);
        if (where->process) {
            health_.trouble(where->process->part().name());
            where->process->part().resume();
        }
        if (!where->process) start_later(*where, 500ms);
    }
    while (!outbox_.dead().empty()) {
        const auto lane = lane_of(outbox_.dead().front().row);
        trace_.say("operator", "replays the lane {}/{}", lane.topic, lane.key.value_or("-"));
        outbox_.replay(lane);
    }
}

}  // namespace millrace::sim
