// How a group lives on: start positions, deleted rows, tidying, rolling restarts.
#include "group_world.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

using GroupLife = GroupWorld;

TEST_F(GroupLife, LatestIsPinnedToTheStreamsClockRoundedDownAndALaterStartIsIgnored) {
    settings.group.start = start_policy::latest;
    auto& a = run("a");
    world.run_for(1s);
    ASSERT_TRUE(group_row_now());
    EXPECT_EQ(group_row_now()->start_at, wall_time{milliseconds{1'767'225'600'000}});
    EXPECT_EQ(
        a.held.begin()->second.start,
        start_position{from::timestamp{wall_time{milliseconds{1'767'225'600'000}}}}
    );
    settings.group.start = start_policy::trim_horizon;
    auto& b = run("b");
    world.run_for(2s);
    EXPECT_EQ(b.log.count("group.start_ignored"), 1U);
    EXPECT_EQ(group_row_now()->start, start_policy::latest);
}

TEST_F(GroupLife, AStateThatWasEmptiedUnderItsWorkersIsToldAndTheGroupBeginsWhereItFirstBegan) {
    settings.group.start = start_policy::latest;
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(2s);
    const auto began = group_row_now()->start_at;
    stream->now += 1h;
    table.clear();
    world.run_for(20s);
    ASSERT_TRUE(group_row_now());
    EXPECT_EQ(group_row_now()->start_at, began) << "what came since then was perhaps not handled";
    EXPECT_GE(a.log.count("group.state_lost") + b.log.count("group.state_lost"), 1U);
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_EQ(a.held.size() + b.held.size(), 4U);
    EXPECT_EQ(a.held.begin()->second.start, start_position{from::timestamp{*began}});
}

TEST_F(GroupLife, AStateThatOthersBeganAnewEndsWhoeverKnewTheOneBefore) {
    settings.group.start = start_policy::latest;
    auto& a = run("a");
    world.run_for(2s);
    auto anew = *group_row_now();
    anew.version = version{1};
    anew.epoch_floor = epoch{};
    anew.start_at = *anew.start_at + 1h;
    table.clear();
    table.put(anew);
    world.run_for(20s);
    ASSERT_TRUE(a.failure) << "what came in that hour would be skipped without a word";
    EXPECT_EQ(a.failure->code, errc::conflict);
}

TEST_F(GroupLife, AResetToAnotherStartEndsNobodyAlsoWithoutAShardThatWasEverTaken) {
    settings.group.start = start_policy::latest;
    auto& a = run("a");
    world.run_for(2s);
    auto reset = *group_row_now();
    reset.version = version{reset.version.value() + 1};
    reset.start_at = *reset.start_at + 1h;
    table.clear();
    table.put(reset);
    world.run_for(20s);
    EXPECT_FALSE(a.failure);
    EXPECT_EQ(group_row_now()->start_at, reset.start_at);
}

TEST_F(GroupLife, AGroupOfANewerFormatIsLeftAlone) {
    group_row newer;
    newer.format = 2;
    newer.version = version{1};
    table.put(newer);
    auto& a = run("a");
    world.run_for(1s);
    ASSERT_TRUE(a.failure);
    EXPECT_EQ(a.failure->code, errc::wrong_version);
    EXPECT_TRUE(a.held.empty());
}

TEST_F(GroupLife, AStreamThatIsMissingIsSaidAsLongAsItIsAndThenWorkedOn) {
    auto& a = add("a");
    a.lister.refuses = error{errc::not_found, retry_advice::after_delay, false, "no such stream"};
    a.start();
    world.run_for(2s);
    ASSERT_TRUE(a.group->trouble());
    EXPECT_EQ(a.group->trouble()->detail, "no such stream");
    EXPECT_TRUE(a.group->stream_trouble());
    EXPECT_GT(a.lister.asked, 2) << "it is looked for again and again";
    EXPECT_FALSE(a.failure);
    a.lister.refuses.reset();
    world.run_for(1s);
    EXPECT_FALSE(a.group->trouble());
    EXPECT_EQ(a.held.size(), 4U);
}

