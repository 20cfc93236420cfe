// Rows that wait for their schemas: what they hold back, and what the registry is asked meanwhile.
#include "unit/schema_sink/schema_world.hpp"

#include <algorithm>

#include <gmock/gmock.h>

namespace millrace::schema::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(RowsThatWaitForASchema, GoOutInOrderOnceItHasCome) {
    schema_world world;
    const auto id = world.registry->put("t-value", number_schema);
    world.registry->silent = true;
    world.start();
    for (int i = 0; i < 200; ++i)
        world.put("k" + std::to_string(i % 5));
    world.run(1s);
    EXPECT_THAT(world.records, IsEmpty());
    EXPECT_EQ(world.w->driver->counters().awaiting, 200U);
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), SizeIs(200));
    EXPECT_THAT(world.values(), Each(prefix(id) + "\x02"));
    EXPECT_THAT(world.w->broken, IsEmpty());
    EXPECT_EQ(world.w->duplicates, 0U);
    EXPECT_EQ(world.w->driver->counters().awaiting, 0U);
    EXPECT_EQ(world.w->driver->counters().retried, 0U) << "none of them was handed over in vain";
}

TEST(RowsThatWaitForASchema, AreOneRequestHoweverManyTheyAre) {
    schema_world world;
    (void)world.registry->put("t-value", number_schema);
    world.registry->silent = true;
    world.start();
    for (int i = 0; i < 500; ++i)
        world.put("k" + std::to_string(i));
    world.run(5s);
    EXPECT_THAT(world.registry->asked, SizeIs(1));
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.registry->asked, SizeIs(1));
}

TEST(RowsThatWaitForASchema, HoldBackNoOtherTopic) {
    schema_world world({.rules = {avro_values("t"), avro_values("u")}});
    (void)world.registry->put("u-value", number_schema);
    world.registry->put("t-value", number_schema);
    world.start();
    world.put("a", R"({"n":1})", "u");
    ASSERT_TRUE(world.run_until_empty());
    world.registry->silent = true;
    for (int i = 0; i < 1000; ++i)
        world.put("k" + std::to_string(i), R"({"n":1})", i % 2 == 0 ? "t" : "u");
    world.run(1s);
    EXPECT_THAT(world.values("t"), IsEmpty());
    EXPECT_THAT(world.values("u"), SizeIs(501));
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.w->broken, IsEmpty());
}

TEST(RowsThatWaitForASchema, FillNotTheWindowForTopicsThatAreNew) {
    schema_world world(
        {.rules = {avro_values("*")}, .relay = {.relay = {.fetch_rows = 50, .window_rows = 200}}}
    );
    (void)world.registry->put("t-value", number_schema);
    (void)world.registry->put("u-value", number_schema);
    world.registry->silent_for = "t-value";
    world.start();
    for (int i = 0; i < 1000; ++i)
        world.put("k" + std::to_string(i));
    world.run(1s);
    for (int i = 0; i < 100; ++i)
        world.put("k" + std::to_string(i % 30), R"({"n":1})", "u");
    world.run(5s);
    EXPECT_THAT(world.values("u"), SizeIs(100));
    EXPECT_THAT(world.values("t"), IsEmpty());
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values("t"), SizeIs(1000));
    EXPECT_THAT(world.w->broken, IsEmpty());
}

TEST(RowsThatWaitForASchema, HoldBackOnlyTheirOwnLaneWithinTheTopic) {
    auto rule = avro_values("t");
    rule.value.version = version_choice::header;
    rule.value.version_header = "v";
    schema_world world({.rules = {rule}});
    (void)world.registry->put("t-value", number_schema);
    (void)world.registry->put("t-value", wider_schema);
    world.start();
    world.put("a", R"({"n":1})", "t", {{"v", "1"}});
    ASSERT_TRUE(world.run_until_empty());
    world.registry->silent = true;
    world.put("b", R"({"n":2})", "t", {{"v", "2"}});
    world.put("b", R"({"n":3})", "t", {{"v", "1"}});
    world.put("a", R"({"n":4})", "t", {{"v", "1"}});
    world.run(1s);
    EXPECT_THAT(world.ids(), ElementsAre(1, 4));
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.ids(), ElementsAre(1, 4, 2, 3));
}

