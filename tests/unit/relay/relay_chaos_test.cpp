// Random faults of outbox, sink and leadership, with the oracles of `relay_world`.
#include "relay_world.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::IsEmpty;

// Writers serialise per key before they draw an id, so per key the order of ids is the order of commits.
struct chaos {
    explicit chaos(std::uint64_t seed)
        : w({.seed = seed,
             .relay =
                 {.max_attempts = 3,
                  .retry_min = 5ms,
                  .retry_max = 100ms,
                  .fetch_rows = 1 + seed % 50,
                  .window_rows = 60 + seed % 100,
                  .client_window_rows = 40,
                  .delete_rows = 1 + seed % 20,
                  .gaps_max = 1 + seed % 30,
                  .probes_in_flight = 1 + seed % 4,
                  .sweep_every = 1s,
                  .sweep_share = 0.5},
             .sink = {
                 .capacity = {.request_rows_max = 1 + seed % 9, .requests_in_flight_max = 1 + seed % 5},
                 .blamed_rows = 1 + seed % 4,
                 .suspected = static_cast<std::uint32_t>(seed % 3 == 0 ? 10 : 0)}}) {}

    void write() {
        auto& random = w.random;
        const auto key = "k" + std::to_string(random.below(12));
        if (busy.count(key) > 0) return;
        const auto tx = w.table.begin();
        const auto id = w.table.draw(tx);
        if (random.chance(10)) w.table.skip_ids(static_cast<std::int64_t>(random.below(1000)));
        std::string value = random.chance(3) ? "bad" : random.chance(3) ? "mends" : "v";
        w.table.insert(
            tx,
            id,
            {.topic = random.chance(70) ? "t" : "u", .key = key, .value = std::move(value)},
            random.chance(2) ? "no headers" : ""
        );
        busy.insert(key);
        const auto commits = !random.chance(15);
        w.world.at(
            w.world.now() +
                nanoseconds{
                    static_cast<std::int64_t>(random.below(random.chance(10) ? 300'000'000 : 3'000'000))},
            [this, tx, key, commits] {
                busy.erase(key);
                if (commits) {
                    w.table.commit(tx);
                } else {
                    w.table.roll_back(tx);
                }
            }
        );
    }

    void run() {
        w.service.verdict = [this](const outbox_row& row) -> std::optional<error> {
            if (row.value == "bad") return refusal();
            if (row.value == "mends" && w.random.chance(50))
                return refusal(errc::refused_record, retry_advice::after_delay);
            if (row.topic == "u" && topic_down)
                return refusal(errc::refused_topic, retry_advice::after_delay);
            return std::nullopt;
        };
        std::uint64_t life = 1;
        w.driver->start(epoch{life});
        for (auto i = 0; i < 1500; ++i) {
            write();
            w.world.run_for(nanoseconds{static_cast<std::int64_t>(w.random.below(2'000'000))});
            if (w.random.chance(1)) set_faults();
            if (w.random.chance(1)) topic_down = !topic_down;
            if (w.random.below(300) == 0) replay();
            if (w.random.below(150) == 0)
                pause_or_resume(w.random.chance(60) ? "t" : w.random.chance(50) ? "u" : "");
            if (w.random.below(400) == 0) {
                w.driver->halt();
                w.driver->start(epoch{++life});
            }
        }
        w.outbox_faults = w.outbox_faults.calm();
        w.sink_faults = w.sink_faults.calm();
        topic_down = false;
        for (const auto* topic : {"t", "u", ""})
            w.table.resume(topic);
        settled = w.run_until_empty(300s);
    }

    void set_faults() {
        const auto on = w.random.chance(50);
        for (auto* plan : {&w.outbox_faults, &w.sink_faults}) {
            *plan = plan->calm();
            plan->timeout = 20ms;
            if (on)
                plan->unavailable = plan->throttled = plan->lost_request = plan->lost_reply = plan->late = 5;
            plan->late_max = 20ms;
        }
    }

    void replay() {
        if (w.table.parked().empty()) return;
        w.table.replay(*w.table.parked().begin());
    }

    void pause_or_resume(const std::string& topic) {
        w.table.paused().contains(topic) ? w.table.resume(topic) : w.table.pause(topic);
    }

    relay_world w;
    std::set<std::string> busy;
    bool topic_down{false};
    bool settled{false};
};

TEST(RelayUnderFaults, KeepsItsPromisesThroughRandomFaults) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        chaos run(seed);
        run.run();
        ASSERT_TRUE(run.settled) << "seed " << seed << ", left " << run.w.table.rows().size();
        ASSERT_THAT(run.w.broken, IsEmpty()) << "seed " << seed;
        for (const auto& [id, lane] : run.w.lanes) {
            const auto dead =
                std::any_of(run.w.table.dead().begin(), run.w.table.dead().end(), [i = id](const auto& d) {
                    return d.row.id == i;
                });
            ASSERT_TRUE(run.w.appends[id] > 0 || dead) << "seed " << seed << " lost row " << id.value();
        }
    }
}

}  // namespace
}  // namespace millrace::sim
