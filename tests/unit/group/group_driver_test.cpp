// The group and session drivers together, on simulated hosts and clocks.
#include "group_world.hpp"

#include <chrono>
#include <string>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

using GroupDriver = GroupWorld;

checkpoint at(std::uint64_t n) {
    return {position{sequence_number{n}, 0}, wall_time{milliseconds{static_cast<std::int64_t>(n)}}};
}

TEST_F(GroupDriver, OneWorkerTakesEveryShardWithinAFractionOfASecond) {
    auto& a = run("a");
    world.run_for(150ms);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_EQ(a.place, (std::pair<std::size_t, std::size_t>{0, 1}));
    EXPECT_EQ(
        row("shard-0000").owner,
        std::get<worker_row>(table.rows().lower_bound(incarnation{})->second).incarnation
    );
}

TEST_F(GroupDriver, WorkersShareTheShardsWithinThreeTicks) {
    settings.group.tick = 300ms;
    auto& a = run("a");
    world.run_for(2s);
    auto& b = run("b");
    world.run_for(1s);
    EXPECT_EQ(a.held.size(), 2U);
    EXPECT_EQ(b.held.size(), 2U);
    EXPECT_EQ(a.revokes, 2);
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_EQ(b.place, (std::pair<std::size_t, std::size_t>{1, 2}));
}

TEST_F(GroupDriver, AStoppedWorkerLeavesNothingBehindAndItsShardsMoveAtOnce) {
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(2s);
    a.stop();
    world.run_for(1s);
    ASSERT_TRUE(a.stopped && a.group_stopped);
    EXPECT_TRUE(a.stopped->has_value());
    EXPECT_TRUE(a.group_stopped->has_value());
    EXPECT_EQ(worker_rows(), 1U);
    EXPECT_EQ(b.held.size(), 4U);
}

TEST_F(GroupDriver, AStoreThatWasMadeAnewIsFilledAgainAndEpochsGoOnAbove) {
    auto& a = run("a");
    world.run_for(2s);
    const auto before = row("shard-0000").epoch;
    table.clear();
    world.run_for(10s);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_GT(row("shard-0000").epoch, before);
    EXPECT_NE(table.find(std::monostate{}), nullptr);
}

TEST_F(GroupDriver, AKilledWorkerOfAnotherMachineLapsesByItsOwnLease) {
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    a.crash();
    world.run_for(9s);
    EXPECT_EQ(b.held.size(), 2U);
    world.run_for(4s);
    EXPECT_EQ(b.held.size(), 4U);
    EXPECT_EQ(worker_rows(), 1U);
    EXPECT_EQ(b.log.count("session.lapsed"), 1U);
}

TEST_F(GroupDriver, ASessionThatCannotBeEndedIsTriedOncePerTick) {
    run("a");
    auto& b = run("b");
    world.run_for(3s);
    for (int i = 0; i < 5; ++i)
        b.store.force("remove", fate::unavailable);
    workers.front()->crash();
    world.run_for(30s);
    EXPECT_EQ(b.log.times("session.end_failed"), 5U);
    EXPECT_LE(b.log.count("session.lapsed"), 6U);
    EXPECT_EQ(b.held.size(), 4U) << "and it goes on once the store answers again";

    for (int i = 0; i < 1000; ++i)
        b.store.force("remove", fate::unavailable);
    auto& c = run("c");
    world.run_for(3s);
    c.crash();
    world.run_for(13s);
    const auto before = b.log.times("session.end_failed");
    world.run_for(15s);
    EXPECT_LE(b.log.times("session.end_failed") - before, 70U) << "a failing store is asked in a tight loop";
    EXPECT_LE(b.log.count("session.end_failed"), 15U) << "and that is said in part";
    EXPECT_LE(b.log.count("session.lapsed"), 15U);
}

TEST_F(GroupDriver, AKilledProcessOfTheSameMachineIsReplacedWithinASecond) {
    auto& a = run("same", "m1");
    world.run_for(3s);
    const auto before = row("shard-0000").epoch;
    kill(a);
    auto& again = run("same", "m1");
    world.run_for(1s);
    EXPECT_EQ(again.held.size(), 4U);
    EXPECT_GT(row("shard-0000").epoch, before);
    EXPECT_FALSE(again.failure);
}

TEST_F(GroupDriver, ADoubledWorkerIdStopsTheNewcomerAndNamesBothProcesses) {
    auto& a = run("twin", "m1");
    world.run_for(3s);
    auto& b = run("twin", "m2");
    for (int second = 0; second < 16 && !b.failure; ++second) {
        world.run_for(1s);
        EXPECT_EQ(b.held.size(), 0U) << "the id is not known to be free";
        EXPECT_EQ(a.held.size(), 4U);
    }
    ASSERT_TRUE(b.failure);
    EXPECT_EQ(b.failure->code, errc::worker_id_taken);
    EXPECT_NE(b.failure->detail.find("process 100 on host \"m1\""), std::string::npos) << b.failure->detail;
    EXPECT_NE(b.failure->detail.find("process 101 on host \"m2\""), std::string::npos) << b.failure->detail;
    EXPECT_FALSE(a.failure);
    world.run_for(2s);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_EQ(worker_rows(), 1U);
}

