#include "consumer_world.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace testing_shard;

TEST_F(ConsumerDriver, HandsRecordsOverInOrderAndAdvancesTheCheckpoint) {
    append(1, 3);
    grant(0);
    world.run_for(20ms);
    append(4, 5);
    world.run_for(50ms);  // woken by the stream's signal, not by the tip interval
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2 3", "0: 4 5"}));
    EXPECT_EQ(checkpoint_data(0), "5");
    EXPECT_EQ(leases->rows[shard(0)].records, 5U);
    EXPECT_TRUE(consumer->idle());
    const auto counters = consumer->counters();
    EXPECT_EQ(counters.records_read, 5U);
    EXPECT_EQ(counters.records_handed, 5U);
    EXPECT_EQ(counters.records_acknowledged, 5U);
    EXPECT_EQ(counters.bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, ResumesAfterTheCheckpoint) {
    append(1, 4);
    make();
    const auto& second = stream.shards()[0]->records[1];
    leases->rows[shard(0)].reached = checkpoint{second.position, wall_time{}};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 3 4"}));
}

TEST_F(ConsumerDriver, IsNotIdleBeforeTheTipWasSeenNorWhileAHandlerWorks) {
    append(1, 1);
    pool.takes = 1s;
    grant(0);
    EXPECT_FALSE(consumer->idle());
    world.run_for(500ms);
    EXPECT_FALSE(consumer->idle());
    world.run_for(600ms);
    EXPECT_TRUE(consumer->idle());
}

TEST_F(ConsumerDriver, FinishesOnlyAfterTheLastRecordIsAcknowledgedThoughTheEndWasReadLongBefore) {
    append(1, 3);
    ASSERT_TRUE(stream.split(shard(0)));
    std::vector<acknowledger> kept;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        return handled::later;
    };
    grant(0);
    world.run_for(5s);
    EXPECT_EQ(leases->discoveries, 1);  // the end was read: its children are to be listed
    EXPECT_FALSE(leases->rows[shard(0)].finished);
    kept[0].up_to(1);
    world.run_for(5s);
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_FALSE(leases->rows[shard(0)].finished);
    kept[0].one(2);
    world.run_for(5s);
    EXPECT_TRUE(leases->rows[shard(0)].finished);
    EXPECT_EQ(handler.told.back(), "finished 0");
}

TEST_F(ConsumerDriver, AnEmptyClosedShardIsFinishedAtOnce) {
    ASSERT_TRUE(stream.split(shard(0)));
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "finished 0"}));
}

TEST_F(ConsumerDriver, ARefusedFinishIsTriedAgainAndSaid) {
    ASSERT_TRUE(stream.split(shard(0)));
    make();
    leases->refusals = {{errc::unavailable, retry_advice::after_delay, false, "locked"}};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "finished 0"}));
    EXPECT_EQ(log.count("shard.finish_failed"), 1U);
}

TEST_F(ConsumerDriver, ARevokedShardIsReleasedWhereItStandsAndTheHandlerIsNotToldThatItFinished) {
    append(1, 4);
    options.batch_records = 2;
    ASSERT_TRUE(stream.split(shard(0)));
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_TRUE(leases->rows[shard(0)].held);  // a call is under way
    pool.let_go();
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "revoked 0", "0: 1 2"}));
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_FALSE(leases->rows[shard(0)].finished);
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, ARevokedShardThatWasProcessedToItsEndIsFinishedAndNotReleased) {
    append(1, 2);
    ASSERT_TRUE(stream.split(shard(0)));
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    consumer->revoke(shard(0));
    pool.let_go();
    world.run_for(1s);
    EXPECT_TRUE(leases->rows[shard(0)].finished);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "revoked 0", "0: 1 2", "finished 0"}));
}

TEST_F(ConsumerDriver, TheDrainWaitsForAcknowledgementsThatComeLaterButNotForEver) {
    append(1, 2);
    append(3, 3);
    drain_limit = 10s;
    std::vector<acknowledger> kept;
    std::stop_token stop;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        stop = how.stop;
        return handled::later;
    };
    grant(0);
    world.run_for(1s);
    EXPECT_FALSE(stop.stop_requested());
    consumer->revoke(shard(0));
    EXPECT_TRUE(stop.stop_requested());
    kept[0].one(0);
    world.run_for(9s);
    EXPECT_TRUE(leases->rows[shard(0)].held);
    world.run_for(2s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_EQ(checkpoint_data(0), "1");
    EXPECT_EQ(log.count("shard.drain_limit"), 1U);
    kept[0].all();  // too late: no effect, no crash
    world.run_for(1s);
    EXPECT_EQ(checkpoint_data(0), "1");
}

TEST_F(ConsumerDriver, WhatWasAcknowledgedAtTheLastMomentOfTheDrainIsUnderTheCheckpoint) {
    append(1, 2);
    append(3, 3);
    drain_limit = 10s;
    std::vector<acknowledger> kept;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        return handled::later;
    };
    grant(0);
    world.run_for(1s);
    // Ahead of the drain limit, but the loop is told behind it.
    world.at(world.now() + drain_limit, [&] { kept[0].one(0); });
    consumer->revoke(shard(0));
    world.run_for(11s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_EQ(log.count("shard.drain_limit"), 1U);
    EXPECT_EQ(checkpoint_data(0), "1");
}

TEST_F(ConsumerDriver, ReleasesWhileTheSourceIsDown) {
    grant(0);
    world.run_for(1s);
    plan.down = true;
    append(1, 1);
    world.run_for(5s);
    EXPECT_FALSE(consumer->idle());
    consumer->revoke(shard(0));
    world.run_for(100ms);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_TRUE(consumer->idle());
}

TEST_F(ConsumerDriver, AfterALossNothingMoreIsHandedOverAndLateAcknowledgementsDoNothing) {
    append(1, 4);
    options.batch_records = 2;
    std::optional<delivery> call;
    handler.behave = [&](const auto&, const delivery& how) {
        call = how;
        return handled::later;
    };
    pool.takes = 100ms;
    grant(0);
    world.run_for(150ms);
    ASSERT_TRUE(call);
    EXPECT_TRUE(call->still_owner());
    lose(0);
    EXPECT_TRUE(call->stop.stop_requested());
    EXPECT_FALSE(call->still_owner());
    call->acknowledge.all();
    world.run_for(5s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "lost 0"}));
    EXPECT_EQ(checkpoint_data(0), "");
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, NoCallBeginsAfterTheDeadlineThoughTheLoopWasToldNothing) {
    append(1, 2);
    pool.takes = 100ms;
    grant(0);
    world.run_for(50ms);  // the call is queued in the pool
    session.until = loop.now();
    world.run_for(1s);
    EXPECT_EQ(handler.calls, 0);
    session.until = mono_time::max();  // a late heartbeat was confirmed after all
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2"}));
    EXPECT_EQ(consumer->counters().records_handed, 2U);
}

TEST_F(ConsumerDriver, AFailureOfTheGroupIsPassedOnOnce) {
    make();
    std::string heard;
    consumer->on_failed([&](const error& why) { heard += why.detail; });
    consumer->failed({errc::worker_id_taken, retry_advice::never, false, "doubled"});
    consumer->failed({errc::worker_id_taken, retry_advice::never, false, "doubled"});
    EXPECT_EQ(heard, "doubled");
}

}  // namespace
}  // namespace millrace
