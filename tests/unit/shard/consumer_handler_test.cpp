// What a handler throws, returns and gives up.
#include "consumer_world.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace testing_shard;

TEST_F(ConsumerDriver, WhatTheHandlerThrowsIsAFailureAndRetried) {
    append(1, 2);
    int failures = 0;
    handler.behave = [&](const auto&, const delivery&) -> result<handled> {
        if (failures++ == 0) throw std::runtime_error("no");
        if (failures == 2) throw 7;
        return handled::all;
    };
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "0: 1 2 attempt 2", "0: 1 2 attempt 3"}));
    EXPECT_EQ(consumer->counters().handler_failures, 2U);
    EXPECT_EQ(log.count("shard.handler_failed"), 2U);
    EXPECT_EQ(checkpoint_data(0), "2");
}

TEST_F(ConsumerDriver, AHandlerThatThrowsWhenItIsAssignedAShardIsToldAgainBeforeAnyRecord) {
    append(1, 2);
    handler.throws["assigned"] = 2;
    grant(0);
    world.run_for(2s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "assigned 0", "assigned 0", "0: 1 2"}));
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_EQ(log.count("shard.handler_failed"), 2U);
    EXPECT_EQ(consumer->counters().handler_failures, 2U);
}

TEST_F(ConsumerDriver, UnderThePolicyStopAHandlerThatThrowsWhenItIsAssignedAShardStopsIt) {
    append(1, 2);
    options.on_failure = failure_policy::stop;
    handler.throws["assigned"] = 1;
    grant(0);
    world.run_for(2s);
    EXPECT_EQ(handler.told, lines{"assigned 0"});
    EXPECT_EQ(log.count("shard.stopped"), 1U);
    EXPECT_EQ(consumer->counters().shards_stopped, 1U);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
}

TEST_F(ConsumerDriver, AHandlerThatThrowsAtTheEndOfALeaseKeepsNothingFromEnding) {
    handler.throws = {{"revoked", 1}, {"lost", 1}, {"finished", 1}};
    grant(0);
    world.run_for(1s);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    grant(0);
    world.run_for(1s);
    lose(0);
    world.run_for(1s);
    grant(0);
    ASSERT_TRUE(stream.split(shard(0)));
    world.run_for(2s);
    EXPECT_TRUE(leases->rows[shard(0)].finished);
    EXPECT_EQ(
        handler.told, (lines{"assigned 0", "revoked 0", "assigned 0", "lost 0", "assigned 0", "finished 0"})
    );
    EXPECT_EQ(log.count("shard.handler_failed"), 3U);
}

TEST_F(ConsumerDriver, WhatWasAcknowledgedBeforeAnErrorIsNotHandedOverAgain) {
    append(1, 4);
    handler.behave = [&](const auto&, const delivery& how) -> result<handled> {
        if (how.attempt > 1) return handled::all;
        how.acknowledge.up_to(1);
        how.acknowledge.one(3);
        return tl::unexpected(broken());
    };
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2 3 4", "0: 3 attempt 2"}));
    EXPECT_EQ(checkpoint_data(0), "4");
}

TEST_F(ConsumerDriver, AStoppedShardIsReportedAndStaysHeldButIdle) {
    append(1, 4);
    options.on_failure = failure_policy::stop;
    options.batch_records = 2;
    handler.behave = [&](const auto& batch, const delivery&) -> result<handled> {
        if (batch->records()[0].data == "3") return tl::unexpected(broken());
        return handled::all;
    };
    grant(0);
    world.run_for(1s);
    append(5, 9);
    world.run_for(60s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "0: 3 4"}));
    EXPECT_EQ(log.count("shard.stopped"), 1U);
    EXPECT_EQ(consumer->counters().shards_stopped, 1U);
    EXPECT_TRUE(consumer->idle());
    EXPECT_TRUE(leases->rows[shard(0)].held);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_EQ(checkpoint_data(0), "2");
}

TEST_F(ConsumerDriver, ADeadLetterIsDurableBeforeTheCheckpointPassesItsRecord) {
    append(1, 3);
    options.on_failure = failure_policy::dead_letter;
    options.dead_letter_after = 2;
    dead_letters.failures = 3;
    handler.behave = [&](const auto& batch, const delivery&) -> result<handled> {
        for (const auto& r : batch->records())
            if (r.data == "2") return tl::unexpected(broken("poison"));
        return handled::all;
    };
    grant(0);
    while (dead_letters.stored.empty()) {
        ASSERT_TRUE(world.step());
        ASSERT_NE(checkpoint_data(0), "2");
        ASSERT_NE(checkpoint_data(0), "3");
    }
    world.run_for(10s);
    EXPECT_EQ(dead_letters.stored, lines{"2: poison"});
    EXPECT_EQ(checkpoint_data(0), "3");
    EXPECT_EQ(consumer->counters().records_dead_lettered, 1U);
    EXPECT_EQ(log.count("shard.dead_letter_failed"), 3U);
    EXPECT_EQ(log.count("shard.record_dead_lettered"), 1U);
}

TEST_F(ConsumerDriver, ALetterThatItsTargetNeverTakesIsNamedWithWhatToDo) {
    append(1, 1);
    options.on_failure = failure_policy::dead_letter;
    options.dead_letter_after = 1;
    dead_letters.failures = 1;
    handler.behave = [&](const auto&, const delivery&) -> result<handled> {
        return tl::unexpected(broken("poison"));
    };
    grant(0);
    world.run_for(60s);
    ASSERT_EQ(log.count("shard.dead_letter_failed"), 1U);
    const auto line = log.of("shard.dead_letter_failed").front();
    const auto at = leases->rows.at(shard(0)).reached->position.sequence.to_string() + ".0";
    EXPECT_THAT(line, testing::HasSubstr("the record at " + at + " finds no place among the dead letters"));
    EXPECT_THAT(line, testing::HasSubstr("another place for the dead letters"));
}

TEST_F(ConsumerDriver, CallsOfOneShardNeverOverlapAlsoWhenItIsLostAndComesBackMeanwhile) {
    append(1, 2);
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    ASSERT_EQ(pool.held.size(), 1U);
    lose(0);
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(pool.held.size(), 1U);  // the earlier call has not returned
    EXPECT_FALSE(consumer->idle());
    pool.let_go();
    world.run_for(1s);
    EXPECT_EQ(pool.held.size(), 1U);
    pool.let_go();
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "lost 0", "assigned 0", "0: 1 2"}));
    EXPECT_EQ(checkpoint_data(0), "2");
}

TEST_F(ConsumerDriver, DestroyedWithACallUnderWayItLeavesNothingBehind) {
    append(1, 2);
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    ASSERT_EQ(pool.held.size(), 1U);
    consumer.reset();
    pool.let_go();
    append(3, 3);
    world.run_for(10s);
    EXPECT_EQ(handler.calls, 1);
}

}  // namespace
}  // namespace millrace