TEST_F(GroupLife, AStreamIsKnownOnceItIsListedAndUntilSomebodyAsksToLookAgain) {
    auto& a = add("a");
    a.lister.takes = 100ms;
    a.start();
    world.run_for(50ms);
    EXPECT_FALSE(a.group->stream_is_known());
    world.run_for(1s);
    EXPECT_TRUE(a.group->stream_is_known());
    a.group->discover_soon();
    world.run_for(50ms);
    a.group->discover_soon();  // the listing under way may be too old for this one
    world.run_for(70ms);
    EXPECT_FALSE(a.group->stream_is_known());
    world.run_for(100ms);
    EXPECT_TRUE(a.group->stream_is_known());
    a.lister.refuses = error{errc::throttled, retry_advice::after_delay, false, "slowly"};
    a.group->discover_soon();
    world.run_for(1s);
    EXPECT_FALSE(a.group->stream_is_known());
    a.lister.refuses.reset();
    world.run_for(2s);
    EXPECT_TRUE(a.group->stream_is_known());
}

TEST_F(GroupLife, AStateThatDoesNotAnswerIsTheTroubleOfTheGroup) {
    auto& a = run("a");
    world.run_for(1s);
    EXPECT_FALSE(a.group->trouble());
    plan.down = true;
    world.run_for(1s);
    ASSERT_TRUE(a.group->trouble());
    EXPECT_FALSE(a.group->stream_trouble());
    plan.down = false;
    world.run_for(1s);
    EXPECT_FALSE(a.group->trouble());
}

// Whoever ends when nothing is left to do would end before it has begun.
TEST_F(GroupLife, IsNotSettledWhileTheStartOfAShardThatItTookIsRead) {
    plan.latency_min = plan.latency_max = 50ms;
    auto& a = run("a");
    for (int i = 0; i < 300; ++i) {
        world.run_for(10ms);
        const auto shards = a.group->shards();
        const auto mine = std::ranges::count_if(shards, [](const shard_view& shard) { return shard.mine; });
        if (mine == 4 && a.group->settled()) {
            ASSERT_EQ(a.held.size(), 4U);
        }
    }
    EXPECT_TRUE(a.group->settled());
    EXPECT_EQ(a.held.size(), 4U);
}

TEST_F(GroupLife, ManyShardsAreGivenBackAFewAtATime) {
    stream->shards = shards_named(200);
    plan.latency_min = plan.latency_max = 10ms;
    auto& a = run("a");
    world.run_for(10s);
    ASSERT_EQ(a.held.size(), 200U);
    const auto given_back = [&] {
        return std::count_if(stream->shards.begin(), stream->shards.end(), [&](const listed_shard& s) {
            return row(s.shard.value()).owner.value().empty();
        });
    };
    a.stop();
    EXPECT_EQ(a.revokes, 200);
    for (int i = 0; i < 100 && given_back() == 0; ++i)
        world.run_for(1ms);
    EXPECT_GT(given_back(), 0);
    EXPECT_LE(given_back(), 32);
    world.run_for(2s);
    EXPECT_EQ(a.releases, 200);
    EXPECT_EQ(given_back(), 200);
    ASSERT_TRUE(a.stopped);
    EXPECT_TRUE(a.stopped->has_value());
}

TEST_F(GroupLife, ManyShardsThatAreNotBackAtTheDrainLimitAreReleasedAFewAtATime) {
    stream->shards = shards_named(200);
    plan.latency_min = plan.latency_max = 10ms;
    settings.group.drain_limit = 1s;
    auto& a = run("a");
    world.run_for(10s);
    ASSERT_EQ(a.held.size(), 200U);
    a.release_at_once = false;
    const auto given_back = [&] {
        return std::count_if(stream->shards.begin(), stream->shards.end(), [&](const listed_shard& s) {
            return row(s.shard.value()).owner.value().empty();
        });
    };
    a.stop();
    for (int i = 0; i < 1100 && given_back() == 0; ++i)
        world.run_for(1ms);
    EXPECT_GT(given_back(), 0);
    EXPECT_LE(given_back(), 32);
    world.run_for(2s);
    EXPECT_EQ(given_back(), 200);
    EXPECT_EQ(a.losses.size(), 200U);
    ASSERT_TRUE(a.stopped);
    EXPECT_TRUE(a.stopped->has_value());
}

TEST_F(GroupLife, ANewcomerUnderAWorkersIdIsSettledWhenTheOldSessionHasEnded) {
    auto& a = run("a");
    world.run_for(2s);
    a.crash();
    auto& again = run("a");
    world.run_for(9s);
    EXPECT_FALSE(again.group->settled());
    EXPECT_TRUE(again.held.empty());
    world.run_for(3s);
    EXPECT_TRUE(again.group->settled());
    EXPECT_EQ(again.held.size(), 4U);
}

