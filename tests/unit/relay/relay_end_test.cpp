// A relay that stops: by its deadline, by a drain, by the loss of its lease.
#include "relay_world.hpp"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::IsEmpty;

TEST(RelayEnd, NothingIsPublishedDeletedOrBuriedPastTheDeadline) {
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

TEST(RelayEnd, ARelayThatWasOvertakenIsToldByItsDeletions) {
    relay_world w;
    w.table.owner_epoch = [] { return epoch{2}; };
    for (auto i = 0; i < 100; ++i)
        w.put("k");
    w.driver->start(epoch{1});
    for (auto i = 0; i < 50 && !w.stopped; ++i) {
        w.put("k");
        w.world.run_for(100ms);
    }
    ASSERT_TRUE(w.stopped);
    EXPECT_EQ(w.stopped->code, errc::not_owner);
    const auto published = w.first_appends.size();
    w.put("k");
    w.world.run_for(1s);
    EXPECT_EQ(w.first_appends.size(), published);
}

TEST(RelayEnd, ADrainWaitsForWhatIsInFlightAndDeletesIt) {
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

TEST(RelayEnd, ADrainEndsAtItsLimitAndSaysHowManyRowsMayComeTwice) {
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

TEST(RelayEnd, ADrainDeletesNothingOfATableThatWasMadeAnewMeanwhile) {
    relay_world w;
    w.outbox_faults = {.latency_min = 30ms, .latency_max = 31ms};
    w.sink_faults = {.latency_min = 500ms, .latency_max = 501ms};
    for (auto i = 0; i < 10; ++i)
        w.put("k");
    w.driver->start(epoch{1});
    w.world.run_for(300ms);
    w.table.recreate();  // its rows have the ids of those in flight
    w.driver->drain([](const result<void>&) {});
    w.world.run_for(2s);
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_EQ(w.table.rows().size(), 10U);
}

TEST(RelayEnd, ADrainOfAnIdleRelayEndsAtOnceButNotInsideTheCall) {
    relay_world w;
    std::optional<result<void>> drained;
    w.driver->drain([&](result<void> r) { drained = std::move(r); });
    EXPECT_FALSE(drained);
    w.world.run_for(0ms);
    EXPECT_TRUE(drained && drained->has_value());
}

TEST(RelayEnd, AfterAHaltNothingOfTheOldLifeIsPublished) {
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

}  // namespace
}  // namespace millrace::sim
