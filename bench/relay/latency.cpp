#include "relay/measure_relay.hpp"
#include "relay/writers.hpp"
#include "support/process.hpp"
#include "timed.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

constexpr double seconds_of_load = 10;
constexpr std::uint64_t warm_up = 500;  // the first transactions are not counted

support::process start(const pg_outbox& outbox) {
    return support::process{outbox.relay(), {.input = {}, .output = {}, .errors = {}, .environment = {}}};
}

/// Milliseconds from the return of each commit to its arrival at the consumer. An arrival before the commit
/// has returned to the writer counts as zero.
std::vector<double> latencies(const setup& with, const servers& at, double per_second) {
    const pg_outbox outbox(with, at);
    topic_tail tail(at, outbox.name(), bench_partitions);
    const auto relay = start(outbox);
    const auto count = static_cast<std::uint64_t>(per_second * seconds_of_load) + warm_up;
    writers load(at, outbox, per_second > 2'000 ? 8 : 4, per_second, count);
    std::vector<mono::time_point> arrived(count);
    std::string value;
    for (std::uint64_t seen = 0; seen < count;) {
        if (!tail.next(value, 10'000)) throw std::runtime_error("no record within 10 s");
        arrived.at(std::stoull(value)) = mono::now();
        ++seen;
    }
    load.finish();
    std::vector<double> all;
    for (std::uint64_t number = warm_up; number < count; ++number) {
        const std::chrono::duration<double, std::milli> took = arrived[number] - load.committed(number);
        all.push_back(std::max(0.0, took.count()));
    }
    return all;
}

double first_record(const setup& with, const servers& at) {
    const pg_outbox outbox(with, at);
    auto one = with.data;
    one.rows = 1;
    outbox.fill(one);
    topic_tail tail(at, outbox.name(), bench_partitions);
    std::string value;
    (void)tail.next(value, 500);  // the consumer is connected before the clock starts
    const auto begin = mono::now();
    const auto relay = start(outbox);
    if (!tail.next(value, 20'000)) throw std::runtime_error("no first record within 20 s");
    return std::chrono::duration<double, std::milli>{mono::now() - begin}.count();
}

}  // namespace

std::vector<figure> measure_relay_latency(const setup& with) {
    const auto at = servers_of_environment();
    std::vector<double> p50;
    std::vector<double> p99;
    std::vector<double> fast_p99;
    std::vector<double> first;
    for (int round = 0; round < with.rounds; ++round) {
        const auto calm = latencies(with, at, 1'000);
        p50.push_back(percentile(calm, 0.5));
        p99.push_back(percentile(calm, 0.99));
        fast_p99.push_back(percentile(latencies(with, at, 5'000), 0.99));
        first.push_back(first_record(with, at));
    }
    return {
        milliseconds("commit to consumer at 1,000 tx/s, median", median(p50), 5, 2),
        milliseconds("commit to consumer at 1,000 tx/s, 99 in 100", median(p99), 15, 8),
        milliseconds("commit to consumer at 5,000 tx/s, 99 in 100", median(fast_p99), 40, 20),
        milliseconds("start to first record, lease free", median(first), 400, 150)};
}

std::vector<figure> measure_relay_writers(const setup& with) {
    const auto at = servers_of_environment();
    constexpr int connections = 8;
    constexpr std::uint64_t count = 40'000;
    const auto rate = [&](double per_second, bool relayed) {
        const pg_outbox outbox(with, at);
        std::optional<support::process> relay;
        if (relayed) relay.emplace(start(outbox));
        writers load(at, outbox, connections, per_second, count);
        return load.finish();
    };
    const double own_maximum = rate(0, false);
    std::vector<double> on;
    std::vector<double> off;
    for (int round = 0; round < with.rounds; ++round) {
        off.push_back(rate(own_maximum * 0.8, false));
        on.push_back(rate(own_maximum * 0.8, true));
    }
    return {against("writers at 80 % of their maximum, relay on against off", on, off, {0.90, 0.97})};
}

}  // namespace millrace::bench
