#include "world.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace millrace::sim {

namespace {

constexpr std::uint64_t steps_max = 1'000'000;  // a run that takes more goes round in circles

}  // namespace

world::world(scenario plan, const seams& between, bool with_trace)
    : plan_(std::move(plan)),
      random_(plan_.seed),
      trace_(scheduler_, with_trace),
      verdicts_(trace_),
      health_(scheduler_),
      seams_(between),
      store_(plan_.store),
      stream_faults_(plan_.stream),
      outbox_faults_(plan_.outbox),
      sink_faults_(plan_.sink),
      outbox_(scheduler_, plan_.outbox_signals),
      orders_(&sink_.topic("orders", scheduler_, random_, plan_.topic)),
      group_oracle_(scheduler_, trace_, verdicts_, group_rows_, *orders_, health_),
      relay_oracle_(scheduler_, trace_, verdicts_, plan_.relay.on_poison, health_) {
    wire();
    for (std::size_t i = 0; i < plan_.workers; ++i)
        add_seat(seat::kind::worker, fmt::format("w{}", i), upto(500ms));
    for (std::size_t i = 0; i < plan_.relays; ++i)
        add_seat(seat::kind::relay, fmt::format("r{}", i), upto(500ms));
    plan_faults();
}

void world::wire() {
    (void)sink_.topic("audit", scheduler_, random_, {});
    orders_->observe([this](const stored_shard& shard, const stored_record& record) {
        ++report_.events;
        group_oracle_.appended(shard, record);
    });
    sink_.verdict = [this](const outbox_row& row) { return writers_->verdict(row); };
    sink_.observe([this](const outbox_row& row, epoch under) { relay_oracle_.appended(row, under); });
    group_rows_.observe([this](const std::string& client, const lease_row* before, const lease_row* after) {
        group_oracle_.row_changed(client, before, after);
    });
    group_oracle_.gone = [this](const process_identity& who) { return !running_.contains(who.pid); };
    group_oracle_.drift_per_million = plan_.drift_per_million;
    group_oracle_.book().bounds = {
        plan_.group.checkpoint_every,
        plan_.group.checkpoint_records,
        plan_.group.drain_limit,
        plan_.session.lease};
    relay_oracle_.book().bounds = {
        plan_.relay.delete_delay, plan_.relay.client_window_rows, plan_.session.lease};
    outbox_.observe([this](outbox_table::change what, const stored_row& row) {
        relay_oracle_.changed(what, row);
    });
    outbox_.owner_epoch = relay_oracle_.owner_epoch = [this] {
        const auto* row = relay_rows_.find(outbox_shard());
        return row != nullptr ? std::get<shard_row>(*row).epoch : epoch{};
    };
    writers_ = std::make_unique<writers>(scheduler_, random_, outbox_, relay_oracle_, plan_);
}

nanoseconds world::upto(nanoseconds span) {
    return nanoseconds{
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(span.count()) + 1))};
}

void world::add_seat(seat::kind role, std::string id, nanoseconds starts) {
    auto& where = *seats_.emplace_back(std::make_unique<seat>(seat{role, std::move(id), nullptr}));
    scheduler_.at(scheduler_.now() + starts, [this, &where] { start(where); });
}

member_setup world::make_member(const seat& where) {
    const auto pid = next_pid_++;
    running_.insert(pid);
    const auto spread = static_cast<std::uint64_t>(plan_.drift_per_million);
    const auto drift = static_cast<std::int32_t>(random_.below(1 + 2 * spread)) - plan_.drift_per_million;
    const auto host = "host-" + (plan_.one_machine ? "0" : where.id.substr(0, 2));
    auto session = plan_.session;
    session.worker = worker_id{where.id};
    const auto relays = where.role == seat::kind::relay;
    return {
        {host, "boot-" + host, "pids", pid, static_cast<std::uint64_t>(pid)},
        session,
        relays ? plan_.relay_group : plan_.group,
        {upto(1h), upto(10s), drift},
        relays ? relay_rows_ : group_rows_,
        store_};
}

std::unique_ptr<process> world::make_process(const seat& where, std::function<void(const error&)> exit) {
    const surroundings around{
        scheduler_,
        random_,
        trace_,
        verdicts_,
        seams_,
        [this](const process_identity& who) { return !running_.contains(who.pid); },
        health_};
    const auto member = make_member(where);
    if (where.role == seat::kind::relay) {
        const relay_setup setup{
            member, plan_.relay, plan_.broker, outbox_, sink_, outbox_faults_, sink_faults_, relay_oracle_};
        return std::make_unique<relay_process>(around, setup, std::move(exit));
    }
    const worker_setup setup{
        member, plan_.shard, plan_.handler, *orders_, stream_faults_, group_oracle_, mended_};
    return std::make_unique<worker>(around, setup, std::move(exit));
}

