#include "relay_world.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

}  // namespace
}  // namespace millrace::sim
