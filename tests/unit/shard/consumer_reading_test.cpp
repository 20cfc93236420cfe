// Outages, gaps and cursors that expire.
#include "consumer_world.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace testing_shard;

TEST_F(ConsumerDriver, ReadsOnAfterAnOutage) {
    grant(0);
    world.run_for(1s);
    plan.down = true;
    append(1, 2);
    world.run_for(60s);
    plan.down = false;
    world.run_for(options.backoff_max);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2"}));
}

TEST_F(ConsumerDriver, ATrimmedCheckpointGoesOnAtTheHorizonAndReportsOneGap) {
    append(1, 5);
    make();
    leases->rows[shard(0)].reached = checkpoint{stream.shards()[0]->records[0].position, loop.wall()};
    stream.trim(shard(0), 3);
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 4 5"}));
    EXPECT_EQ(consumer->counters().gaps_reported, 1U);
    EXPECT_EQ(log.count("shard.gap"), 1U);
}

TEST_F(ConsumerDriver, AShardThatTheSourceDeniesIsNeverFinished) {
    append(1, 3);
    grant(0);
    world.run_for(1500ms);  // no read is under way
    source.refuse[shard(0)] = {errc::not_found, retry_advice::never, false, "no such shard"};
    append(4, 5);
    const auto before = leases->discoveries;
    world.run_for(60s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2 3"}));
    EXPECT_TRUE(leases->rows.at(shard(0)).held);
    EXPECT_FALSE(consumer->idle());
    EXPECT_GT(leases->discoveries, before) << "only a listing can tell";
    EXPECT_GE(log.count("shard.missing"), 1U);
    source.refuse.clear();
    world.run_for(options.backoff_max);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2 3", "0: 4 5"}));
}

TEST_F(ConsumerDriver, AShardThatIsAlsoUnlistedIsGivenBackUnfinishedOnceAllThatWasReadIsHandled) {
    append(1, 3);
    options.batch_records = 1;
    grant(0);
    source.refuse_after_first[shard(0)] = {errc::not_found, retry_advice::never, false, "no such shard"};
    leases->not_listed.insert(shard(0));
    world.run_for(3s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1", "0: 2", "0: 3", "revoked 0"}));
    EXPECT_FALSE(leases->rows.at(shard(0)).held);
    EXPECT_FALSE(leases->rows.at(shard(0)).finished);
    EXPECT_EQ(checkpoint_data(0), "3");
    EXPECT_EQ(log.count("shard.gone"), 1U);
}

TEST_F(ConsumerDriver, APositionOfAnOlderStreamHasTheStreamListedAtOnce) {
    append(1, 3);
    make();
    source.refuse[shard(0)] = {errc::conflict, retry_advice::after_delay, false, "of an older stream"};
    const auto before = leases->discoveries;
    grant(0);
    world.run_for(100ms);
    EXPECT_GT(leases->discoveries, before) << "its identity tells that it was made anew";
}

struct RetainingStream : ConsumerDriver {
    RetainingStream()
        : ConsumerDriver({}, {.trimmed_is_error = false, .retention = milliseconds{3'600'000}}) {}
};

TEST_F(RetainingStream, ACheckpointOlderThanTheRetentionReportsAPossibleGap) {
    append(1, 3);
    world.run_for(std::chrono::hours{2});
    make();
    leases->keeps = 1h;
    const auto& first = stream.shards()[0]->records[0];
    leases->rows[shard(0)].reached = checkpoint{first.position, sim::wall_at(first.arrived)};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().gaps_reported, 1U);
    EXPECT_EQ(log.count("shard.gap"), 1U);
}

TEST_F(RetainingStream, AFreshCheckpointReportsNone) {
    append(1, 3);
    make();
    leases->keeps = 1h;
    leases->rows[shard(0)].reached = checkpoint{stream.shards()[0]->records[0].position, loop.wall()};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().gaps_reported, 0U);
}

TEST_F(RetainingStream, AStartThatHasNotComeIsAwaitedAndIsNoFailure) {
    make();
    leases->keeps = 1h;
    append(1, 3);
    grant(0, from::timestamp{loop.wall() + std::chrono::minutes{10}});
    source.refuse[shard(0)] = {errc::invalid_argument, retry_advice::never, false, "is in the future"};
    world.run_for(9min);
    EXPECT_FALSE(consumer->trouble());
    EXPECT_TRUE(consumer->idle());
    EXPECT_EQ(consumer->progress().at(0).reads_failed, 0U);
    source.refuse.clear();
    world.run_for(2min);
    append(4, 5);
    world.run_for(1min);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 4 5"}));
}

TEST_F(RetainingStream, AStartThatIsAwaitedCostsNoRetention) {
    make();
    leases->keeps = 1h;
    grant(0, from::timestamp{loop.wall() + 2h});
    world.run_for(90min);
    const auto shard_0 = consumer->progress().at(0);
    EXPECT_EQ(shard_0.behind, 0ms);
    EXPECT_EQ(std::chrono::round<std::chrono::minutes>(*shard_0.retention_left), 60min);
}

