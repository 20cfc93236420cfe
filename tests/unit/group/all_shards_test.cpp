// All-shards mode: one process takes every shard, without a session.
#include "group_world.hpp"

#include <chrono>
#include <string>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

using AllShards = GroupWorld;

TEST_F(AllShards, HoldsEverythingWithoutASessionOrAnOwner) {
    settings.group.all_shards = true;
    auto& a = run("a");
    world.run_for(1s);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_EQ(worker_rows(), 0U);
    const auto lease = a.held.at(shard_id{"shard-0000"});
    EXPECT_TRUE(a.group->may_act(lease.shard, lease.epoch));
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(5), 1));
    world.run_for(2s);
    EXPECT_EQ(row("shard-0000").checkpoint, at(5));
    EXPECT_TRUE(row("shard-0000").owner.value().empty());
}

TEST_F(AllShards, ASecondProcessIsRefusedAtItsFirstWrite) {
    settings.group.all_shards = true;
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(1s);
    const auto shard = shard_id{"shard-0000"};
    ASSERT_TRUE(a.group->advance(shard, a.held.at(shard).epoch, at(5), 1));
    world.run_for(2s);
    ASSERT_TRUE(b.group->advance(shard, b.held.at(shard).epoch, at(4), 1));
    world.run_for(2s);
    ASSERT_TRUE(b.failure);
    EXPECT_EQ(b.failure->code, errc::conflict);
    EXPECT_TRUE(b.held.empty());
    EXPECT_FALSE(a.failure);
    EXPECT_EQ(row("shard-0000").checkpoint, at(5));
}

TEST_F(AllShards, ModeIsRefusedByALiveSessionAndWaitsForOneThatLapses) {
    auto& a = run("a");
    world.run_for(2s);
    settings.group.all_shards = true;
    auto& b = run("b");
    world.run_for(4s);
    ASSERT_TRUE(b.failure);
    EXPECT_NE(b.failure->detail.find("worker \"a\" (process 100"), std::string::npos) << b.failure->detail;
    a.crash();
    auto& c = run("c");
    world.run_for(9s);
    EXPECT_TRUE(c.held.empty());
    world.run_for(3s);
    EXPECT_EQ(c.held.size(), 4U);
    EXPECT_FALSE(c.failure);
}

// A dead worker may still be in a handler that was given its epoch, and wake there.
TEST_F(AllShards, OutranksTheDeadOwner) {
    auto& a = run("a");
    world.run_for(2s);
    const shard_id shard{"shard-0001"};
    const auto old = a.held.at(shard);
    ASSERT_TRUE(a.group->advance(shard, old.epoch, at(3), 1));
    world.run_for(2s);
    ASSERT_TRUE(a.group->advance(shard, old.epoch, at(4), 1));
    a.pause();
    settings.group.all_shards = true;
    auto& c = run("c");
    world.run_for(15s);
    ASSERT_EQ(c.held.size(), 4U);
    EXPECT_GT(c.held.at(shard).epoch, old.epoch);
    EXPECT_EQ(c.held.at(shard).checkpoint, at(3));
    EXPECT_EQ(row("shard-0001").epoch, c.held.at(shard).epoch);
    EXPECT_TRUE(row("shard-0001").owner.value().empty());
    ASSERT_TRUE(c.group->advance(shard, c.held.at(shard).epoch, at(9), 1));
    world.run_for(2s);
    EXPECT_EQ(row("shard-0001").checkpoint, at(9));
    EXPECT_FALSE(c.failure);
}

TEST_F(AllShards, ModeIsSettledOnceAdmitted) {
    auto& a = run("a");
    world.run_for(2s);
    EXPECT_TRUE(a.group->settled());
    settings.group.all_shards = true;
    a.crash();
    auto& b = run("b");
    world.run_for(9s);
    EXPECT_FALSE(b.group->settled()) << "the old session still stands";
    world.run_for(3s);
    EXPECT_TRUE(b.group->settled());
}

TEST_F(AllShards, GivesWayToASessionThatComesLaterAndLosesNoCheckpoint) {
    settings.group.all_shards = true;
    settings.group.checkpoint_every = 1h;
    auto& a = run("a");
    world.run_for(2s);
    const auto lease = a.held.at(shard_id{"shard-0001"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(7), 1));
    settings.group.all_shards = false;
    auto& b = add("b");
    for (int i = 0; i < 12; ++i)
        b.store.force("write", fate::unavailable);  // it takes nothing before the other has seen it
    b.start();
    world.run_for(1s);
    ASSERT_TRUE(a.failure);
    EXPECT_EQ(a.failure->code, errc::conflict);
    EXPECT_NE(a.failure->detail.find("worker \"b\" (process 101"), std::string::npos) << a.failure->detail;
    EXPECT_TRUE(a.held.empty());
    EXPECT_EQ(a.log.count("group.failed"), 1U);
    a.stop();
    world.run_for(6s);
    ASSERT_TRUE(a.group_stopped);
    EXPECT_FALSE(b.failure);
    EXPECT_EQ(b.held.size(), 4U);
    EXPECT_EQ(b.held.at(lease.shard).checkpoint, at(7));
}

TEST_F(AllShards, WhoStopsIsNotDisturbedByASession) {
    settings.group.all_shards = true;
    auto& a = run("a");
    world.run_for(2s);
    a.release_at_once = false;
    a.stop();
    settings.group.all_shards = false;
    auto& b = run("b");
    world.run_for(20s);
    EXPECT_FALSE(a.failure);
    ASSERT_TRUE(a.group_stopped);
    EXPECT_TRUE(a.group_stopped->has_value());
    EXPECT_EQ(b.held.size(), 4U);
}

}  // namespace
}  // namespace millrace::sim
