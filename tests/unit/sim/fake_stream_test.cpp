#include "fake_stream.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

const shard_id first{"shardId-000000000000"};
const shard_id second{"shardId-000000000001"};
const shard_id third{"shardId-000000000002"};

struct FakeStream : testing::Test {
    scheduler world;
    rng random{7};

    static read_cursor cursor(const fake_stream& stream, const shard_id& shard, start_position start) {
        return stream.open(shard, start).value();
    }
    static std::string data(const read_reply& reply) {
        std::string all;
        for (const auto& r : reply.records->records())
            all += *r.data;
        return all;
    }
    static std::string read_all(fake_stream& stream, const shard_id& shard, start_position start) {
        std::string all;
        std::optional<read_cursor> at = cursor(stream, shard, start);
        for (int i = 0; at && i < 100; ++i) {
            const auto reply = stream.read(shard, *at, {}).value();
            all += data(reply);
            at = reply.next;
        }
        return all;
    }
};

TEST_F(FakeStream, AClosedShardEndsAfterItsLastRecordAndItsChildrenGoOnWithHigherNumbers) {
    fake_stream stream{world, random};
    const auto last = stream.append("k", "a");
    ASSERT_TRUE(stream.split(first));
    EXPECT_GT(stream.append("k", "b"), last);
    const auto end = stream.read(first, cursor(stream, first, from::trim_horizon{}), {}).value();
    EXPECT_EQ(data(end), "a");
    EXPECT_FALSE(end.next);
    EXPECT_EQ(stream.list()->shards.size(), 3U);
    EXPECT_EQ(stream.list()->shards[1].parents, std::vector{first});
    EXPECT_EQ(stream.list()->shards[2].hash_to, "340282366920938463463374607431768211455");
}

TEST_F(FakeStream, MergesOnlyNeighbours) {
    fake_stream stream{world, random, {.shards = 3}};
    EXPECT_FALSE(stream.merge(first, third));
    EXPECT_FALSE(stream.merge(second, first));
    ASSERT_TRUE(stream.merge(first, second));
    EXPECT_EQ(stream.shards().back()->listed.parents, (std::vector{first, second}));
    EXPECT_FALSE(stream.split(first)) << "closed";
}

TEST_F(FakeStream, LatestIsFixedWhenTheCursorIsOpened) {
    fake_stream stream{world, random};
    stream.append("k", "a");
    const auto latest = cursor(stream, first, from::latest{});
    stream.append("k", "b");
    EXPECT_EQ(data(stream.read(first, latest, {}).value()), "b");
}

TEST_F(FakeStream, ACursorExpires) {
    fake_stream stream{world, random, {.cursor_life = 1s}};
    const auto at = cursor(stream, first, from::trim_horizon{});
    world.run_for(2s);
    EXPECT_EQ(stream.read(first, at, {}).error().code, errc::expired_cursor);
}

TEST_F(FakeStream, EmptyAndPartialPagesLoseNothing) {
    fake_stream stream{world, random, {.aggregate = 50, .partial_page = 50, .empty_page = 50}};
    for (const char* c : {"a", "b", "c", "d", "e"})
        stream.append("k", c);
    ASSERT_TRUE(stream.split(first));
    EXPECT_EQ(read_all(stream, first, from::trim_horizon{}), "abcde");
    const auto middle = stream.find(first)->records[2].position;
    EXPECT_EQ(read_all(stream, first, from::after{middle}), "de");
}

TEST_F(FakeStream, ATrimmedPositionIsReportedAndTheHorizonIsBehindIt) {
    fake_stream stream{world, random};
    const auto gone = stream.append("k", "a");
    stream.append("k", "b");
    stream.append("k", "c");
    stream.trim(first, 2);
    EXPECT_EQ(stream.open(first, from::after{gone}).error().code, errc::position_trimmed);
    EXPECT_EQ(data(stream.read(first, cursor(stream, first, from::trim_horizon{}), {}).value()), "c");
}

TEST_F(FakeStream, ALateVisibleRecordIsReadInOrder) {
    fake_stream stream{world, random, {.late_visible_max = 100ms}};
    stream.append("k", "a");
    stream.append("k", "b");
    ASSERT_TRUE(stream.split(first));
    const auto early = stream.read(first, cursor(stream, first, from::trim_horizon{}), {}).value();
    EXPECT_TRUE(early.next) << "a closed shard does not end before its last record is visible";
    world.run_for(100ms);
    EXPECT_EQ(read_all(stream, first, from::trim_horizon{}), "ab");
}

TEST_F(FakeStream, AWatcherHearsOfARecordUntilItLooksAway) {
    fake_stream stream{world, random};
    sim_host host{world, random};
    const faults plan;
    fake_record_source source{stream, world, host, random, plan};
    int calls = 0;
    source.watch([&] { ++calls; });
    stream.append("k", "a");
    world.run_for(10ms);
    EXPECT_EQ(calls, 1);
    source.watch({});
    stream.append("k", "b");
    world.run_for(10ms);
    EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace millrace::sim
