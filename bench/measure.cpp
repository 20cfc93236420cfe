#include "measure.hpp"

#include "sqlite_raw.hpp"
#include "support/line_follower.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "timed.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

/// The files of one measurement.
struct files {
    support::temporary_folder folder;
    std::string shop = folder.file("shop.db");
    std::string streams = folder.file("streams.db");
    std::string state = folder.file("state.db");

    command relay(const setup& with) const {
        return {
            with.millrace,
            "relay",
            "--outbox",
            "sqlite:" + shop,
            "--sink",
            "local:" + streams,
            "--log-level",
            "warning"};
    }
    command consume(const setup& with) const {
        return {
            with.millrace,
            "consume",
            "--stream",
            "local:" + streams + "/bench",
            "--group",
            "bench",
            "--state",
            "sqlite:" + state,
            "--log-level",
            "warning"};
    }
    void create(const setup& with) const {
        timed({with.millrace, "outbox", "init", "--outbox", "sqlite:" + shop});
        create_stream(with);
    }
    void create_stream(const setup& with) const {
        timed(
            {with.millrace,
             "stream",
             "create",
             "--shards",
             std::to_string(with.data.shards),
             "--stream",
             "local:" + streams + "/bench"}
        );
    }
};

command plus(command base, std::initializer_list<const char*> more) {
    base.insert(base.end(), more.begin(), more.end());
    return base;
}

/// Peak memory with a small backlog, to show that it does not grow with the backlog.
constexpr std::uint64_t small_backlog = 10'000;

/// Waits until the consumer has printed `lines` in all; looks five thousand times a second.
void wait_for_lines(support::line_follower& output, std::uint64_t& seen, std::uint64_t lines) {
    const auto limit = clock::now() + 30s;
    while (seen < lines) {
        output.read([&](const std::string&) { ++seen; });
        if (seen < lines) {
            if (clock::now() > limit) throw std::runtime_error("no delivery within 30 s");
            std::this_thread::sleep_for(200us);
        }
    }
}

support::process start(const command& what, const std::string& output = {}) {
    return support::process{what, {.input = {}, .output = output, .errors = {}, .environment = {}}};
}

void commit_event(sqlite3_stmt* insert) {
    if (sqlite3_step(insert) != SQLITE_DONE) throw std::runtime_error("the event could not be written");
    sqlite3_reset(insert);
}

/// What the rounds of one measurement took.
struct rounds {
    std::vector<double> rates;
    std::vector<double> probe_rates;
    std::vector<double> memories;
    std::vector<double> cpus;

    /// `prepared` leaves the files as each run wants them.
    template <class F>
    void run(const setup& with, const command& program, const command& probe, F prepared) {
        const auto rows = static_cast<double>(with.data.rows);
        for (int round = 0; round < with.rounds; ++round) {
            prepared();
            const auto took = timed(program);
            rates.push_back(rows / took.wall);
            memories.push_back(took.memory_mib);
            cpus.push_back(took.cpu);
            prepared();
            probe_rates.push_back(rows / timed(probe).wall);
        }
    }
};

}  // namespace

std::vector<figure> measure_drain(const setup& with) {
    const files at;
    at.create(with);
    fill_outbox(at.shop, with.data);
    const auto full = at.folder.file("full.db");
    copy_database(at.shop, full);

    const auto fresh = [&] {
        copy_database(full, at.shop);
        remove_database(at.streams);
        at.create_stream(with);
    };
    rounds took;
    took.run(
        with, plus(at.relay(with), {"--once"}), {with.self, "--probe", "drain", at.shop, at.streams}, fresh
    );

    // The probe has appended to the last stream without a word to its counters.
    const files other;
    other.create(with);
    fill_outbox(other.shop, {.rows = small_backlog});
    const auto small = timed(plus(other.relay(with), {"--once"}));
    return {
        against("relay drain", took.rates, took.probe_rates, {0.40, 0.65}),
        cost("relay drain, processor", median(took.cpus), with.data.rows),
        memory("relay peak memory", median(took.memories), 40, 25),
        memory("relay peak memory, 10 k rows", small.memory_mib, 40, 25)};
}

