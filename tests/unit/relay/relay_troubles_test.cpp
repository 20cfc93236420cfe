// Nothing fails silently, and what is no verdict on a row never buries it nor stops another lane.
#include "bare_relay.hpp"
#include "relay_world.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(RelayTroubles, ABurialAndAParkedLaneAreSaidWithTheirReasonButWithoutTheKey) {
    relay_world w;
    w.service.verdict = refuses("bad");
    w.put("confidential", "v");
    w.put("confidential", "bad");
    w.put("confidential", "v");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    const auto buried = w.log.of("relay.row_buried");
    ASSERT_EQ(buried.size(), 2U);
    EXPECT_THAT(
        buried[0],
        AllOf(
            HasSubstr("id=2"),
            HasSubstr("topic=t"),
            HasSubstr("attempts=1"),
            HasSubstr("reason=refused_record"),
            HasSubstr("detail=simulated refusal")
        )
    );
    EXPECT_THAT(buried[1], AllOf(HasSubstr("id=3"), HasSubstr("reason=lane_is_parked")));
    EXPECT_EQ(w.log.of("relay.lane_parked").size(), 1U);
    EXPECT_THAT(w.log.lines, Each(Not(HasSubstr("confidential"))));
}

TEST(RelayTroubles, ATopicThatIsNotToBlameStopsMainTwiceAndNotAgainAndAgain) {
    relay_world w;
    auto asked = 0;
    auto sick = true;
    w.service.verdict = [&](const outbox_row& row) -> std::optional<error> {
        if (row.topic != "u" || !sick) return std::nullopt;
        ++asked;
        return refusal(errc::unavailable, retry_advice::after_delay);
    };
    w.driver->start(epoch{1});
    for (auto i = 0; i < 2'000; ++i) {
        w.put("k" + std::to_string(i % 10));
        if (i % 10 == 0) w.put("k" + std::to_string(i % 50), "v", "u");
        w.world.run_for(10ms);
    }
    EXPECT_GE(w.first_appends.size(), 1'990U);
    EXPECT_LT(asked, 40) << "one row sees whether the topic has mended";
    EXPECT_LE(w.log.of("relay.publish_failed").size(), 4U);
    EXPECT_THAT(w.table.dead(), IsEmpty());
    sick = false;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 2'200U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(RelayTroubles, LanesThatAreFoundParkedOrFreedAreSaid) {
    relay_world w;
    w.service.verdict = refuses("bad");
    w.put("k", "bad");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    w.driver->halt();
    w.driver->start(epoch{2});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.log.of("relay.lanes_parked"), ElementsAre(HasSubstr("1 lane is parked")));
    w.service.verdict = nullptr;
    w.table.replay({"t", "k", {}});
    w.world.run_for(1s);
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.log.of("relay.lanes_unparked"), ElementsAre(HasSubstr("1 lane is not parked")));
    EXPECT_THAT(w.log.of("relay.window_rebuilt"), ElementsAre(HasSubstr("rows were put back")));
}

TEST(RelayTroubles, AFloodOfBurialsIsAFewLinesAndACountThatMissesNone) {
    relay_world w;
    w.service.verdict = refuses("bad");
    for (auto i = 0; i < 500; ++i)
        w.put("k" + std::to_string(i), "bad");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty());
    w.world.run_for(10s);
    const auto lines = w.log.of("relay.row_buried");
    EXPECT_LE(lines.size(), 10U);
    EXPECT_EQ(w.log.times("relay.row_buried"), 500U);
}

TEST(RelayTroubles, AnErrorThatIsNoVerdictIsTriedAgainAndSeenAndBuriesNothingAndStopsNoOtherLane) {
    for (const auto code : {errc::permission_denied, errc::invalid_config, errc::corrupt, errc::not_found}) {
        relay_world w({.relay = {.max_attempts = 2, .retry_max = 2s}});
        w.service.verdict = refuses("locked", refusal(code));
        w.put("k", "locked");
        w.put("k", "v");
        for (auto i = 0; i < 50; ++i)
            w.put("j" + std::to_string(i % 10));
        w.driver->start(epoch{1});
        w.world.run_for(500ms);
        EXPECT_EQ(w.first_appends.size(), 50U) << name_of(code);
        w.world.run_for(30s);
        EXPECT_THAT(w.order_of("k"), IsEmpty());
        EXPECT_THAT(w.table.dead(), IsEmpty()) << name_of(code);
        EXPECT_FALSE(w.stopped);
        ASSERT_TRUE(w.driver->last_error()) << name_of(code);
        EXPECT_EQ(w.driver->last_error()->code, code);
        const auto retried = w.driver->counters().retried;
        EXPECT_GE(retried, 15U) << name_of(code);
        EXPECT_LE(retried, 200U) << name_of(code);  // it backs off
        EXPECT_LE(w.log.of("relay.row_retried").size(), 12U);
        EXPECT_THAT(w.log.of("relay.row_retried").front(), HasSubstr("id=1"));
        w.service.verdict = nullptr;
        ASSERT_TRUE(w.run_until_empty());
        EXPECT_THAT(w.order_of("k"), ElementsAre(1, 2));
        EXPECT_FALSE(w.driver->last_error());
        EXPECT_THAT(w.broken, IsEmpty());
    }
}