TEST_F(GroupLife, ANewcomerUnderALiveWorkersIdIsNeverSettledAndTheIncumbentStays) {
    auto& a = run("a");
    world.run_for(2s);
    auto& double_of_a = run("a");
    for (int i = 0; i < 100 && !double_of_a.failure; ++i) {
        EXPECT_FALSE(double_of_a.group->settled());
        EXPECT_TRUE(a.group->settled());
        world.run_for(100ms);
    }
    ASSERT_TRUE(double_of_a.failure);
    EXPECT_EQ(double_of_a.failure->code, errc::worker_id_taken);
    EXPECT_FALSE(double_of_a.group->settled());
    EXPECT_TRUE(a.group->settled());
}

TEST_F(GroupLife, FinishedRowsOfUnlistedShardsAreTidiedAndTheirEpochIsKept) {
    settings.group.tidy_after = 1min;
    settings.group.discover_every = 10s;
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0003"});
    a.held.erase(lease.shard);
    a.group->finish(lease.shard, lease.epoch, {});
    world.run_for(5s);
    const auto finished = row("shard-0003");
    ASSERT_TRUE(finished.finished_at);
    world.run_for(2min);
    EXPECT_TRUE(row("shard-0003").finished_at);  // still listed
    stream->shards.pop_back();
    world.run_for(60s);
    EXPECT_TRUE(row("shard-0003").finished_at);
    world.run_for(30s);
    EXPECT_EQ(row("shard-0003"), shard_row{});
    EXPECT_GE(group_row_now()->epoch_floor, finished.epoch);
    stream->shards.push_back(listed("shard-0003"));
    world.run_for(15s);
    EXPECT_GT(a.held.at(shard_id{"shard-0003"}).epoch, finished.epoch);
}

TEST_F(GroupLife, ARowDeletedUnderALeaseIsMadeAgainAndTakenByWhoeverIsLeft) {
    settings.group.shard_list_every = 5s;
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    ASSERT_EQ(a.held.size(), 2U);
    const auto lease = a.held.begin()->second;
    ASSERT_TRUE(table.remove(lease.shard, row(lease.shard.value()).version, "an operator"));
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(5), 1));
    world.run_for(10s);
    ASSERT_EQ(a.losses.size(), 1U);
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_GT(row(lease.shard.value()).epoch, lease.epoch);
    b.crash();
    world.run_for(20s);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_TRUE(each_shard_has_one_holder());
}

TEST_F(GroupLife, AnUnreadableRowCostsItsOwnShardAndNoOther) {
    settings.group.shard_list_every = 5s;
    auto& a = run("a");
    auto& b = run("b");
    auto& c = run("c");
    world.run_for(3s);
    ASSERT_TRUE(each_shard_has_one_holder());
    const auto damaged = b.held.begin()->first;
    table.damage(damaged);
    b.crash();
    c.crash();
    world.run_for(30s);
    EXPECT_EQ(a.held.size(), 3U) << "all but that one";
    EXPECT_FALSE(a.acts_on(damaged));
    ASSERT_TRUE(a.group->trouble());
    EXPECT_NE(a.group->trouble()->detail.find(damaged.value()), std::string::npos);
    EXPECT_TRUE(a.group->unreadable());
    EXPECT_GE(a.log.count("shard.unreadable"), 1U);
    table.mend(damaged);
    world.run_for(10s);
    EXPECT_EQ(a.held.size(), 4U);
    EXPECT_FALSE(a.group->trouble());
}

TEST_F(GroupLife, AnUnreadableRowOfAWorkerStopsNobodyFromJoiningOrTakingOver) {
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    table.put(worker_row{.incarnation = incarnation{"wild"}});
    table.damage(incarnation{"wild"});
    auto& c = run("c");
    world.run_for(3s);
    EXPECT_GE(c.held.size(), 1U);
    EXPECT_TRUE(each_shard_has_one_holder());
    b.crash();
    world.run_for(20s);
    EXPECT_EQ(a.held.size() + c.held.size(), 4U) << "who fell is replaced";
    EXPECT_FALSE(a.group->trouble()) << "all can be done";
    ASSERT_TRUE(a.group->unreadable_worker());
    EXPECT_NE(a.group->unreadable_worker()->detail.find("wild"), std::string::npos);
    EXPECT_GE(a.log.count("worker.unreadable"), 1U);
    table.mend(incarnation{"wild"});
    ASSERT_TRUE(table.remove(incarnation{"wild"}, version{0}, "a person"));
    world.run_for(1s);
    EXPECT_FALSE(a.group->unreadable_worker());
}

