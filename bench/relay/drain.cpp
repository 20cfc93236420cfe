#include "relay/measure_relay.hpp"
#include "relay/outboxes.hpp"
#include "timed.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

constexpr std::uint64_t small_backlog = 10'000;

run_figures drain_once(const setup& with, const servers& at, const dataset& data, bool hold_horizon) {
    const pg_outbox outbox(with, at);
    outbox.fill(data);
    const auto holder = connect(at.postgres);
    if (hold_horizon) {
        run_sql(holder.get(), "BEGIN ISOLATION LEVEL REPEATABLE READ");
        run_sql(holder.get(), "SELECT txid_current()");
    }
    auto relay = outbox.relay();
    relay.emplace_back("--once");
    return timed(relay);
}

/// The lower of the two ceilings, in rows a second.
double probe_once(const setup& with, const servers& at) {
    const pg_outbox outbox(with, at);
    outbox.fill(with.data);
    const auto rows = static_cast<double>(with.data.rows);
    const auto database = timed({with.self, "--probe", "postgres", outbox.table()});
    const auto broker = timed(
        {with.self,
         "--probe",
         "kafka",
         outbox.name(),
         std::to_string(with.data.rows),
         std::to_string(with.data.keys),
         std::to_string(with.data.value_bytes)}
    );
    fmt::print(
        stderr,
        "  probes: libpq {:.0f} k/s, librdkafka {:.0f} k/s\n",
        rows / database.wall / 1e3,
        rows / broker.wall / 1e3
    );
    return rows / std::max(database.wall, broker.wall);
}

}  // namespace

std::vector<figure> measure_relay_drain(const setup& with) {
    const auto at = servers_of_environment();
    const auto rows = static_cast<double>(with.data.rows);
    auto one_key = with.data;
    one_key.keys = 1;
    std::vector<double> many;
    std::vector<double> probes;
    std::vector<double> hot;
    std::vector<double> held;
    std::vector<double> cpus;
    std::vector<double> memories;
    for (int round = 0; round < with.rounds; ++round) {
        const auto drained = drain_once(with, at, with.data, false);
        many.push_back(rows / drained.wall);
        cpus.push_back(drained.cpu);
        memories.push_back(drained.memory_mib);
        probes.push_back(probe_once(with, at));
        hot.push_back(rows / drain_once(with, at, one_key, false).wall);
        held.push_back(rows / drain_once(with, at, with.data, true).wall);
    }
    auto small = with.data;
    small.rows = small_backlog;
    auto processor = cost("processor of the relay, drain", median(cpus), with.data.rows);
    processor.must = "6";
    processor.aim = "3.5";
    processor.met = median(cpus) * 1e6 / rows <= 6;
    return {
        against("drain, against the lower probe", many, probes, {0.40, 0.65}),
        against("one hot key, against many keys", hot, many, {0.60, 0.90}),
        against("drain under a held xmin horizon, against without", held, many, {0.80, 0.95}),
        processor,
        memory("peak memory", median(memories), 64, 30),
        memory("peak memory, 10 k rows", drain_once(with, at, small, false).memory_mib, 64, 30)};
}

}  // namespace millrace::bench