TEST_F(GroupDriver, OfTwoProcessesThatStartWithOneIdAtTheSameMomentExactlyOneStops) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        workers.clear();
        table = lease_table{};
        random = rng{seed};
        auto& a = run("twin", "m1");
        auto& b = run("twin", "m2");
        world.run_for(30s);
        ASSERT_NE(a.failure.has_value(), b.failure.has_value()) << "seed " << seed;
        const auto& left = a.failure ? b : a;
        EXPECT_EQ(left.held.size(), 4U);
        EXPECT_EQ(left.sessions_ended, 0);
        EXPECT_EQ(worker_rows(), 1U);
    }
}

TEST_F(GroupDriver, AWorkerPausedBeyondItsLeaseIsRefusedAndComesBackAsANewSession) {
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    const auto mine = a.held.begin()->second;
    a.pause();
    world.run_for(90s);
    EXPECT_EQ(b.held.size(), 4U);
    EXPECT_FALSE(a.group->may_act(mine.shard, mine.epoch));
    EXPECT_FALSE(mine.guard->may_act());
    a.resume();
    world.run_for(5s);
    EXPECT_EQ(a.losses.size(), 2U);
    EXPECT_EQ(a.held.size(), 2U);
    EXPECT_EQ(b.held.size(), 2U);
    EXPECT_TRUE(each_shard_has_one_holder());
}

TEST_F(GroupDriver, CheckpointsAreWrittenWithinTheIntervalAndKeptOverARestart) {
    auto& a = run("a");
    world.run_for(1s);
    const auto& lease = a.held.at(shard_id{"shard-0001"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(5), 5));
    EXPECT_EQ(a.group->records_at_risk(), 5U);
    world.run_for(500ms);
    EXPECT_FALSE(row("shard-0001").checkpoint);
    world.run_for(800ms);
    EXPECT_EQ(row("shard-0001").checkpoint, at(5));
    EXPECT_EQ(a.group->records_at_risk(), 0U);
    EXPECT_EQ(a.group->counters().checkpoints_written, 1U);
    a.stop();
    world.run_for(1s);
    auto& b = run("b");
    world.run_for(1s);
    EXPECT_EQ(b.held.at(shard_id{"shard-0001"}).checkpoint, at(5));
}

TEST_F(GroupDriver, CountsWhatBecomesOfItsLeases) {
    stream->shards = shards_named(3);
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0000"});
    a.group->finish(lease.shard, lease.epoch, {});
    world.run_for(1s);
    a.give_back(shard_id{"shard-0001"});  // it comes back at once: nobody else is there
    world.run_for(1s);
    const auto session = a.held.begin()->second.owner;
    ASSERT_TRUE(table.remove(session, version_of(*table.find(session)), "somebody"));
    world.run_for(5s);
    const auto count = a.group->counters();
    EXPECT_EQ(count.shards_finished, 1U);
    EXPECT_EQ(count.leases_released, 1U);
    EXPECT_EQ(count.leases_lost, 2U) << "with the session that was ended";
    EXPECT_EQ(count.leases_taken, 6U);
    EXPECT_EQ(count.checkpoints_written, 0U);
}

TEST_F(GroupDriver, ManyAcknowledgementsAreWrittenBeforeTheInterval) {
    settings.group.checkpoint_every = 1h;
    settings.group.checkpoint_records = 100;
    auto& a = run("a");
    world.run_for(1s);
    const auto& lease = a.held.at(shard_id{"shard-0001"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(99), 99));
    world.run_for(100ms);
    EXPECT_FALSE(row("shard-0001").checkpoint);
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(100), 1));
    world.run_for(100ms);
    EXPECT_EQ(row("shard-0001").checkpoint, at(100));
}

TEST_F(GroupDriver, CheckpointsStayWithinTheBudgetPerSecond) {
    stream->shards = shards_named(40);
    settings.group.checkpoints_per_second = 10;
    auto& a = run("a");
    world.run_for(2s);
    ASSERT_EQ(a.held.size(), 40U);
    int written = 0;
    table.observe([&](const std::string&, const lease_row* before, const lease_row* after) {
        if (before != nullptr && after != nullptr && std::holds_alternative<shard_row>(*after)) ++written;
    });
    for (const auto& [shard, lease] : a.held)
        ASSERT_TRUE(a.group->advance(shard, lease.epoch, at(1), 1));
    world.run_for(2s);
    EXPECT_LE(written, 22);
    EXPECT_GE(written, 10);
    world.run_for(4s);
    EXPECT_EQ(written, 40);
}

