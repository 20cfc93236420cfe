#include "relay_world.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

error refusal(errc code = errc::refused_record, retry_advice retry = retry_advice::never) {
    return {code, retry, false, "simulated refusal"};
}

// The sink refuses rows with this value.
auto refuses(std::string value, error why = refusal()) {
    return [value = std::move(value), why](const outbox_row& row) -> std::optional<error> {
        if (row.value == value) return why;
        return std::nullopt;
    };
}

TEST(RelayDriver, DeliversInOrderOfIdAndDeletes) {
    relay_world w;
    for (auto i = 0; i < 5000; ++i)
        w.put("k" + std::to_string(i % 7));
    w.driver->start(epoch{1});
    EXPECT_FALSE(w.driver->empty());
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 5000U);
    EXPECT_TRUE(std::is_sorted(w.first_appends.begin(), w.first_appends.end()));
    EXPECT_EQ(w.duplicates, 0U);
    EXPECT_THAT(w.broken, IsEmpty());
    const auto counters = w.driver->counters();
    EXPECT_EQ(counters.read, 5000U);
    EXPECT_EQ(counters.acknowledged, 5000U);
    EXPECT_EQ(counters.deleted, 5000U);
    EXPECT_EQ(counters.bytes_in_memory, 0U);
    EXPECT_EQ(counters.duplicates_at_risk, 0U);
}

TEST(RelayDriver, ARowThatArrivesWhileAllIsIdleIsDeliveredAtOnce) {
    relay_world w;
    w.driver->start(epoch{1});
    w.world.run_for(10s);
    ASSERT_TRUE(w.driver->empty());
    w.put("k");
    w.world.run_for(15ms);
    EXPECT_EQ(w.first_appends.size(), 1U);
}

TEST(RelayDriver, ARowCommittedBehindALaterIdIsDelivered) {
    relay_world w;
    w.driver->start(epoch{1});
    const auto slow = w.table.begin();
    const auto early = w.table.draw(slow);
    w.table.insert(slow, early, {.topic = "t", .key = "a", .value = "v"});
    w.put("b");
    w.world.run_for(500ms);
    EXPECT_THAT(w.order_of("b"), ElementsAre(2));
    EXPECT_FALSE(w.driver->empty());  // the gap may still be filled
    w.table.commit(slow);
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("a"), ElementsAre(1));
}

TEST(RelayDriver, AGapOfARolledBackTransactionIsForgotten) {
    relay_world w;
    w.driver->start(epoch{1});
    const auto lost = w.table.begin();
    (void)w.table.draw(lost);
    w.put("b");
    w.world.run_for(100ms);
    EXPECT_EQ(w.driver->counters().gaps, 1U);
    w.table.roll_back(lost);
    ASSERT_TRUE(w.run_until_empty(1s));
    EXPECT_EQ(w.driver->counters().gaps, 0U);
}

TEST(RelayDriver, TheSweepFindsARowWhoseGapWasWronglyTakenForDead) {
    relay_world w({.relay = {.sweep_every = 2s}});
    w.driver->start(epoch{1});
    const auto writer = w.table.begin();
    const auto early = w.table.draw(writer, true);  // nextval ahead of the INSERT: no lock shows it
    w.put("b");
    w.world.run_for(1s);
    EXPECT_TRUE(w.driver->empty());
    w.table.insert(writer, early, {.topic = "t", .key = "a", .value = "v"});
    w.table.commit(writer);
    w.world.run_for(900ms);
    EXPECT_THAT(w.order_of("a"), IsEmpty());
    w.world.run_for(1s);
    EXPECT_THAT(w.order_of("a"), ElementsAre(early.value()));
    EXPECT_TRUE(w.run_until_empty(1s));
}

TEST(RelayDriver, OneGuiltyRowOfABatchIsBuriedAndTheInnocentOnesAreDelivered) {
    relay_world w({.sink = {.blamed_rows = 100}});
    w.service.verdict = refuses("bad");
    for (auto i = 0; i < 300; ++i)
        w.put("k" + std::to_string(i), i == 150 ? "bad" : "v");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 299U);
    EXPECT_EQ(w.duplicates, 0U);
    ASSERT_EQ(w.table.dead().size(), 1U);
    EXPECT_EQ(w.table.dead()[0].row.id, row_id{151});
    EXPECT_EQ(w.table.dead()[0].reason, "refused_record");
    EXPECT_THAT(w.table.parked(), ElementsAre(lane_key{"t", "k150", {}}));
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(RelayDriver, ParkKeyBuriesTheLaterRowsOfTheLaneToo) {
    relay_world w;
    w.service.verdict = refuses("bad");
    w.put("k", "first");
    w.put("k", "bad");
    w.put("k", "third");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    w.put("k", "fourth");
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("k"), ElementsAre(1));
    ASSERT_EQ(w.table.dead().size(), 3U);
    EXPECT_EQ(w.table.dead()[1].reason, "lane_is_parked");
    EXPECT_EQ(w.driver->counters().buried, 3U);
}