// More lanes than the window has rows, so most of what is denied must be dropped and read again later.
TEST(RelayTroubles, DeniedTopicOfManyKeysDelaysNoOtherTopicAndIsDeliveredInOrderOnceAllowed) {
    constexpr auto keys = 2'000;
    relay_world w({.relay = {.retry_max = 2s, .fetch_rows = 50, .window_rows = 200}});
    w.service.verdict = [](const outbox_row& row) -> std::optional<error> {
        if (row.topic == "u") return refusal(errc::refused_topic, retry_advice::after_delay);
        return std::nullopt;
    };
    w.driver->start(epoch{1});
    for (auto round = 0; round < 2; ++round)
        for (auto i = 0; i < keys; ++i)
            w.put("k" + std::to_string(i), "v", "u");
    w.world.run_for(1s);
    for (auto i = 0; i < 20; ++i) {
        w.put("healthy");
        w.world.run_for(500ms);
        EXPECT_EQ(w.first_appends.size(), static_cast<std::size_t>(i + 1));
    }
    w.service.verdict = nullptr;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.broken, IsEmpty());
    EXPECT_THAT(w.table.dead(), IsEmpty());
}

TEST(RelayTroubles, MalformedRowsOnMoreKeysThanTheWindowHoldsDelayTheOthersByOnePassAtATime) {
    constexpr auto keys = 2'000;
    relay_world w({.relay = {.fetch_rows = 50, .window_rows = 200}});
    w.outbox_faults.latency_min = 10ms;
    w.outbox_faults.latency_max = 12ms;
    for (auto i = 0; i < keys; ++i)
        w.table.put({.topic = "t", .key = "k" + std::to_string(i), .value = "v"}, "no headers");
    w.driver->start(epoch{1});
    w.put("healthy");
    w.world.run_for(3s);
    EXPECT_LT(w.table.dead().size(), keys / 2) << "too fast to say anything";
    EXPECT_THAT(w.order_of("healthy"), ElementsAre(keys + 1));
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.table.dead().size(), static_cast<std::size_t>(keys));
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(RelayTroubles, MalformedRowsWithoutAKeyDelayTheOthersByOnePassAtATime) {
    constexpr auto rows = 2'000;
    relay_world w({.relay = {.fetch_rows = 50, .window_rows = 200}});
    w.outbox_faults.latency_min = 10ms;
    w.outbox_faults.latency_max = 12ms;
    for (auto i = 0; i < rows; ++i)
        w.table.put({.topic = "t", .key = {}, .value = "v"}, "no headers");
    w.driver->start(epoch{1});
    w.put("healthy");
    w.world.run_for(3s);
    EXPECT_LT(w.table.dead().size(), rows / 2) << "too fast to say anything";
    EXPECT_THAT(w.order_of("healthy"), ElementsAre(rows + 1));
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.table.dead().size(), static_cast<std::size_t>(rows));
}

// An outbox that does nothing for good with rows: deletions and burials fail, or nobody answers them.
struct IdleOutbox : testing::Test, test::bare_relay {
    IdleOutbox() : bare_relay({}) { start({}); }

    // As unlucky as can be with each wait.
    void step_late(relay_event::any what) {
        constexpr std::uint64_t longest = 29'999'999'999;
        actions = machine.step(now, longest, std::move(what));
        for (const auto& action : actions)
            if (const auto* wake = std::get_if<relay_action::wake_at>(&action)) wake_at = wake->when;
    }
    template <class Action>
    std::uint64_t next() {
        for (int i = 0; i < 1'000; ++i) {
            if (const auto* found = find<Action>()) return found->number;
            if (const auto* fetch = find<relay_action::fetch>()) {
                step(relay_event::fetched{fetch->number, fetch_reply{.table_identity = "a"}});
            } else {
                wake();
            }
        }
        ADD_FAILURE();
        return 0;
    }
    error denied{errc::permission_denied, retry_advice::after_delay, false, "permission denied"};
};

