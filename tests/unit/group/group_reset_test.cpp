// `group reset` beside workers that live, lapse and come back.
#include "group_reset.hpp"

#include "group_world.hpp"

#include <chrono>
#include <string>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

struct GroupReset : GroupWorld {
    std::optional<result<reset_report>> reset(
        bool force, nanoseconds span, std::optional<reset_start> start = {}, nanoseconds wait = 2s
    ) {
        std::optional<result<reset_report>> outcome;
        sim_host host{world, random};
        fake_lease_store store{table, world, host, random, tool_plan};
        group_reset tool{host, store, {.start = start, .force = force}, {"tool", "b", "n", 1, 1}, {}, wait};
        tool.start([&](const result<reset_report>& o) { outcome = o; });
        world.run_for(span);
        return outcome;
    }

    faults tool_plan;
};

TEST_F(GroupReset, IsRefusedWhileASessionLivesAndNamesIt) {
    run("a");
    world.run_for(2s);
    const auto before = table.rows();
    const auto outcome = reset(false, 5s);
    ASSERT_TRUE(outcome);
    ASSERT_FALSE(*outcome);
    EXPECT_EQ(outcome->error().code, errc::conflict);
    EXPECT_NE(outcome->error().detail.find("worker \"a\""), std::string::npos);
    EXPECT_EQ(row("shard-0000"), std::get<shard_row>(before.at(shard_id{"shard-0000"})));
}

TEST_F(GroupReset, WaitsForALapsedSessionThenClearsCheckpointsAndRaisesEveryEpoch) {
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0000"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(50), 1));
    world.run_for(2s);
    a.crash();
    EXPECT_FALSE(reset(false, 9s));
    const auto outcome = reset(false, 12s);
    ASSERT_TRUE(outcome && *outcome);
    EXPECT_EQ((*outcome)->shards_reset, 4U);
    EXPECT_EQ((*outcome)->sessions_ended, 1U);
    EXPECT_FALSE(row("shard-0000").checkpoint);
    for (const auto& shard : stream->shards)
        EXPECT_GT(row(shard.shard.value()).epoch, lease.epoch);
}

TEST_F(GroupReset, ForcedItEndsTheSessionsAndTheirWritesAreRefused) {
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0000"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(50), 1));
    const auto outcome = reset(true, 1s);
    ASSERT_TRUE(outcome && *outcome);
    world.run_for(5s);
    EXPECT_FALSE(row("shard-0000").checkpoint);
    EXPECT_EQ(a.sessions_ended, 1);
    EXPECT_EQ(a.losses.size(), 4U);
    EXPECT_EQ(a.held.size(), 4U);
}

// It registers anew, and reads the group row, before the reset has written that.
TEST_F(GroupReset, AWorkerThatComesBackMeanwhileBeginsAtTheNewStart) {
    settings.group.start = start_policy::latest;
    auto& a = run("a");
    world.run_for(2s);
    tool_plan.latency_min = tool_plan.latency_max = 400ms;
    tool_plan.timeout = 20s;
    const auto outcome = reset(true, 60s, reset_start{}, 60s);
    ASSERT_TRUE(outcome && *outcome);
    EXPECT_EQ(a.sessions_ended, 1);
    ASSERT_EQ(a.held.size(), 4U);
    for (const auto& [shard, lease] : a.held)
        EXPECT_EQ(lease.start, start_position{from::trim_horizon{}}) << shard.value();
}

TEST_F(GroupReset, GivesUpAStoreThatFailsForLongerThanItsWait) {
    tool_plan.down = true;
    EXPECT_FALSE(reset(false, 1'700ms)) << "it tries again";
    const auto outcome = reset(false, 3s);
    ASSERT_TRUE(outcome && !*outcome);
    EXPECT_EQ(outcome->error().code, errc::unavailable);
}

TEST(ResetPlan, ReopensParentsBeforeTheirChildren) {
    std::vector<shard_row> rows(3);
    rows[0].shard = shard_id{"a-grandchild"};
    rows[0].parents = {shard_id{"b-child"}};
    rows[1].shard = shard_id{"b-child"};
    rows[1].parents = {shard_id{"c-parent"}, shard_id{"unlisted"}};
    rows[2].shard = shard_id{"c-parent"};
    rows[2].finished_at = wall_time{milliseconds{1}};
    rows[2].epoch = epoch{9};
    const auto plan = plan_reset({}, std::nullopt, rows, [] { return 1U; });
    ASSERT_EQ(plan.shards.size(), 3U);
    EXPECT_EQ(plan.shards[0].shard, shard_id{"c-parent"});
    EXPECT_EQ(plan.shards[1].shard, shard_id{"b-child"});
    EXPECT_FALSE(plan.shards[0].finished_at);
    for (const auto& row : plan.shards)
        EXPECT_GT(row.epoch, epoch{9});
}

}  // namespace
}  // namespace millrace::sim
