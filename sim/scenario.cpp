#include "scenario.hpp"

#include <algorithm>

namespace millrace::sim {

namespace {

class dice {
public:
    explicit dice(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15U + 17) {}

    bool chance(std::uint32_t percent) { return random_.chance(percent); }

    template <class T>
    T between(T low, T high) {
        return static_cast<T>(
            low + static_cast<T>(random_.below(static_cast<std::uint64_t>(high - low) + 1))
        );
    }
    nanoseconds span(nanoseconds low, nanoseconds high) {
        return nanoseconds{between<std::int64_t>(low.count(), high.count())};
    }

    /// Zero in most runs.
    std::uint32_t sometimes(std::uint32_t percent_of_runs, std::uint32_t high) {
        return chance(percent_of_runs) ? between<std::uint32_t>(1, high) : 0;
    }
    nanoseconds at_times(std::uint32_t percent_of_runs, nanoseconds low, nanoseconds high) {
        return chance(percent_of_runs) ? span(low, high) : nanoseconds{0};
    }

    template <class T>
    T one_of(std::initializer_list<T> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random_.below(values.size())));
    }

private:
    rng random_;
};

faults service_faults(dice& d, bool bad) {
    faults f;
    f.latency_max = d.one_of<nanoseconds>({2ms, 10ms, 60ms});
    f.timeout = d.span(100ms, 400ms);
    f.late_max = d.span(10ms, 3s);
    if (!bad) return f;
    f.unavailable = d.sometimes(40, 8);
    f.throttled = d.sometimes(40, 8);
    f.lost_request = d.sometimes(40, 6);
    f.lost_reply = d.sometimes(50, 8);
    f.late = d.sometimes(50, 6);
    f.doubled = d.sometimes(30, 6);
    return f;
}

