#include "scheduler.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

struct Scheduler : testing::Test {
    scheduler world;
    rng random{1};
    std::string trace;
    auto note(char c) {
        return [this, c] { trace.push_back(c); };
    }
};

TEST_F(Scheduler, RunsInOrderOfTimeThenOfInsertion) {
    world.at(2s, note('c'));
    world.at(1s, note('a'));
    world.at(1s, note('b'));
    world.run_until(3s);
    EXPECT_EQ(trace, "abc");
    EXPECT_EQ(world.now(), 3s);
}

TEST_F(Scheduler, APausedHostRunsWhatWasDueWhenItResumes) {
    sim_host host{world, random};
    host.call_at(host.now() + 1s, note('a'));
    host.call_at(host.now() + 9s, note('b'));
    host.pause();
    world.run_until(5s);
    EXPECT_EQ(trace, "");
    host.resume();
    world.run_until(5s);
    EXPECT_EQ(trace, "a");
    world.run_until(10s);
    EXPECT_EQ(trace, "ab");
}

TEST_F(Scheduler, WhatWasDueDuringAPauseCanStillBeCancelledAfterIt) {
    sim_host host{world, random};
    const auto timer = host.call_at(host.now() + 1s, note('a'));
    host.pause();
    world.run_until(5s);
    host.resume();
    host.cancel(timer);
    world.run_until(6s);
    EXPECT_EQ(trace, "");
}

TEST_F(Scheduler, ACrashedHostNeverRunsAgain) {
    sim_host host{world, random};
    host.call_at(host.now() + 1s, note('a'));
    host.crash();
    host.resume();
    world.run_until(5s);
    EXPECT_EQ(trace, "");
}

TEST_F(Scheduler, TimersFollowTheDriftingClockOfTheirHost) {
    sim_host fast{world, random, {.offset = 77s, .drift_per_million = 100'000}};
    const auto due = fast.now() + 1100ms;
    bool early = false;
    fast.call_at(due, [&] { early = fast.now() < due; });
    world.run_until(1s);
    EXPECT_FALSE(early);
    EXPECT_EQ(fast.now(), due);
}

TEST_F(Scheduler, ACancelledTimerIsForgotten) {
    sim_host host{world, random};
    const auto timer = host.call_at(host.now() + 1s, note('a'));
    host.cancel(timer);
    world.run_until(2s);
    EXPECT_EQ(trace, "");
}

}  // namespace
}  // namespace millrace::sim