TEST_F(IdleOutbox, DeletionsThatFailAreSeenAndTriedAgainWithinFiveSeconds) {
    step(relay_event::fetched{number_of<relay_action::fetch>(), page(1, 1, false)});
    step(relay_event::published{channel::main, number_of<relay_action::publish>(), publish_outcome{}});
    EXPECT_FALSE(machine.late());
    auto number = next<relay_action::remove>();
    const auto asked = now;
    ASSERT_TRUE(machine.late()) << "also before there is an answer";
    for (int failures = 0; failures < 20; ++failures) {
        step_late(relay_event::removed{number, tl::unexpected(denied)});
        const auto failed = now;
        number = next<relay_action::remove>();
        EXPECT_LE(now - failed, 5s);
        ASSERT_TRUE(machine.late());
        EXPECT_EQ(machine.late()->since, asked);
        EXPECT_EQ(machine.late()->why, denied);
    }
    EXPECT_GT(now - asked, 30s) << "the waits have grown";
    step(relay_event::removed{number, 1});
    EXPECT_FALSE(machine.late());
}

TEST_F(IdleOutbox, BurialsThatFailAreSeenAndTriedAgainWithinFiveSeconds) {
    auto rows = std::make_shared<row_batch>();
    outbox_row row;
    row.id = row_id{1};
    row.topic = rows->store("t");
    row.malformed = rows->store("no topic can have this name");
    rows->add(row);
    step(relay_event::fetched{
        number_of<relay_action::fetch>(), fetch_reply{.ahead = std::move(rows), .table_identity = "a"}});
    auto number = next<relay_action::bury>();
    const auto asked = now;
    for (int failures = 0; failures < 20; ++failures) {
        step_late(relay_event::buried{number, tl::unexpected(denied)});
        const auto failed = now;
        number = next<relay_action::bury>();
        EXPECT_LE(now - failed, 5s);
        ASSERT_TRUE(machine.late());
        EXPECT_EQ(machine.late()->since, asked);
        EXPECT_EQ(machine.late()->why, denied);
    }
    EXPECT_GT(now - asked, 30s);
    step(relay_event::buried{number, {}});
    EXPECT_FALSE(machine.late());
}

TEST(RelayTroubles, TheLatestTroubleIsSeenWhileItLasts) {
    relay_world w;
    w.outbox_faults.down = true;
    w.put("k");
    w.driver->start(epoch{1});
    w.world.run_for(1s);
    ASSERT_TRUE(w.driver->last_error());
    EXPECT_EQ(w.driver->last_error()->code, errc::unavailable);
    w.outbox_faults.down = false;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_FALSE(w.driver->last_error());
}

// The sink takes one request and then answers nothing more, while rows wait behind it.
struct SilentSink : testing::Test {
    SilentSink() {
        w.sink_faults.timeout = 1h;
        w.sink->force("publish", fate::normal);
        w.sink->force("publish", fate::lost_request);
        for (auto i = 0; i < 100; ++i)
            w.put("k");
        w.driver->start(epoch{1});
        w.world.run_for(5s);
    }

    relay_world w{
        {.relay = {.drain_limit = 300ms},
         .sink = {.capacity = {.request_rows_max = 10, .requests_in_flight_max = 2}}}};
};

TEST_F(SilentSink, WhatWasAcknowledgedIsDeletedAllTheSame) {
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_EQ(w.table.rows().size(), 90U);
}

TEST_F(SilentSink, ADrainEndsAtItsLimitThoughRowsWaitForMain) {
    std::optional<result<void>> drained;
    w.driver->drain([&](result<void> r) { drained = std::move(r); });
    w.world.run_for(290ms);
    EXPECT_FALSE(drained);
    w.world.run_for(20ms);
    ASSERT_TRUE(drained);
    ASSERT_FALSE(drained->has_value());
}

TEST(RelayTroubles, ADrainWhileMainHasFailedWaitsOnlyForWhatIsInFlightAndLosesNothing) {
    relay_world w({.relay = {.retry_max = 100ms, .drain_limit = 5s}});
    w.sink->force("publish", fate::normal);
    w.sink->force("publish", fate::unavailable);
    for (auto i = 0; i < 50; ++i)
        w.sink->force("reset_main", fate::unavailable);
    for (auto i = 0; i < 3000; ++i)
        w.put("k" + std::to_string(i % 5));
    w.driver->start(epoch{1});
    w.world.run_for(100ms);
    ASSERT_GT(w.first_appends.size(), 0U);
    ASSERT_LT(w.first_appends.size(), 3000U);
    ASSERT_GT(w.log.of("relay.reset_failed").size(), 0U);
    std::optional<result<void>> drained;
    w.driver->drain([&](result<void> r) { drained = std::move(r); });
    w.world.run_for(200ms);
    ASSERT_TRUE(drained);
    EXPECT_TRUE(drained->has_value());
    EXPECT_EQ(w.table.rows().size(), 3000U - w.first_appends.size());
    w.driver->start(epoch{2});
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 3000U);
    EXPECT_EQ(w.duplicates, 0U);
    EXPECT_THAT(w.broken, IsEmpty());
}

}  // namespace
}  // namespace millrace::sim