TEST(RelayDriver, ParkRowBuriesTheRowAloneAndTheLaneGoesOn) {
    relay_world w({.relay = {.on_poison = poison_policy::park_row}});
    w.service.verdict = refuses("bad");
    w.put("k", "first");
    w.put("k", "bad");
    w.put("k", "third");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("k"), ElementsAre(1, 3));
    EXPECT_THAT(w.table.parked(), IsEmpty());
    EXPECT_EQ(w.table.dead().size(), 1U);
}

TEST(RelayDriver, StopPublishesNothingMoreAndSaysWhy) {
    relay_world w({.relay = {.on_poison = poison_policy::stop}});
    w.service.verdict = refuses("bad");
    w.put("k", "first");
    w.put("k", "bad");
    w.put("k", "third");
    w.driver->start(epoch{1});
    w.world.run_for(5s);
    ASSERT_TRUE(w.stopped);
    EXPECT_EQ(
        w.stopped->detail,
        "row 2 (topic \"t\") can not be delivered and the policy is stop; correct or delete the row, or "
        "choose "
        "another policy: simulated refusal"
    );
    EXPECT_THAT(w.order_of("k"), ElementsAre(1));
    EXPECT_THAT(w.table.dead(), IsEmpty());
    EXPECT_EQ(w.table.rows().size(), 2U);  // what was acknowledged is deleted all the same
    w.put("j");
    w.world.run_for(1s);
    EXPECT_THAT(w.order_of("j"), IsEmpty());
}

TEST(RelayDriver, ReplayedRowsGoOutBeforeLaterOnesOfTheirKey) {
    relay_world w;
    w.service.verdict = refuses("bad");
    w.put("k", "bad");
    w.put("k", "second");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    w.service.verdict = nullptr;
    w.put("k", "third");
    w.table.replay({"t", "k", {}});
    w.put("k", "fourth");
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("k"), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(w.duplicates, 0U);
    EXPECT_GE(w.driver->counters().window_rebuilds, 1U);
}

TEST(RelayDriver, ParkedLanesAreLoadedAtTheStart) {
    relay_world w;
    w.service.verdict = refuses("bad");
    w.put("k", "bad");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    w.driver->halt();
    w.service.verdict = nullptr;
    w.put("k", "second");
    w.driver->start(epoch{2});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("k"), IsEmpty());
    EXPECT_EQ(w.table.dead().size(), 2U);
}

TEST(RelayDriver, ABadTopicOfManyKeysStopsMainOnlyOnce) {
    relay_world w;
    for (auto i = 0; i < 2000; ++i)
        w.put("k" + std::to_string(i), "v", i % 2 == 0 ? "t" : "missing");
    w.driver->start(epoch{1});
    w.world.run_for(60ms);
    const auto early =
        std::count_if(w.first_appends.begin(), w.first_appends.end(), [](row_id) { return true; });
    EXPECT_EQ(early, 1000);  // while most of the bad topic is still being buried
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 1000U);
    EXPECT_EQ(w.duplicates, 0U);
    EXPECT_EQ(w.table.dead().size(), 1000U);
    EXPECT_EQ(w.table.parked().size(), 1000U);
}

TEST(RelayDriver, AVerdictThatMayMendIsCountedAndATimeOutIsNot) {
    relay_world w({.relay = {.max_attempts = 3, .retry_min = 10ms, .retry_max = 20ms}});
    w.service.verdict = refuses("bad", refusal(errc::refused_record, retry_advice::after_delay));
    w.put("k", "bad");
    for (auto i = 0; i < 5; ++i)
        w.sink->force("probe", fate::lost_request);
    w.driver->start(epoch{1});
    w.world.run_for(1200ms);
    EXPECT_THAT(w.table.dead(), IsEmpty());
    ASSERT_TRUE(w.run_until_empty());
    ASSERT_EQ(w.table.dead().size(), 1U);
    EXPECT_EQ(w.table.dead()[0].attempts, 3U);
}

