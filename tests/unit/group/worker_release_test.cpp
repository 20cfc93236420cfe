// Taking the shards away from a worker that is stuck.
#include "worker_release.hpp"

#include "group_world.hpp"

#include <chrono>
#include <string>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

struct GroupRelease : GroupWorld {
    std::optional<result<worker_release_report>> release(const std::string& worker, nanoseconds span) {
        std::optional<result<worker_release_report>> outcome;
        sim_host host{world, random};
        fake_lease_store store{table, world, host, random, plan};
        worker_release tool{host, store, worker_id{worker}};
        tool.start([&](const result<worker_release_report>& o) { outcome = o; });
        world.run_for(span);
        return outcome;
    }
};

TEST_F(GroupRelease, ShardsOfAWorkerThatIsStuckGoToTheOthersLongBeforeItsLeaseIsOver) {
    settings.lease = 10min;
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(5s);
    ASSERT_EQ(b.held.size(), 2U);
    a.pause();
    world.run_for(30s);
    ASSERT_EQ(b.held.size(), 2U) << "its lease is long";
    const auto outcome = release("a", 2s);
    ASSERT_TRUE(outcome && *outcome) << outcome->error().detail;
    EXPECT_EQ((*outcome)->sessions, 1U);
    EXPECT_EQ((*outcome)->shards.size(), 2U);
    EXPECT_EQ(b.held.size(), 4U);
    a.resume();
    world.run_for(1s);
    EXPECT_EQ(a.losses.size(), 2U) << "its next heartbeat was refused";
    world.run_for(4s);
    EXPECT_TRUE(each_shard_has_one_holder());
}

TEST_F(GroupRelease, AWorkerThatRunsIsStoppedAndRegistersAnew) {
    auto& a = run("a");
    world.run_for(2s);
    const auto before = a.held.begin()->second.owner;
    const auto outcome = release("a", 5s);
    ASSERT_TRUE(outcome && *outcome);
    EXPECT_EQ(a.losses.size(), 4U);
    ASSERT_EQ(a.held.size(), 4U);
    EXPECT_NE(a.held.begin()->second.owner, before);
}

TEST_F(GroupRelease, GetsThroughThoughHeartbeatsAndFaultsComeBetween) {
    settings.lease = 1s;
    run("a");
    run("b");
    world.run_for(2s);
    plan.lost_reply = 20;
    plan.unavailable = 20;
    const auto outcome = release("b", 20s);
    ASSERT_TRUE(outcome && *outcome) << outcome->error().detail;
    EXPECT_EQ((*outcome)->sessions, 1U);
}

TEST_F(GroupRelease, AnIdThatNobodyBearsIsNamedWithThoseThatAreThere) {
    run("worker-1");
    world.run_for(2s);
    const auto outcome = release("worker-2", 2s);
    ASSERT_TRUE(outcome && !*outcome);
    EXPECT_EQ(outcome->error().code, errc::not_found);
    EXPECT_NE(outcome->error().detail.find("worker-1"), std::string::npos) << outcome->error().detail;
}

}  // namespace
}  // namespace millrace::sim