TEST_F(GroupDriver, AHandleUsedAfterReleaseIsATypedErrorWithoutIO) {
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0002"});
    a.release_at_once = false;
    a.group->release(lease.shard, lease.epoch, {});
    EXPECT_EQ(a.group->advance(lease.shard, lease.epoch, at(1), 1).error().code, errc::already_released);
    EXPECT_FALSE(a.group->may_act(lease.shard, lease.epoch));
    EXPECT_FALSE(lease.guard->may_act());
    result<void> persisted, finished;
    a.group->persist(lease.shard, lease.epoch, [&](const result<void>& o) { persisted = o; });
    a.group->finish(lease.shard, lease.epoch, [&](const result<void>& o) { finished = o; });
    world.run_for(5ms);
    for (const auto& outcome : {persisted, finished}) {
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, errc::already_released);
    }
}

TEST_F(GroupDriver, AFinishedShardOpensItsChildrenAndIsNeverTakenAgain) {
    stream->shards = {listed("p"), listed("q"), listed("c", {shard_id{"p"}, shard_id{"q"}})};
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(2s);
    EXPECT_EQ(holders(shard_id{"c"}), 0);
    const auto finish = [&](const std::string& name) {
        for (auto* w : {&a, &b}) {
            const auto held = w->held.extract(shard_id{name});
            if (!held.empty()) w->group->finish(shard_id{name}, held.mapped().epoch, {});
        }
    };
    finish("p");
    world.run_for(2s);
    EXPECT_TRUE(row("p").finished_at);
    EXPECT_TRUE(row("p").owner.value().empty());
    EXPECT_EQ(holders(shard_id{"c"}), 0);
    finish("q");
    world.run_for(1s);
    EXPECT_EQ(holders(shard_id{"c"}), 1);
    EXPECT_EQ(holders(shard_id{"p"}) + holders(shard_id{"q"}), 0);
}

TEST_F(GroupDriver, AChildWaitsForTheOwnerOfAParentThatTheStreamHasDropped) {
    stream->shards = {listed("p")};
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    auto& owner = a.held.contains(shard_id{"p"}) ? a : b;
    ASSERT_TRUE(owner.held.contains(shard_id{"p"}));
    EXPECT_EQ(owner.group->shards_held(), 1U);
    owner.release_at_once = false;
    stream->shards = {listed("c", {shard_id{"p"}})};
    world.run_for(70s);
    EXPECT_EQ(holders(shard_id{"p"}), 1) << "records of it may still be in memory";
    EXPECT_EQ(holders(shard_id{"c"}), 0);
    owner.give_back(shard_id{"p"});
    world.run_for(3s);
    EXPECT_EQ(holders(shard_id{"c"}), 1);
}

TEST_F(GroupDriver, AChildOfADroppedParentStartsWhenTheOwnerOfTheParentIsGone) {
    stream->shards = {listed("p")};
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    auto& owner = a.held.contains(shard_id{"p"}) ? a : b;
    stream->shards = {listed("c", {shard_id{"p"}})};
    world.run_for(70s);
    ASSERT_EQ(holders(shard_id{"c"}), 0);
    owner.crash();
    world.run_for(40s);
    EXPECT_EQ(holders(shard_id{"c"}), 1);
}

TEST_F(GroupDriver, AShardThatIsMissingForAMomentIsTakenAgainSoonAfterItIsBack) {
    auto& a = run("a");
    world.run_for(3s);
    ASSERT_EQ(a.held.size(), 4U);
    const auto all = stream->shards;
    const auto lost = all.back().shard;
    stream->shards.pop_back();
    a.group->discover_soon();
    world.run_for(1s);
    a.give_back(lost);
    world.run_for(2s);
    ASSERT_EQ(a.held.size(), 3U);
    const auto asked = a.lister.asked;
    stream->shards = all;
    world.run_for(5s);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_LE(a.lister.asked - asked, 3U);
}

TEST_F(GroupDriver, AFinishedShardThatIsOpenInTwoListingsIsReportedUntilTheStreamIsMended) {
    auto p = listed("p");
    p.closed = true;
    stream->shards = {p};
    auto& a = run("a");
    world.run_for(3s);
    a.group->finish(shard_id{"p"}, a.held.at(shard_id{"p"}).epoch, [](const result<void>&) {});
    world.run_for(40s);
    ASSERT_TRUE(row("p").finished_at);
    EXPECT_FALSE(a.group->contradiction());
    const auto asked = a.lister.asked;
    stream->shards = {listed("p")};
    while (a.lister.asked == asked)
        world.run_for(50ms);
    EXPECT_FALSE(a.group->contradiction()) << "one listing may be stale";
    world.run_for(2s);
    ASSERT_TRUE(a.group->contradiction());
    EXPECT_EQ(a.log.count("stream.restored"), 1U);
    world.run_for(200s);
    EXPECT_GT(a.log.count("stream.restored"), 1U) << "said again while it lasts";
    EXPECT_LE(a.log.times("stream.restored"), 4U) << "and not with every listing";
    stream->shards = {p};
    world.run_for(60s);
    EXPECT_FALSE(a.group->contradiction());
}