TEST(RelayDriver, AnAbsentSinkNeverBuriesARow) {
    relay_world w({.relay = {.max_attempts = 1, .retry_max = 200ms}});
    w.sink_faults.down = true;
    for (auto i = 0; i < 50; ++i)
        w.put("k" + std::to_string(i));
    w.driver->start(epoch{1});
    w.world.run_for(60s);
    EXPECT_THAT(w.table.dead(), IsEmpty());
    w.sink_faults.down = false;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 50U);
}

TEST(RelayDriver, AStuckTopicWithALargeBacklogDoesNotStopTheOthers) {
    relay_world w({.relay = {.retry_max = 1s, .fetch_rows = 100, .window_rows = 400}});
    w.service.verdict = [](const outbox_row& row) -> std::optional<error> {
        if (row.topic == "u") return refusal(errc::refused_topic, retry_advice::after_delay);
        return std::nullopt;
    };
    for (auto i = 0; i < 3000; ++i)
        w.put("k" + std::to_string(i % 40), "v", i % 3 == 0 ? "t" : "u");
    w.driver->start(epoch{1});
    w.world.run_for(10s);
    EXPECT_EQ(w.first_appends.size(), 1000U);
    w.put("new");
    w.world.run_for(200ms);
    EXPECT_THAT(w.order_of("new"), ElementsAre(3001));
    w.service.verdict = nullptr;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 3001U);
    EXPECT_EQ(w.duplicates, 0U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(RelayDriver, NothingIsPublishedDeletedOrBuriedPastTheDeadline) {
    relay_world w({.relay = {.retry_max = 50ms}});
    for (auto i = 0; i < 100; ++i)
        w.put("k");
    w.driver->start(epoch{1});
    w.world.run_for(3ms);
    w.may_act = false;
    w.world.run_for(1s);
    const auto before = w.first_appends.size();
    const auto left = w.table.rows().size();
    w.world.run_for(10s);
    EXPECT_EQ(w.first_appends.size(), before);
    EXPECT_EQ(w.table.rows().size(), left);
    EXPECT_GT(left, 0U);
    w.may_act = true;  // the session was confirmed after all
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 100U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(RelayDriver, ADrainWaitsForWhatIsInFlightAndDeletesIt) {
    relay_world w({.relay = {.delete_delay = 1s}});
    for (auto i = 0; i < 1000; ++i)
        w.put("k");
    w.driver->start(epoch{1});
    w.world.run_for(4ms);
    std::optional<result<void>> drained;
    w.driver->drain([&](result<void> r) { drained = std::move(r); });
    EXPECT_FALSE(drained);
    w.world.run_for(100ms);
    ASSERT_TRUE(drained);
    EXPECT_TRUE(drained->has_value());
    const auto published = w.first_appends.size();
    EXPECT_EQ(w.table.rows().size(), 1000 - published);
    w.put("k");
    w.world.run_for(1s);
    EXPECT_EQ(w.first_appends.size(), published);
}

TEST(RelayDriver, ADrainEndsAtItsLimitAndSaysHowManyRowsMayComeTwice) {
    relay_world w({.relay = {.drain_limit = 300ms}});
    w.outbox_faults.timeout = 10s;
    for (auto i = 0; i < 10; ++i)
        w.put("k");
    w.source->force("remove", fate::lost_reply);
    w.driver->start(epoch{1});
    w.world.run_for(50ms);
    std::optional<result<void>> drained;
    w.driver->drain([&](result<void> r) { drained = std::move(r); });
    w.world.run_for(290ms);
    EXPECT_FALSE(drained);
    w.world.run_for(20ms);
    ASSERT_TRUE(drained);
    ASSERT_FALSE(drained->has_value());
    EXPECT_TRUE(drained->error().in_doubt);
    EXPECT_NE(drained->error().detail.find("10 rows"), std::string::npos) << drained->error().detail;
}

TEST(RelayDriver, ADrainOfAnIdleRelayEndsAtOnceButNotInsideTheCall) {
    relay_world w;
    std::optional<result<void>> drained;
    w.driver->drain([&](result<void> r) { drained = std::move(r); });
    EXPECT_FALSE(drained);
    w.world.run_for(0ms);
    EXPECT_TRUE(drained && drained->has_value());
}

TEST(RelayDriver, AfterAHaltNothingOfTheOldLifeIsPublished) {
    relay_world w;
    for (auto i = 0; i < 100; ++i)
        w.put("k");
    w.driver->start(epoch{1});
    w.world.run_for(2ms);
    w.driver->halt();
    w.world.run_for(100ms);
    const auto published = w.first_appends.size();
    w.world.run_for(10s);
    EXPECT_EQ(w.first_appends.size(), published);
    w.driver->start(epoch{2});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 100U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(RelayDriver, ABurialUnderAnOldEpochStopsTheRelay) {
    relay_world w;
    w.table.owner_epoch = [] { return epoch{2}; };
    w.service.verdict = refuses("bad");
    w.put("k", "bad");
    w.driver->start(epoch{1});
    w.world.run_for(1s);
    ASSERT_TRUE(w.stopped);
    EXPECT_EQ(w.stopped->code, errc::not_owner);
    EXPECT_THAT(w.table.dead(), IsEmpty());
}

TEST(RelayDriver, GoesOnWhenTheOutboxComesBack) {
    relay_world w({.relay = {.retry_max = 1s}});
    w.driver->start(epoch{1});
    w.world.run_for(1s);
    w.outbox_faults.down = true;
    w.put("k");
    w.world.run_for(1min);
    EXPECT_FALSE(w.driver->empty());
    w.outbox_faults.down = false;
    ASSERT_TRUE(w.run_until_empty(5s));
    EXPECT_EQ(w.first_appends.size(), 1U);
}

TEST(RelayDriver, ARecreatedTableIsReadFromTheHeadAndLateAcknowledgementsDeleteNothingInIt) {
    relay_world w;
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    for (auto i = 0; i < 10; ++i)
        w.put("k");
    w.world.run_for(2ms);
    w.table.recreate();
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_GE(w.driver->counters().window_rebuilds, 1U);
}

TEST(RelayDriver, RowsWithoutAKeyAreBuriedAlone) {
    relay_world w;
    w.service.verdict = refuses("bad");
    for (const auto* value : {"a", "bad", "c", "bad"})
        w.table.put({.topic = "t", .key = {}, .value = value});
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 2U);
    EXPECT_EQ(w.table.dead().size(), 2U);
    EXPECT_THAT(w.table.parked(), IsEmpty());
}

TEST(RelayDriver, AMalformedRowNeverReachesTheSink) {
    relay_world w;
    w.table.put({.topic = "t", .key = "k", .value = "a"}, "headers are not a JSON array");
    w.put("j");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("k"), IsEmpty());
    EXPECT_THAT(w.order_of("j"), ElementsAre(2));
    ASSERT_EQ(w.table.dead().size(), 1U);
    EXPECT_EQ(w.table.dead()[0].reason, "malformed_row");
    EXPECT_EQ(w.table.dead()[0].detail, "headers are not a JSON array");
}

TEST(RelayDriver, MemoryStaysWithinTheWindowAndOneFetchWhateverTheBacklog) {
    const relay_options options{.fetch_bytes = 64 << 10, .window_bytes = 256 << 10};
    relay_world w({.relay = options});
    w.sink_faults.down = true;
    const std::string value(1000, 'x');
    const auto late = w.table.begin();
    for (auto i = 0; i < 2000; ++i)
        w.table.insert(late, w.table.draw(late), {.topic = "t", .key = "k", .value = value});
    for (auto i = 0; i < 2000; ++i)
        w.put("j", value);
    w.driver->start(epoch{1});
    std::uint64_t most = 0;
    for (auto i = 0; i < 200; ++i) {
        w.world.run_for(10ms);
        if (i == 100) w.table.commit(late);
        most = std::max(most, w.driver->counters().bytes_in_memory);
    }
    // The fake outbox ignores the limit of a probe, so the late transaction comes at once.
    EXPECT_LE(most, options.window_bytes + options.fetch_bytes + 2000 * 1300);
    w.sink_faults.down = false;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 4000U);
}

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
            tx, id, {.topic = random.chance(70) ? "t" : "u", .key = key, .value = std::move(value)}
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
            if (w.random.below(400) == 0) {
                w.driver->halt();
                w.driver->start(epoch{++life});
            }
        }
        w.outbox_faults = w.outbox_faults.calm();
        w.sink_faults = w.sink_faults.calm();
        topic_down = false;
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

    relay_world w;
    std::set<std::string> busy;
    bool topic_down{false};
    bool settled{false};
};

TEST(RelayDriver, KeepsItsPromisesThroughRandomFaults) {
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
