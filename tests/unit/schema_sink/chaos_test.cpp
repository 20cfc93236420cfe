// Random faults of registry, outbox, sink and leadership at once, with the oracles of `relay_world`.
#include "unit/schema_sink/schema_world.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

namespace millrace::schema::test {
namespace {

using testing::IsEmpty;

struct chaos {
    explicit chaos(std::uint64_t seed)
        : world(
              {.rules = rules(),
               .cache =
                   {.latest_time = 1'000ms,
                    .backoff_min = 5ms,
                    .backoff_max = 100ms,
                    .requests_max = 1 + seed % 3,
                    .entries_max = seed % 5 == 0 ? std::size_t{2} : std::size_t{1'000}},
               .relay =
                   {.seed = seed,
                    .relay =
                        {.on_poison = seed % 2 == 0 ? poison_policy::park_key : poison_policy::park_row,
                         .retry_min = 5ms,
                         .retry_max = 100ms,
                         .fetch_rows = 1 + seed % 50,
                         .window_rows = 60 + seed % 100,
                         .client_window_rows = 40,
                         .probes_in_flight = 1 + seed % 4,
                         .sweep_every = 1s,
                         .sweep_share = 0.5},
                    .sink =
                        {.capacity =
                             {.request_rows_max = 1 + seed % 9, .requests_in_flight_max = 1 + seed % 5},
                         .blamed_rows = 1 + seed % 4,
                         .suspected = static_cast<std::uint32_t>(seed % 3 == 0 ? 10 : 0)}},
               .sink = {.coded_bytes_max = seed % 4 == 0 ? std::size_t{2'000} : std::size_t{1} << 20},
               .coder = {.topics_max = 1 + seed % 3}}
          ),
          random(seed) {
        ids.insert(world.registry->put("t-value", number_schema));
        ids.insert(world.registry->put("u-value", number_schema));
    }

    static std::vector<topic_rule> rules() {
        auto by_header = avro_values("u");
        by_header.value.version = version_choice::header;
        by_header.value.version_header = "v";
        return {avro_values("t"), by_header};
    }

    void write() {
        const auto key = "k" + std::to_string(random.below(12));
        const auto topic = random.chance(60) ? "t" : "u";
        std::vector<header> headers;
        if (std::string(topic) == "u")
            headers.push_back({"v", std::to_string(1 + random.below(versions_of_u))});
        std::optional<std::string> value = random.chance(3) ? R"({"n":"x"})" : R"({"n":1})";
        if (random.chance(5)) value.reset();
        world.put(key, value, topic, std::move(headers));
    }

    void disturb() {
        auto& registry = *world.registry;
        if (random.below(60) == 0) {
            constexpr failure_kind kinds[] = {
                failure_kind::unreachable,
                failure_kind::out_of_order,
                failure_kind::throttled,
                failure_kind::unauthorized,
                failure_kind::not_a_registry,
                failure_kind::no_such_subject,
                failure_kind::refused};
            registry.fails = random.chance(50) ? std::nullopt : std::optional(kinds[random.below(7)]);
        }
        if (random.below(100) == 0) {
            registry.silent = true;
        } else if (random.below(50) == 0) {
            registry.let_go();
        }
        if (random.below(200) == 0)
            ids.insert(registry.put("t-value", random.chance(50) ? number_schema : wider_schema));
        if (random.below(200) == 0) {
            ids.insert(registry.put("u-value", random.chance(50) ? number_schema : wider_schema));
            ++versions_of_u;
        }
        if (random.below(400) == 0) {
            world.w->driver->halt();
            world.w->driver->start(epoch{++life});
        }
        if (random.below(150) == 0) {
            const std::string topic = random.chance(50) ? "t" : "u";
            auto& table = world.w->table;
            table.paused().contains(topic) ? table.resume(topic) : table.pause(topic);
        }
        if (random.below(100) == 0) {
            auto& plan = world.w->sink_faults;
            plan = plan.calm();
            plan.timeout = 20ms;
            if (random.chance(50)) plan.unavailable = plan.lost_request = plan.lost_reply = 5;
        }
    }

    void run() {
        world.w->driver->start(epoch{life});
        for (auto i = 0; i < 1500; ++i) {
            write();
            world.run(nanoseconds{static_cast<std::int64_t>(random.below(2'000'000))});
            disturb();
        }
        world.w->sink_faults = world.w->sink_faults.calm();
        world.registry->fails.reset();
        world.registry->let_go();
        for (const auto* topic : {"t", "u"})
            world.w->table.resume(topic);
        settled = world.run_until_empty(300s);
    }

    schema_world world;
    sim::rng random;
    std::set<std::uint32_t> ids;
    std::uint64_t versions_of_u{1};
    std::uint64_t life{1};
    bool settled{false};
};

TEST(SchemasUnderFaults, LoseReorderAndSendNothingUnframed) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        chaos run(seed);
        run.run();
        ASSERT_TRUE(run.settled) << "seed " << seed << ", left " << run.world.w->table.rows().size();
        ASSERT_THAT(run.world.w->broken, IsEmpty()) << "seed " << seed;
        for (const auto& record : run.world.records) {
            if (!record.value) continue;
            const auto framed = std::any_of(run.ids.begin(), run.ids.end(), [&](std::uint32_t id) {
                return *record.value == prefix(id) + "\x02" || *record.value == prefix(id) + "\x02\x0e";
            });
            ASSERT_TRUE(framed) << "seed " << seed << ", row " << record.id.value();
        }
        for (const auto& [id, lane] : run.world.w->lanes) {
            const auto& dead = run.world.w->table.dead();
            const auto parked =
                std::any_of(dead.begin(), dead.end(), [i = id](const auto& d) { return d.row.id == i; });
            ASSERT_TRUE(run.world.w->appends[id] > 0 || parked)
                << "seed " << seed << " lost row " << id.value();
        }
    }
}

}  // namespace
}  // namespace millrace::schema::test