std::vector<figure> measure_consume(const setup& with) {
    const files at;
    at.create(with);
    fill_outbox(at.shop, {.rows = small_backlog});
    timed(plus(at.relay(with), {"--once"}));
    const auto small = timed(plus(at.consume(with), {"--idle-exit", "0"}));

    remove_database(at.streams);
    at.create_stream(with);
    fill_outbox(at.shop, with.data);
    timed(plus(at.relay(with), {"--once"}));
    rounds took;
    took.run(
        with,
        plus(at.consume(with), {"--idle-exit", "0"}),
        {with.self, "--probe", "consume", at.streams},
        [&] { remove_database(at.state); }
    );
    return {
        against("group consumption", took.rates, took.probe_rates, {0.40, 0.65}),
        cost("group consumption, processor", median(took.cpus), with.data.rows),
        memory("consumer peak memory", median(took.memories), 40, 25),
        memory("consumer peak memory, 10 k records", small.memory_mib, 40, 25)};
}

std::vector<figure> measure_latency(const setup& with) {
    constexpr int starts = 10;
    constexpr int commits = 300;
    std::vector<double> first;
    for (int i = 0; i < starts; ++i) {
        const files at;
        at.create(with);
        fill_outbox(at.shop, {.rows = 1});
        support::line_follower output{at.folder.file("out")};
        std::uint64_t seen = 0;
        const auto begin = clock::now();
        const auto relay = start(at.relay(with));
        const auto consumer = start(plus(at.consume(with), {"--print"}), at.folder.file("out"));
        wait_for_lines(output, seen, 1);
        first.push_back(seconds{clock::now() - begin}.count() * 1000);
    }

    const files at;
    at.create(with);
    fill_outbox(at.shop, {.rows = 1});
    const auto relay = start(at.relay(with));
    const auto consumer = start(plus(at.consume(with), {"--print"}), at.folder.file("out"));
    support::line_follower output{at.folder.file("out")};
    std::uint64_t seen = 0;
    wait_for_lines(output, seen, 1);
    const auto db = open(at.shop, "NORMAL");
    const auto insert =
        prepare(db.get(), "INSERT INTO outbox (topic, key, value) VALUES ('bench', 'k', 'v')");
    std::vector<double> idle;
    for (std::uint64_t i = 0; i < commits; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{30 + i * 7 % 40}
        );  // out of step with any polling
        commit_event(insert.get());
        const auto committed = clock::now();
        wait_for_lines(output, seen, i + 2);
        idle.push_back(seconds{clock::now() - committed}.count() * 1000);
    }
    auto p99 = milliseconds("the same, 99 in 100", percentile(idle, 0.99), 0, 0);
    p99.must.clear();
    p99.met = true;
    return {
        milliseconds("start of relay and consumer to first event", median(first), 150, 0),
        milliseconds("commit to handler while idle, median", median(idle), 25, 0),
        p99};
}

std::vector<figure> measure_idle(const setup& with) {
    const files at;
    at.create(with);
    fill_outbox(at.shop, {.rows = 1});
    const auto relay = start(at.relay(with));
    const auto consumer = start(plus(at.consume(with), {"--print"}), at.folder.file("out"));
    support::line_follower output{at.folder.file("out")};
    std::uint64_t seen = 0;
    wait_for_lines(output, seen, 1);
    std::this_thread::sleep_for(2s);
    const auto relay_before = cpu_seconds(relay.pid());
    const auto consumer_before = cpu_seconds(consumer.pid());
    constexpr double span = 20;
    std::this_thread::sleep_for(seconds{span});
    const auto share = [&](const std::string& what, double used) -> figure {
        const double percent = used / span * 100;
        return {what, fmt::format("{:.2f} % of a core", percent), "", "", "1 %", "", percent < 1};
    };
    return {
        share("idle relay", cpu_seconds(relay.pid()) - relay_before),
        share("idle consumer", cpu_seconds(consumer.pid()) - consumer_before)};
}

}  // namespace millrace::bench