void world::start(seat& where) {
    if (where.process) return;
    where.stopping = false;
    const auto pid = next_pid_;
    where.process = make_process(where, [this, &where, pid](const error& why) { exited(where, pid, why); });
    trace_.say(where.process->part().name(), "starts as {}", where.id);
    where.process->start();
}

void world::start_later(seat& where, nanoseconds at_most) {
    scheduler_.at(scheduler_.now() + upto(at_most), [this, &where] { start(where); });
}

void world::kill(seat& where) {
    if (!where.process) return;
    running_.erase(where.process->part().process().pid);
    health_.ended(where.process->part().name());
    where.process.reset();
}

void world::exited(seat& where, std::int64_t pid, const error& why) {
    if (!where.process || where.process->part().process().pid != pid) return;
    trace_.say(where.process->part().name(), "exits: {}", why.detail);
    kill(where);
    if (why.code == errc::worker_id_taken) where.id += "x";
    start_later(where, 2s);
}

std::string world::unbalanced() const {
    std::map<incarnation, std::size_t> holds;
    std::size_t running = 0;
    for (const auto& where : seats_)
        running += where->role == seat::kind::worker && where->process ? 1 : 0;
    for (const auto& [key, row] : group_rows_.rows())
        if (std::holds_alternative<worker_row>(row)) holds[std::get<incarnation>(key)] = 0;
    if (holds.size() != running)
        return fmt::format("{} sessions stand, {} workers run", holds.size(), running);
    for (const auto& stored : orders_->shards()) {
        if (stored->listed.closed || stored->expired) continue;
        const auto* row = group_rows_.find(stored->listed.shard);
        const auto owner = row != nullptr ? std::get<shard_row>(*row).owner : incarnation{};
        if (!holds.contains(owner)) return fmt::format("{} has no live owner", stored->listed.shard.value());
        ++holds[owner];
    }
    std::size_t least = orders_->shards().size();
    std::size_t most = 0;
    for (const auto& [who, count] : holds) {
        least = std::min(least, count);
        most = std::max(most, count);
    }
    if (most > least + 1) return fmt::format("one worker holds {} shards, another {}", most, least);
    return {};
}

std::string world::unfinished() const {
    if (writers_->open() > 0) return "writers are still at work";
    if (auto what = relay_oracle_.missing(); !what.empty()) return what;
    if (auto what = group_oracle_.missing(); !what.empty()) return what;
    return unbalanced();
}

void world::check_end() {
    if (plan_.faulty) return;
    if (relay_oracle_.repeated() > 0)
        verdicts_.broken("{} rows were published twice in a run without faults", relay_oracle_.repeated());
    if (group_oracle_.repeated() > 0)
        verdicts_.broken("{} records were handled twice in a run without faults", group_oracle_.repeated());
}

run_report world::run() {
    auto look_at = plan_.faults_until;
    const auto give_up = plan_.faults_until + plan_.settles_within;
    while (verdicts_.clean()) {
        if (!scheduler_.step()) {
            verdicts_.broken("nothing happens any more; {}", unfinished());
            break;
        }
        if (scheduler_.steps() > steps_max)
            verdicts_.broken("the run goes round in circles; {}", unfinished());
        if (!faults_over_ || scheduler_.now() < look_at) continue;
        look_at = scheduler_.now() + 100ms;
        const auto what = unfinished();
        if (what.empty()) {
            check_end();
            break;
        }
        if (scheduler_.now() > give_up)
            verdicts_.broken("{} s after the faults stopped, {}", plan_.settles_within / 1s, what);
    }
    report_.failures = verdicts_.failures();
    report_.lines = trace_.lines();
    report_.rows = relay_oracle_.committed();
    report_.handed = group_oracle_.handed();
    report_.repeated = relay_oracle_.repeated() + group_oracle_.repeated();
    report_.effects = group_oracle_.effects();
    report_.why = relay_oracle_.book().counted();
    report_.why += group_oracle_.book().counted();
    report_.steps = scheduler_.steps();
    report_.took = scheduler_.now();
    return report_;
}

run_report run_seed(std::uint64_t seed, bool with_trace) {
    return world(draw_scenario(seed), {}, with_trace).run();
}

}  // namespace millrace::sim