TEST_F(GroupDriver, AQuietTickCostsOneListingOfTheWorkersAndOneHeartbeatWrite) {
    run("a");
    run("b");
    world.run_for(5s);
    int writes = 0;
    table.observe([&](const std::string&, const lease_row*, const lease_row*) { ++writes; });
    world.run_for(10s);
    EXPECT_LE(writes, 12);  // two workers, a heartbeat every two seconds
}

TEST_F(GroupDriver, StopGivesUpAtTheDrainLimitAndReleasesFromTheLastAcknowledgedPosition) {
    settings.group.drain_limit = 2s;
    settings.group.checkpoint_every = 1h;
    auto& a = run("a");
    world.run_for(1s);
    a.release_at_once = false;
    const auto lease = a.held.at(shard_id{"shard-0003"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(9), 9));
    a.stop();
    world.run_for(1900ms);
    EXPECT_FALSE(a.group_stopped);
    world.run_for(1s);
    ASSERT_TRUE(a.group_stopped);
    EXPECT_TRUE(a.group_stopped->has_value());
    EXPECT_EQ(a.losses.size(), 4U);
    EXPECT_EQ(row("shard-0003").checkpoint, at(9));
    EXPECT_TRUE(row("shard-0003").owner.value().empty());
}

TEST_F(GroupDriver, StopGivesUpAfterTheDrainLimitWhileTheStoreIsDown) {
    settings.group.drain_limit = 2s;
    settings.lease = 60s;
    auto& a = run("a");
    world.run_for(2s);
    ASSERT_EQ(a.held.size(), 4U);
    plan.down = true;
    a.stop();
    world.run_for(2400ms);
    EXPECT_FALSE(a.group_stopped);
    world.run_for(1s);
    ASSERT_TRUE(a.group_stopped);
    ASSERT_FALSE(a.group_stopped->has_value());
    EXPECT_TRUE(a.group_stopped->error().in_doubt);
    world.run_for(60s);
    ASSERT_TRUE(a.stopped);
    EXPECT_FALSE(a.stopped->has_value());
    plan.down = false;
    auto& b = run("b");
    world.run_for(65s);
    EXPECT_EQ(b.held.size(), 4U);
}

TEST_F(GroupDriver, ACheckpointThatCannotBeWrittenIsSaidAtOnceAndThenNowAndAgain) {
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0003"});
    for (int i = 0; i < 200; ++i)
        a.store.force("write", fate::unavailable);
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(9), 9));
    world.run_for(2s);
    EXPECT_GE(a.log.count("checkpoint.failed"), 1U);
    world.run_for(60s);
    EXPECT_GE(a.log.count("checkpoint.failed"), 6U);
    EXPECT_LE(a.log.count("checkpoint.failed"), 18U);
    EXPECT_TRUE(a.acts_on(lease.shard));
}

TEST_F(GroupDriver, ALostReplyAtEveryWriteLeavesOneOwnerAndLosesNothing) {
    for (const auto fate :
         {fate::lost_reply, fate::late, fate::doubled, fate::lost_request, fate::unavailable}) {
        workers.clear();
        table = lease_table{};
        auto& a = add("a");
        for (int i = 0; i < 12; ++i) {
            a.store.force("write", fate::normal);
            a.store.force("write", fate);
        }
        a.keeper_store.force("write", fate);
        a.start();
        world.run_for(20s);
        ASSERT_EQ(a.held.size(), 4U) << static_cast<int>(fate);
        const auto lease = a.held.at(shard_id{"shard-0000"});
        a.store.force("write", fate);
        ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(3), 3));
        world.run_for(8s);
        EXPECT_EQ(row("shard-0000").checkpoint, at(3)) << static_cast<int>(fate);
        a.store.force("write", fate);
        a.store.force("write", fate);
        a.keeper_store.force("remove", fate);
        a.stop();
        world.run_for(20s);
        ASSERT_TRUE(a.stopped && a.group_stopped) << static_cast<int>(fate);
        EXPECT_TRUE(a.stopped->has_value());
        EXPECT_EQ(worker_rows(), 0U);
        for (const auto& shard : stream->shards)
            EXPECT_TRUE(row(shard.shard.value()).owner.value().empty()) << static_cast<int>(fate);
    }
}

}  // namespace
}  // namespace millrace::sim