TEST_F(RetainingStream, AStartThatWasAskedForBeforeTheStreamsClockWasKnownIsAwaitedAllTheSame) {
    make();  // a row alone grants it: the stream has not been listed
    source.refuse_open[shard(0)] = {errc::invalid_argument, retry_advice::never, false, "is in the future"};
    grant(0, from::timestamp{loop.wall() + 2h});
    world.run_for(20s);
    EXPECT_TRUE(consumer->trouble());
    leases->keeps = 1h;
    world.run_for(options.backoff_max + 1s);
    EXPECT_FALSE(consumer->trouble());
    world.run_for(90min);
    EXPECT_FALSE(consumer->trouble());
    EXPECT_EQ(consumer->progress().at(0).failing, 0s);
}

TEST_F(RetainingStream, AHandlerThatStandsStillShowsHowLongAndWhatIsLeftOfTheRetention) {
    make();
    leases->keeps = 1h;
    append(1, 3);
    std::vector<acknowledger> kept;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        return handled::later;
    };
    grant(0);
    world.run_for(10min);
    auto shard_0 = consumer->progress().at(0);
    EXPECT_EQ(shard_0.shard, shard(0));
    EXPECT_EQ(std::chrono::round<std::chrono::minutes>(shard_0.blocked), 10min);
    ASSERT_TRUE(shard_0.retention_left);
    EXPECT_EQ(std::chrono::round<std::chrono::minutes>(*shard_0.retention_left), 50min);
    kept.front().one(0);
    world.run_for(2min);
    EXPECT_EQ(std::chrono::round<std::chrono::minutes>(consumer->progress().at(0).blocked), 2min)
        << "it got on, and stands still again";
    kept.front().all();
    world.run_for(2min);
    shard_0 = consumer->progress().at(0);
    EXPECT_EQ(shard_0.blocked, 0s);
    EXPECT_EQ(std::chrono::round<std::chrono::minutes>(*shard_0.retention_left), 60min);
    EXPECT_EQ(shard_0.records_read, 3U);
    EXPECT_EQ(shard_0.records_acknowledged, 3U);
    EXPECT_GT(shard_0.reads, 100U);
}

TEST_F(RetainingStream, AShardThatCannotBeReadLosesRetentionAllTheSame) {
    make();
    leases->keeps = 1h;
    append(1, 1);
    grant(0);
    world.run_for(1min);
    source.refuse[shard(0)] = {errc::throttled, retry_advice::after_delay, false, "too many"};
    world.run_for(30min);
    const auto shard_0 = consumer->progress().at(0);
    EXPECT_EQ(std::chrono::round<std::chrono::minutes>(*shard_0.retention_left), 30min);
    EXPECT_EQ(shard_0.blocked, 0s) << "not by the handler";
    EXPECT_GT(shard_0.reads_throttled, 10U);
}

TEST_F(ConsumerDriver, WithoutARetentionNothingIsLeftOfIt) {
    append(1, 1);
    grant(0);
    world.run_for(1s);
    EXPECT_FALSE(consumer->progress().at(0).retention_left);
}

struct ShortLivedCursors : ConsumerDriver {
    ShortLivedCursors() : ConsumerDriver({}, {.cursor_life = 2s}) {}
};

TEST_F(ShortLivedCursors, ASlowHandlerCostsTheCursorButNoRecordAndNoRepetition) {
    options.read_records = 2;
    options.batch_records = 2;
    pool.takes = 10s;
    append(1, 8);
    grant(0);
    world.run_for(5min);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "0: 3 4", "0: 5 6", "0: 7 8"}));
}

TEST_F(ConsumerDriver, TheNextReadIsUnderWayWhileTheHandlerWorks) {
    options.read_records = 100;
    options.batch_records = 100;
    append(1, 300);
    pool.takes = 1s;
    grant(0);
    world.run_for(500ms);
    EXPECT_EQ(handler.calls, 0);
    EXPECT_EQ(consumer->counters().records_read, 200U);  // one in the call, one ahead, no more
}

TEST_F(ConsumerDriver, ReadingPausesWhileTooManyRecordsWaitForAnAcknowledgement) {
    options.shard_unacknowledged = 10;
    options.batch_records = 4;
    append(1, 30);
    std::vector<acknowledger> kept;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        return handled::later;
    };
    grant(0);
    world.run_for(10s);
    EXPECT_EQ(consumer->counters().records_read, 10U);
    while (!kept.empty()) {
        for (const auto& ack : std::exchange(kept, {}))
            ack.all();
        world.run_for(10s);
    }
    EXPECT_EQ(checkpoint_data(0), "30");
}

TEST_F(ConsumerDriver, MemoryThatTheHandlerKeepsIsCountedUntilItLetsGo) {
    append(1, 2);
    std::vector<std::shared_ptr<const record_batch>> kept;
    handler.behave = [&](const auto& batch, const delivery&) {
        kept.push_back(batch);
        return handled::all;
    };
    grant(0);
    world.run_for(1500ms);  // no read is under way
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_GT(consumer->counters().bytes_in_memory, 0U);
    kept.clear();
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

}  // namespace
}  // namespace millrace