TEST_F(GroupLife, AWorkerWhoseOwnRowBecameUnreadableKeepsItsLeaseAndThenBeginsAnew) {
    run("a");
    auto& b = run("b");
    world.run_for(3s);
    const auto before = b.held;
    ASSERT_EQ(before.size(), 2U);
    table.damage(before.begin()->second.owner);
    for (int i = 0; i < 300; ++i) {
        world.run_for(100ms);
        for (const auto& shard : stream->shards)
            ASSERT_LE(holders(shard.shard), 1) << shard.shard.value();
    }
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_EQ(b.held.size(), 2U) << "under a new session";
    EXPECT_NE(b.held.begin()->second.owner, before.begin()->second.owner);
}

TEST_F(GroupLife, AllShardsAreTakenBesideAForeignRowAndOneThatNobodyRenewsAfterItsTime) {
    table.put(worker_row{.incarnation = incarnation{"wild"}});
    table.damage(incarnation{"wild"});
    settings.group.all_shards = true;
    auto& a = run("a");
    world.run_for(30s);
    EXPECT_TRUE(a.held.empty()) << "its session may live";
    world.run_for(1h);
    EXPECT_EQ(a.held.size(), 4U);
}

TEST_F(GroupLife, WhoHoldsAShardWhoseRowBecameUnreadableGoesOnWithIt) {
    settings.group.shard_list_every = 5s;
    auto& a = run("a");
    world.run_for(3s);
    const auto lease = a.held.begin()->second;
    table.damage(lease.shard);
    auto& b = run("b");
    world.run_for(30s);
    EXPECT_TRUE(a.acts_on(lease.shard)) << "nobody knows better";
    EXPECT_EQ(b.held.size() + a.held.size(), 4U);
    EXPECT_GE(b.held.size(), 1U) << "the others are shared";
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(5), 1));
    world.run_for(10s);
    EXPECT_TRUE(a.losses.empty());
    EXPECT_EQ(row(lease.shard.value()).checkpoint, at(5));
}

TEST_F(GroupLife, ChildrenOfAShardWhoseRowIsUnreadableWait) {
    stream->shards = {listed("p"), listed("c", {shard_id{"p"}}), listed("other")};
    settings.group.shard_list_every = 5s;
    settings.group.discover_every = 5s;
    auto& a = run("a");
    world.run_for(3s);
    a.crash();
    table.damage(shard_id{"p"});
    auto& b = run("b");
    world.run_for(30s);
    EXPECT_TRUE(b.acts_on(shard_id{"other"}));
    EXPECT_EQ(b.held.size(), 1U);
    std::erase_if(stream->shards, [](const listed_shard& s) { return s.shard == shard_id{"p"}; });
    world.run_for(30s);
    EXPECT_EQ(b.held.size(), 1U) << "nobody can say whether its owner still has records of it";
}

TEST_F(GroupLife, NothingIsKeptOfAShardThatAnotherWorkerHasTidied) {
    settings.group.tidy_after = 1min;
    settings.group.discover_every = 10s;
    run("a");
    auto& b = run("b");
    world.run_for(3s);
    const auto lease = b.held.begin()->second;
    b.held.erase(lease.shard);
    b.group->finish(lease.shard, lease.epoch, {});
    std::erase_if(stream->shards, [&](const listed_shard& s) { return s.shard == lease.shard; });
    world.run_for(30s);
    const auto use = [&] { return b.group->advance(lease.shard, lease.epoch, at(1), 1).error().code; };
    EXPECT_EQ(use(), errc::already_finished);
    world.run_for(2min);
    ASSERT_EQ(row(lease.shard.value()), shard_row{});
    EXPECT_EQ(use(), errc::not_owner);
}

TEST_F(GroupLife, ARollingRestartNeverLeavesAShardWithTwoHoldersAndEndsBalanced) {
    stream->shards = shards_named(12);
    plan.lost_reply = plan.late = plan.unavailable = 3;
    run("a");
    run("b");
    run("c");
    world.run_for(5s);
    for (std::size_t i = 0; i < 3; ++i) {
        const std::string name(1, static_cast<char>('a' + i));
        workers[i]->stop();
        for (int t = 0; t < 100; ++t) {
            world.run_for(20ms);
            for (const auto& shard : stream->shards)
                ASSERT_LE(holders(shard.shard), 1);
        }
        run(name);
        world.run_for(4s);
    }
    plan = plan.calm();
    world.run_for(35s);
    EXPECT_TRUE(each_shard_has_one_holder());
    for (std::size_t i = 3; i < 6; ++i)
        EXPECT_EQ(workers[i]->held.size(), 4U);
}