TEST(RowsThatWaitForASchema, AreMoreThanTheWindowHoldsAndStillArriveInOrder) {
    schema_world world({.relay = {.relay = {.fetch_rows = 50, .window_rows = 200}}});
    (void)world.registry->put("t-value", number_schema);
    world.registry->silent = true;
    world.start();
    for (int i = 0; i < 3000; ++i)
        world.put(
            "k" + std::to_string(i % 700), i % 3 == 0 ? R"({"n":1})" : R"({"n":2})", i % 10 == 0 ? "u" : "t"
        );
    world.run(2s);
    EXPECT_THAT(world.values("u"), SizeIs(300)) << "plain rows go on beside them";
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values("t"), SizeIs(2700));
    EXPECT_THAT(world.w->broken, IsEmpty());
}

TEST(RowsThatWaitForASchema, AreEncodedByTheVersionThatIsNewestWhenTheyGo) {
    schema_world world;
    (void)world.registry->put("t-value", number_schema);
    world.registry->silent = true;
    world.start();
    world.put("a");
    world.run(1s);
    const auto newer = world.registry->put("t-value", wider_schema);
    world.registry->let_go();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre(prefix(newer) + "\x02\x0e"));
}

TEST(RowsThatWaitForASchema, AreForgottenWhenTheLeaseEndsAndReadAgain) {
    schema_world world;
    (void)world.registry->put("t-value", number_schema);
    world.registry->silent = true;
    world.start();
    for (int i = 0; i < 20; ++i)
        world.put("k" + std::to_string(i % 3));
    world.run(100ms);
    world.w->driver->halt();
    world.registry->let_go();
    world.run(1s);
    EXPECT_THAT(world.records, IsEmpty());
    world.w->driver->start(epoch{2});
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), SizeIs(20));
    EXPECT_EQ(world.w->duplicates, 0U);
    EXPECT_THAT(world.w->broken, IsEmpty());
}

TEST(RowsThatWaitForASchema, DoNotKeepARelayFromStopping) {
    schema_world world;
    world.registry->silent = true;
    world.start();
    world.put("a");
    world.run(100ms);
    std::optional<result<void>> drained;
    world.w->driver->drain([&](const result<void>& outcome) { drained = outcome; });
    world.run(10ms);
    ASSERT_TRUE(drained);
    EXPECT_TRUE(*drained);
}

TEST(ALatestVersion, IsTakenUpWithinItsTimeWithoutARowThatWaits) {
    schema_world world;
    const auto first = world.registry->put("t-value", number_schema);
    world.start();
    world.put("a");
    ASSERT_TRUE(world.run_until_empty());
    const auto second = world.registry->put("t-value", wider_schema);
    for (int i = 0; i < 60; ++i) {
        world.put("a");
        world.run(1s);
        EXPECT_EQ(world.w->driver->counters().awaiting, 0U);
    }
    ASSERT_TRUE(world.run_until_empty());
    const auto values = world.values();
    EXPECT_EQ(values.front(), prefix(first) + "\x02");
    EXPECT_EQ(values.back(), prefix(second) + "\x02\x0e");
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
}

TEST(ALatestVersion, ThatNobodyUsedForLongIsAskedForAgainAndRowsReadBeforeGoOutInOrder) {
    schema_world world;
    (void)world.registry->put("t-value", number_schema);
    world.start();
    world.put("a");
    ASSERT_TRUE(world.run_until_empty());
    world.run(10min);
    for (int i = 0; i < 50; ++i)
        world.put("k" + std::to_string(i % 4));
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), SizeIs(51));
    EXPECT_THAT(world.w->broken, IsEmpty());
    EXPECT_THAT(world.registry->asked, SizeIs(2));
}

TEST(ALatestVersion, WhoseTimeEndsWhileTheSinkIsAwayDelaysItsRowsOnly) {
    schema_world world;
    (void)world.registry->put("t-value", number_schema);
    world.start();
    world.put("a");
    ASSERT_TRUE(world.run_until_empty());
    world.w->sink_faults.unavailable = 100;
    for (int i = 0; i < 50; ++i)
        world.put("k" + std::to_string(i % 4), R"({"n":1})", i % 2 == 0 ? "t" : "u");
    world.run(5min);
    world.w->sink_faults.unavailable = 0;
    ASSERT_TRUE(world.run_until_empty(120s));
    EXPECT_THAT(world.w->broken, IsEmpty());
    EXPECT_THAT(world.dead(), IsEmpty());
}

}  // namespace
}  // namespace millrace::schema::test