void draw_options(dice& d, scenario& s) {
    s.session.lease = d.span(1200ms, 4s);
    s.group.tick = d.one_of<nanoseconds>({100ms, 300ms, 500ms});
    s.group.shard_list_every = d.span(2s, 8s);
    s.group.discover_every = d.span(1s, 6s);
    s.group.checkpoint_every = d.one_of<nanoseconds>({100ms, 500ms, 1s});
    s.group.checkpoint_records = d.one_of<std::uint64_t>({3, 20, 10'000});
    s.group.drain_limit = d.span(500ms, 3s);
    s.relay_group = s.group;
    if (d.chance(15)) s.group.start = start_policy::latest;

    s.shard.on_failure = d.one_of(
        {failure_policy::retry, failure_policy::retry, failure_policy::dead_letter, failure_policy::stop}
    );
    s.shard.dead_letter_after = d.between<std::uint32_t>(1, 3);
    s.shard.retry_min = 20ms;
    s.shard.retry_max = d.span(100ms, 1s);
    s.shard.batch_records = d.one_of<std::size_t>({1, 3, 20, 1'000});
    s.shard.read_records = d.one_of<std::size_t>({2, 10, 10'000});
    s.shard.memory_bytes = d.one_of<std::size_t>({4'096, 65'536, 16U << 20U});
    s.shard.read_bytes = std::min<std::size_t>(s.shard.memory_bytes / 2, 1U << 20U);
    s.shard.shard_unacknowledged = d.one_of<std::size_t>({4, 50, 50'000});
    s.shard.tip_interval = d.span(100ms, 600ms);
    s.shard.backoff_min = 20ms;
    s.shard.backoff_max = d.span(100ms, 1s);

    s.relay.on_poison = d.one_of(
        {poison_policy::park_key, poison_policy::park_key, poison_policy::park_row, poison_policy::stop}
    );
    s.relay.max_attempts = d.one_of<std::uint32_t>({0, 0, 2, 5});
    s.relay.retry_min = 20ms;
    s.relay.retry_max = d.span(100ms, 1s);
    s.relay.fetch_rows = d.one_of<std::size_t>({2, 10, 2'000});
    s.relay.window_rows = std::max(s.relay.fetch_rows, d.one_of<std::size_t>({8, 40, 20'000}));
    s.relay.client_window_rows = d.one_of<std::size_t>({4, 30, 10'000});
    s.relay.delete_rows = d.one_of<std::size_t>({20, 1'000});
    s.relay.gaps_max = d.one_of<std::size_t>({2, 10, 1'000});
    s.relay.probes_in_flight = d.one_of<std::size_t>({1, 4, 16});
    s.relay.poll_min = d.span(5ms, 30ms);
    s.relay.poll_max = d.span(100ms, 400ms);
    s.relay.gap_probe_every = d.span(50ms, 300ms);
    s.relay.sweep_every = d.span(2s, 8s);
    s.relay.sweep_share = 0.5;
    s.relay.drain_limit = d.span(500ms, 3s);
}

void draw_stream(dice& d, scenario& s) {
    s.topic.shards = d.between<std::size_t>(1, 5);
    s.topic.aggregate = d.sometimes(30, 50);
    s.topic.late_visible_max = d.at_times(30, 10ms, 500ms);
    s.topic.partial_page = d.sometimes(30, 50);
    s.topic.empty_page = d.sometimes(30, 40);
    s.topic.hint_lost = d.one_of<std::uint32_t>({0, 50, 100});
    s.topic.cursor_life = d.chance(30) ? d.span(300ms, 3s) : nanoseconds{5min};
    s.broker.capacity.request_rows_max = d.one_of<std::size_t>({1, 3, 20, 1'000});
    s.broker.capacity.requests_in_flight_max = d.between<std::size_t>(1, 5);
    s.broker.blamed_rows = d.one_of<std::size_t>({1, 1, 4, 100});
    s.broker.client_delay_max = d.one_of<nanoseconds>({1ms, 20ms, 200ms});
    s.broker.suspected = d.sometimes(25, 20);
}

void draw_writers(dice& d, scenario& s) {
    auto& w = s.writers;
    w.events = d.between<std::size_t>(30, 160);
    w.keys = d.between<std::size_t>(1, 12);
    w.until = d.span(2s, 12s);
    if (d.chance(60)) {
        w.open_max = d.span(5ms, 3s);
        w.rolled_back = d.sometimes(60, 30);
        w.drawn_ahead = d.sometimes(20, 10);
        w.cached_ids = d.sometimes(40, 20);
        w.low_ids = w.cached_ids > 0 ? d.sometimes(50, 10) : 0;
    }
    w.keyless = d.sometimes(50, 30);
    w.other_topic = d.sometimes(30, 40);
}

void draw_process_faults(dice& d, scenario& s) {
    auto& p = s.processes;
    p.crash_every = d.at_times(50, 2s, 10s);
    p.pause_every = d.at_times(50, 1s, 8s);
    p.pause_max = d.span(100ms, 2 * s.session.lease);
    p.stall_every = d.at_times(30, 1s, 8s);
    p.stop_every = d.at_times(40, 2s, 10s);
    p.twin_every = d.at_times(10, 4s, 12s);
    p.outage_every = d.at_times(25, 3s, 10s);
    p.replay_every = d.at_times(50, 2s, 6s);
    p.trim_every = d.at_times(20, 500ms, 3s);
    p.keeps = d.span(1s, 6s);
    p.clock_every = d.at_times(20, 1s, 5s);
    if (p.trim_every > 0ns) {
        s.topic.retention = std::chrono::duration_cast<milliseconds>(p.keeps);
        s.topic.trimmed_is_error = d.chance(50);
        // Longer than a listing of the stream can be old: whoever still believes in a shard makes its row
        // anew.
        if (d.chance(50)) s.group.discover_every = 1s;
        s.group.tidy_after = d.chance(50) && s.group.discover_every == 1s ? nanoseconds{4s} : nanoseconds{1h};
    }
    if (!d.chance(20)) return;
    // A storm: processes hardly ever run for the length of a lease.
    p.crash_every = 1500ms;
    p.pause_every = 1s;
    p.pause_max = 3 * s.session.lease;
}

void draw_misbehaviour(dice& d, scenario& s) {
    s.handler.fails = d.sometimes(40, 30);
    s.handler.throws = d.sometimes(20, 15);
    s.handler.partial = d.sometimes(50, 80);
    s.handler.poison = d.sometimes(25, 5);
    s.handler.stuck = d.sometimes(15, 3);
    s.writers.guilty = d.sometimes(40, 10);
    s.writers.reluctant = d.sometimes(30, 10);
    // Under `stop` a row that can never be sent would end every relay for ever.
    s.writers.malformed = s.relay.on_poison == poison_policy::stop ? 0 : d.sometimes(20, 5);
    s.writers.lost_topic = d.sometimes(15, 10);
}

}  // namespace

scenario draw_scenario(std::uint64_t seed) {
    dice d{seed};
    scenario s;
    s.seed = seed;
    s.faulty = !d.chance(12);
    s.workers = d.between<std::size_t>(1, 4);
    s.relays = d.between<std::size_t>(1, 2);
    s.one_machine = d.chance(30);
    s.drift_per_million = d.one_of<std::int32_t>({0, 200, 5'000});
    draw_options(d, s);
    draw_stream(d, s);
    draw_writers(d, s);
    s.processes.reshard_every = d.at_times(60, 800ms, 5s);
    s.handler.later = d.sometimes(50, 100);
    s.handler.waits_max = d.one_of<nanoseconds>({0ms, 2ms, 100ms});
    s.handler.takes_max = d.one_of<nanoseconds>({1ms, 20ms, 150ms, 800ms});
    s.store = service_faults(d, s.faulty && d.chance(60));
    s.stream = service_faults(d, s.faulty && d.chance(60));
    s.outbox = service_faults(d, s.faulty && d.chance(60));
    s.sink = service_faults(d, s.faulty && d.chance(60));
    s.relay_group.drain_limit = s.relay.drain_limit;
    if (!s.faulty) s.group.drain_limit = s.relay_group.drain_limit = s.relay.drain_limit = 20s;
    s.faults_until = s.writers.until + d.span(1s, 6s);
    if (s.faulty) {
        draw_process_faults(d, s);
        draw_misbehaviour(d, s);
        if (d.chance(25)) {
            s.topic.denials = d.between<std::uint32_t>(1, 50);
            s.topic.old_listings = d.between<std::uint32_t>(0, 90);
        }
    }
    if (d.chance(25)) {
        s.topic.rates.reads_per_second = d.one_of<std::uint64_t>({5, 20});
        s.topic.rates.bytes_per_second = d.one_of<std::uint64_t>({50'000, 2U << 20U});
    }
    s.outbox_signals = d.chance(50);
    const auto& p = s.processes;
    const auto& l = s.store;
    const auto process_faults = p.crash_every + p.pause_every + p.stall_every + p.stop_every + p.twin_every;
    const auto store_faults =
        l.unavailable + l.throttled + l.lost_request + l.lost_reply + l.late + l.doubled;
    s.quiet = process_faults + p.outage_every == 0ns && store_faults == 0;
    return s;
}

}  // namespace millrace::sim
