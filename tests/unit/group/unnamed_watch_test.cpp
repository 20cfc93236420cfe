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

TEST_F(Unnamed, WhatAnotherHoldsIsNotTold) {
    stream->shards = {listed("x"), listed("y")};
    run("a");
    world.run_for(2s);
    auto& b = add("b");
    b.lister.now = std::make_shared<stream_listing>(*stream);
    b.lister.now->shards = {};
    b.start();
    unnamed_watch watch(20s);
    for (int i = 0; i < 60; ++i) {
        world.run_for(1s);
        if (holders(shard_id{"x"}) + holders(shard_id{"y"}) < 2) break;
        EXPECT_THAT(watch.look(b.loop.now(), b.group->shards()), IsEmpty());
    }
}

}  // namespace
}  // namespace millrace::sim
