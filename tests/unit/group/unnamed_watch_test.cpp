#include "unnamed_watch.hpp"

#include "group_world.hpp"

#include <chrono>

#include <gmock/gmock.h>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Unnamed = GroupWorld;

// Both count two workers, so each takes one of the two; only one of them can take the second.
TEST_F(Unnamed, WhatOneWorkerDoesNotNameAndNobodyHoldsIsToldByThatWorkerOnce) {
    stream->shards = {listed("x"), listed("y")};
    run("a");
    world.run_for(2s);
    auto& b = add("b");
    b.lister.now = std::make_shared<stream_listing>(*stream);
    b.lister.now->shards = {listed("x")};
    b.start();
    world.run_for(5s);
    ASSERT_EQ(holders(shard_id{"y"}), 0);
    unnamed_watch watch(20s);
    EXPECT_THAT(watch.look(b.loop.now(), b.group->shards()), IsEmpty());
    world.run_for(20s);
    EXPECT_THAT(watch.look(b.loop.now(), b.group->shards()), ElementsAre(shard_id{"y"}));
    world.run_for(20s);
    EXPECT_THAT(watch.look(b.loop.now(), b.group->shards()), IsEmpty());
}

TEST(UnnamedWatch, TellsNeitherOfWhatIsNamedNorFinishedNorHeldNorFreeForAMoment) {
    shard_view view;
    view.row.shard = shard_id{"y"};
    const mono_time start{};
    const auto told_of = [&](unnamed_watch& watch, nanoseconds at) {
        return !watch.look(start + at, {view}).empty();
    };
    {
        unnamed_watch watch(20s);
        EXPECT_FALSE(told_of(watch, 0s));
        view.row.owner = incarnation{"a"};
        EXPECT_FALSE(told_of(watch, 10s));
        view.row.owner = incarnation{};
        EXPECT_FALSE(told_of(watch, 20s));
        EXPECT_FALSE(told_of(watch, 39s));
        EXPECT_TRUE(told_of(watch, 40s));
    }
    const auto never = [&] {
        unnamed_watch watch(20s);
        return !told_of(watch, 0s) && !told_of(watch, 1h);
    };
    EXPECT_FALSE(never());
    view.row.owner = incarnation{"a"};
    EXPECT_TRUE(never());
    view.owner_lapsed = true;
    EXPECT_FALSE(never());
    view.listed = true;
    EXPECT_TRUE(never());
    view.listed = false;
    view.row.finished_at = wall_time{milliseconds{1}};
    EXPECT_TRUE(never());
}

}  // namespace
}  // namespace millrace::sim
