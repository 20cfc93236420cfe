#include "group/measure_group.hpp"

#include "group/fast_stream.hpp"
#include "support/line_follower.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "timed.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr double record_memory_mib = 16;  ///< The default of --memory-bytes, which a backlog fills.

command consume(const setup& with, const fast_stream& from, const support::temporary_folder& folder) {
    ::setenv("AWS_ACCESS_KEY_ID", "bench", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "bench", 1);
    return {
        with.millrace,
        "consume",
        "--stream",
        from.url(),
        "--group",
        "bench",
        "--state",
        "sqlite:" + folder.file("state.db"),
        "--log-level",
        "warning"};
}

command plus(command base, std::initializer_list<const char*> more) {
    base.insert(base.end(), more.begin(), more.end());
    return base;
}

/// A run from a new state to the tip of all shards.
run_figures drain(const setup& with, const fast_stream& from, std::initializer_list<const char*> more) {
    const support::temporary_folder folder;
    return timed(plus(plus(consume(with, from, folder), {"--idle-exit", "0"}), more));
}

figure beyond_records(const std::string& what, double mib, double must, double aim) {
    return memory(what, mib - record_memory_mib, must, aim);
}

}  // namespace

std::vector<figure> measure_group_drain(const setup& with) {
    constexpr std::uint32_t shards = 8;
    const fast_stream stream({.shards = shards, .records = with.data.rows / shards, .record_bytes = 1'000});
    const auto records = with.data.rows / shards * shards;
    std::vector<double> rates;
    std::vector<double> probe_rates;
    std::vector<double> cpus;
    std::vector<double> memories;
    for (int round = 0; round < with.rounds; ++round) {
        const auto took = drain(with, stream, {"--reads-per-second", "0", "--read-bytes-per-second", "0"});
        rates.push_back(static_cast<double>(records) / took.wall);
        cpus.push_back(took.cpu);
        memories.push_back(took.memory_mib);
        const auto probe =
            timed({with.self, "--probe", "kinesis", stream.endpoint(), std::to_string(shards)});
        probe_rates.push_back(static_cast<double>(records) / probe.wall);
    }
    const auto per_million = median(cpus) * 1e6 / static_cast<double>(records);
    return {
        against("group on Kinesis, 1,000 B, limits lifted", rates, probe_rates, {0.40, 0.65}),
        {"group on Kinesis, processor, limits lifted",
         fmt::format("{:.2f} CPU-s a million", per_million),
         "",
         "",
         "2.00",
         "1.00",
         per_million <= 2},
        beyond_records("group on Kinesis, peak memory beyond 16 MiB of records", median(memories), 40, 20)};
}

std::vector<figure> measure_group_shards(const setup& with) {
    const fast_stream stream({.shards = 2'000, .records = 50, .record_bytes = 1'000});
    const auto took = drain(with, stream, {});  // once: it takes its time, and memory hardly varies
    return {beyond_records("2,000 shards, peak memory beyond 16 MiB of records", took.memory_mib, 64, 32)};
}

std::vector<figure> measure_group_tip(const setup& with) {
    constexpr auto span = 10s;
    std::vector<figure> figures;
    for (const std::uint32_t shards : {8U, 2'000U}) {
        const fast_stream stream({.shards = shards, .records = 10, .record_bytes = 1'000});
        const support::temporary_folder folder;
        const support::process worker{
            consume(with, stream, folder), {.input = {}, .output = {}, .errors = {}, .environment = {}}};
        std::this_thread::sleep_for(shards > 100 ? 15s : 3s);
        const auto cpu = cpu_seconds(worker.pid());
        const auto reads = stream.reads();
        std::this_thread::sleep_for(span);
        const auto done = static_cast<double>(stream.reads() - reads);
        const auto used = cpu_seconds(worker.pid()) - cpu;
        const double each = done > 0 ? used * 1000 / done : 1e9;
        figures.push_back(
            {fmt::format(
                 "a read at the tip, {} shards ({:.0f} reads/s)", shards, done / seconds{span}.count()
             ),
             fmt::format("{:.2f} CPU-ms", each),
             "",
             "",
             "0.50 CPU-ms",
             "0.20 CPU-ms",
             each <= 0.5}
        );
    }
    return figures;
}

std::vector<figure> measure_group_start(const setup& with) {
    constexpr int starts = 10;
    const fast_stream stream({.shards = 8, .records = 10, .record_bytes = 1'000});
    std::vector<double> first;
    for (int i = 0; i < starts; ++i) {
        const support::temporary_folder folder;
        support::line_follower output{folder.file("out")};
        const auto begin = clock::now();
        const support::process worker{
            plus(consume(with, stream, folder), {"--print"}),
            {.input = {}, .output = folder.file("out"), .errors = {}, .environment = {}}};
        for (bool seen = false; !seen;) {
            output.read([&](const std::string&) { seen = true; });
            if (clock::now() - begin > 30s) throw std::runtime_error("no record within 30 s");
            std::this_thread::sleep_for(200us);
        }
        first.push_back(seconds{clock::now() - begin}.count() * 1000);
    }
    return {milliseconds("start to first record, new state in SQLite", median(first), 500, 0)};
}

}  // namespace millrace::bench
