// Budgets are shared, and a stuck or failing shard stops no other.
#include "consumer_world.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace testing_shard;

struct ManyShards : ConsumerDriver {
    ManyShards() : ConsumerDriver({}, {.shards = 8}) {}
};

TEST_F(ManyShards, MemoryStaysWithinItsBudgetAndAStuckShardDoesNotStopTheOthers) {
    options.memory_bytes = 64 * 1024;
    options.read_bytes = 8 * 1024;
    for (int i = 0; i < 4'000; ++i)
        stream.append("key" + std::to_string(i % 97), std::string(100, 'x'));
    const auto stuck = shard(3);
    handler.behave = [&](const auto& batch, const delivery&) -> result<handled> {
        if (batch->shard() == stuck) return tl::unexpected(broken());
        return handled::all;
    };
    for (int i = 0; i < 8; ++i)
        grant(i);
    std::size_t most = 0;
    for (int i = 0; i < 3'000; ++i) {
        world.run_for(10ms);
        most = std::max(most, consumer->counters().bytes_in_memory);
    }
    EXPECT_GT(most, 0U);
    EXPECT_LE(most, options.memory_bytes + 8 * 1024);  // a read returns whole records
    for (int i = 0; i < 8; ++i) {
        const auto& s = *stream.shards()[static_cast<std::size_t>(i)];
        EXPECT_EQ(leases->rows[shard(i)].records, s.listed.shard == stuck ? 0U : s.records.size());
    }
}

TEST_F(ManyShards, RequestsToTheStreamAreBoundedAndEveryShardGetsItsTurn) {
    options.reads_in_flight = 3;
    for (int i = 0; i < 400; ++i)
        stream.append("key" + std::to_string(i), std::to_string(i));
    for (int i = 0; i < 8; ++i)
        grant(i);
    world.run_for(5s);
    EXPECT_EQ(source.in_flight_most, 3);
    EXPECT_TRUE(consumer->idle());
    for (int i = 400; i < 800; ++i)
        stream.append("key" + std::to_string(i), std::to_string(i));
    world.run_for(5s);
    EXPECT_EQ(source.in_flight_most, 3);
    EXPECT_TRUE(consumer->idle());
    EXPECT_EQ(consumer->counters().records_acknowledged, 800U);
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(
            leases->rows[shard(i)].records, stream.shards()[static_cast<std::size_t>(i)]->records.size()
        );
}

TEST_F(ManyShards, ShardsThatAreLostWhileTheyAwaitTheirTurnLeaveItToTheOthers) {
    options.reads_in_flight = 1;
    for (int i = 0; i < 400; ++i)
        stream.append("key" + std::to_string(i), std::to_string(i));
    for (int i = 0; i < 8; ++i)
        grant(i);
    for (int i = 0; i < 4; ++i)
        consumer->lost(shard(i), {errc::not_owner, retry_advice::never, false, "taken over"});
    world.run_for(5s);
    EXPECT_TRUE(consumer->idle());
    for (int i = 4; i < 8; ++i)
        EXPECT_EQ(
            leases->rows[shard(i)].records, stream.shards()[static_cast<std::size_t>(i)]->records.size()
        );
}

TEST_F(ManyShards, AnErrorOfOneShardIsSaidAndRetriedAndStopsNoOther) {
    for (int i = 0; i < 100; ++i)
        stream.append("key" + std::to_string(i), std::to_string(i));
    source.refuse[shard(3)] = {errc::permission_denied, retry_advice::never, false, "no right to read"};
    for (int i = 0; i < 8; ++i)
        grant(i);
    world.run_for(60s);
    EXPECT_GE(log.count("shard.read_failing"), 3U);
    EXPECT_FALSE(consumer->idle());
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(
            leases->rows[shard(i)].records,
            i == 3 ? 0U : stream.shards()[static_cast<std::size_t>(i)]->records.size()
        );
    source.refuse.clear();
    world.run_for(options.backoff_max + 1s);
    EXPECT_EQ(leases->rows[shard(3)].records, stream.shards()[3]->records.size());
    EXPECT_TRUE(consumer->idle());
}

TEST_F(ManyShards, AShardThatCannotBeReadIsTheTroubleOfTheConsumerAndItsLagGrows) {
    for (int i = 0; i < 8; ++i)
        grant(i);
    world.run_for(10s);
    ASSERT_FALSE(consumer->trouble());
    const auto of_third = [&] {
        for (auto& one : consumer->progress())
            if (one.shard == shard(3)) return one;
        return shard_progress{};
    };
    EXPECT_EQ(of_third().failing, 0s);
    EXPECT_EQ(of_third().behind, 0s);
    const auto reads = of_third().reads;
    source.refuse[shard(3)] = {errc::unavailable, retry_advice::after_delay, false, "nobody is there"};
    world.run_for(4s);
    EXPECT_FALSE(consumer->trouble()) << "it may pass";
    EXPECT_GT(log.count("shard.read_failing"), 0U) << "the first is said";
    world.run_for(26s);
    ASSERT_TRUE(consumer->trouble());
    EXPECT_EQ(consumer->trouble()->code, errc::unavailable);
    EXPECT_NE(consumer->trouble()->detail.find(shard(3).value()), std::string::npos);
    EXPECT_NE(consumer->trouble()->detail.find("nobody is there"), std::string::npos);
    EXPECT_GT(of_third().behind, 25s);
    EXPECT_GT(of_third().failing, 25s);
    EXPECT_EQ(of_third().reads - reads, of_third().reads_failed);
    EXPECT_EQ(consumer->counters().reads_failed, of_third().reads_failed);
    source.refuse.clear();
    world.run_for(options.backoff_max + 1s);
    EXPECT_FALSE(consumer->trouble());
    EXPECT_EQ(of_third().behind, 0s);
}

TEST_F(ManyShards, ARecordLargerThanTheWholeBudgetIsStillProcessed) {
    options.memory_bytes = 1'000;
    options.read_bytes = 1'000;
    for (int i = 0; i < 40; ++i)
        stream.append("key" + std::to_string(i), std::string(5'000, 'x'));
    for (int i = 0; i < 8; ++i)
        grant(i);
    world.run_for(10min + 500ms);  // no read is under way
    EXPECT_EQ(consumer->counters().records_acknowledged, 40U);
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

}  // namespace
}  // namespace millrace