TEST_F(GroupLife, ATakeThatLandsLateIsAdoptedAndNeverOrphaned) {
    settings.group.shard_list_every = 5s;
    auto& a = run("a");
    world.run_for(1s);
    const shard_id shard{"shard-0001"};
    const auto lease = a.held.at(shard);
    a.held.erase(shard);
    a.group->finish(shard, lease.epoch, {});
    world.run_for(1s);
    // The scene that a late take leaves: the row names the live session, which knows nothing of it.
    auto late = row("shard-0001");
    late.finished_at.reset();
    late.owner = row("shard-0000").owner;
    late.version = version{late.version.value() + 1};
    late.epoch = epoch{late.epoch.value() + 50};
    table.put(late);
    world.run_for(7s);
    ASSERT_TRUE(a.held.contains(shard));
    EXPECT_EQ(a.held.at(shard).epoch, late.epoch);
    EXPECT_TRUE(a.acts_on(shard));
}

// Another worker acquires, progresses and releases or finishes between the listing and the take.
TEST_F(GroupLife, ARowThatMovedSinceItWasListedIsNeitherRewoundNorReopened) {
    for (const bool finishes : {false, true}) {
        workers.clear();
        table = lease_table{};
        table.observe(
            [&, done = false](const std::string&, const lease_row* before, const lease_row* after) mutable {
                const auto* made = after == nullptr ? nullptr : std::get_if<shard_row>(after);
                if (done || before != nullptr || made == nullptr || made->shard != shard_id{"shard-0002"})
                    return;
                done = true;
                world.at(world.now() + 100us, [this, finishes] {
                    auto other = row("shard-0002");
                    other.version = version{other.version.value() + 3};
                    other.epoch = epoch{other.epoch.value() + 1};
                    other.checkpoint = at(700);
                    if (finishes) other.finished_at = wall_time{milliseconds{3}};
                    table.put(other);
                });
            }
        );
        auto& a = run("a");
        world.run_for(3s);
        EXPECT_EQ(row("shard-0002").checkpoint, at(700));
        EXPECT_EQ(row("shard-0002").finished_at.has_value(), finishes);
        EXPECT_EQ(a.held.contains(shard_id{"shard-0002"}), !finishes);
        if (!finishes) {
            EXPECT_EQ(a.held.at(shard_id{"shard-0002"}).checkpoint, at(700));
        }
    }
}

TEST_F(GroupLife, ManyShardsSettleOnManyWorkers) {
    stream->shards = shards_named(400);
    for (int i = 0; i < 20; ++i)
        run(fmt::format("w{:02}", i));
    world.run_for(5s);
    for (const auto& w : workers)
        EXPECT_EQ(w->held.size(), 20U);
    EXPECT_TRUE(each_shard_has_one_holder());
}

TEST_F(GroupLife, AStoreThatIsDownForLongerThanTheLeaseCostsTheSessionButNothingElse) {
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    plan.down = true;
    world.run_for(30s);
    for (auto* w : {&a, &b}) {
        EXPECT_EQ(w->log.count("workers.list_failed"), 1U) << "of about a hundred";
        EXPECT_EQ(w->log.count("shards.list_failed") + w->log.count("group.read_failed"), 0U);
        EXPECT_GE(w->log.count("session.heartbeat_failed"), 5U);
    }
    EXPECT_EQ(holders(shard_id{"shard-0000"}), 0);
    EXPECT_EQ(a.held.size() + b.held.size(), 0U);
    plan.down = false;
    world.run_for(15s);
    EXPECT_TRUE(each_shard_has_one_holder());
    EXPECT_EQ(a.held.size(), 2U);
}

TEST_F(GroupLife, RandomFaultsNeverGiveAShardTwoHoldersAndEndWithOne) {
    stream->shards = shards_named(7);
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        workers.clear();
        table = lease_table{};
        random = rng{seed};
        plan = faults{};
        plan.lost_reply = plan.late = plan.unavailable = plan.doubled = plan.lost_request = 4;
        for (int i = 0; i < 3; ++i) {
            settings.clock.drift_per_million = static_cast<std::int32_t>(random.below(20'000)) - 10'000;
            settings.clock.offset = std::chrono::seconds{random.below(1000)};
            run(fmt::format("w{}", i), fmt::format("m{}", i));
        }
        for (int t = 0; t < 600; ++t) {
            world.run_for(50ms);
            auto& w = *workers[random.below(3)];
            if (random.chance(1)) w.pause();
            if (random.chance(5)) w.resume();
            for (const auto& shard : stream->shards)
                ASSERT_LE(holders(shard.shard), 1) << "seed " << seed;
        }
        plan = plan.calm();
        for (const auto& w : workers)
            w->resume();
        world.run_for(60s);
        ASSERT_TRUE(each_shard_has_one_holder()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace millrace::sim
