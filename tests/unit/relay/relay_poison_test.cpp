// Rows that the sink will never take, under each policy; what is no verdict on a row buries none.
#include "relay_world.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RelayPoison, OneGuiltyRowOfABatchIsBuriedAndTheInnocentOnesAreDelivered) {
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

TEST(RelayPoison, ParkKeyBuriesTheLaterRowsOfTheLaneToo) {
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

TEST(RelayPoison, ParkRowBuriesTheRowAloneAndTheLaneGoesOn) {
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

TEST(RelayPoison, StopPublishesNothingMoreAndSaysWhy) {
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

TEST(RelayPoison, ReplayedRowsGoOutBeforeLaterOnesOfTheirKey) {
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

TEST(RelayPoison, ParkedLanesAreLoadedAtTheStart) {
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

TEST(RelayPoison, ABadTopicOfManyKeysStopsMainOnlyOnce) {
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

TEST(RelayPoison, AVerdictThatMayMendIsCountedAndATimeOutIsNot) {
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
    EXPECT_GE(w.table.dead()[0].tried_for, 10ms) << "two pauses since the first attempt";
    EXPECT_LT(w.table.dead()[0].tried_for, 1200ms) << "lost requests were no attempts";
}

TEST(RelayPoison, AnAbsentSinkNeverBuriesARow) {
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

TEST(RelayPoison, RowsWithoutAKeyAreBuriedAlone) {
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

TEST(RelayPoison, AMalformedRowNeverReachesTheSink) {
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

TEST(RelayPoison, ABurialUnderAnOldEpochStopsTheRelay) {
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

}  // namespace
}  // namespace millrace::sim
