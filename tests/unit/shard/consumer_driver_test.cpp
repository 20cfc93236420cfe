#include "consumer_world.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace millrace {
namespace {

using namespace testing_shard;

error broken(std::string detail = "simulated") {
    return {errc::handler_failed, retry_advice::after_delay, false, std::move(detail)};
}

/// One run of `ConsumerDriverUnderFaults`.
struct chaos : ConsumerDriver {
    explicit chaos(std::uint64_t seed)
        : ConsumerDriver(
              {.on_failure = seed % 2 == 0 ? failure_policy::retry : failure_policy::dead_letter,
               .dead_letter_after = 2,
               .batch_records = 1 + seed % 7,
               .read_records = 1 + seed % 23,
               .shard_unacknowledged = 40},
              {.aggregate = 20, .cursor_life = 3s, .partial_page = 20, .empty_page = 10}
          ) {
        random = sim::rng{seed};
        drain_limit = 2s;
        plan = {
            .unavailable = 10,
            .throttled = 10,
            .lost_request = 3,
            .late = 3,
            .latency_min = 1ms,
            .latency_max = 40ms};
        handler.behave = [this](const auto& batch, const delivery& how) { return behave(batch, how); };
    }
    void TestBody() override {}

    result<handled> behave(const std::shared_ptr<const record_batch>& batch, const delivery& how) {
        if (how.attempt == 1)
            for (const auto& r : batch->records()) {
                const auto number = std::stoi(std::string(*r.data));
                EXPECT_TRUE(number <= first_unseen) << number << " was handed over before " << first_unseen;
                first_unseen = std::max(first_unseen, number + 1);
            }
        const auto settle = [this, batch](std::size_t i) {
            done.insert(std::string(*batch->records()[i].data));
        };
        switch (tame ? 0 : random.below(4)) {
            case 0:
                for (std::size_t i = 0; i < batch->records().size(); ++i)
                    settle(i);
                return handled::all;
            case 1: {
                const auto good = random.below(batch->records().size());
                for (std::size_t i = 0; i < good; ++i)
                    settle(i);
                if (good > 0) how.acknowledge.up_to(good - 1);
                return tl::unexpected(broken());
            }
            case 2:
                throw std::runtime_error("thrown");
            default:
                break;
        }
        for (std::size_t i = 0; i < batch->records().size(); ++i) {
            const auto when = world.now() + milliseconds{static_cast<std::int64_t>(random.below(900))};
            world.at(when, [this, settle, how, i, bad = random.chance(20)] {
                if (bad && !tame) return how.acknowledge.fail(i, broken());
                settle(i);
                how.acknowledge.one(i);
            });
        }
        return handled::later;
    }

    void check() {
        const auto& reached = leases->rows[shard(0)].reached;
        for (const auto& r : stream.shards()[0]->records) {
            if (!reached || reached->position < r.position) break;
            const bool buried = std::any_of(
                dead_letters.stored.begin(),
                dead_letters.stored.end(),
                [&](const std::string& s) { return s.starts_with(*r.data + ": "); }
            );
            EXPECT_TRUE(done.contains(*r.data) || buried) << *r.data << " was passed";
        }
    }

    void go() {
        bool held = true;
        grant(0);
        for (int i = 0; i < 60; ++i) {
            append(i * 5, i * 5 + 4);
            pool.takes = milliseconds{static_cast<std::int64_t>(random.below(300))};
            world.run_for(milliseconds{static_cast<std::int64_t>(random.below(700))});
            check();
            held = leases->rows[shard(0)].held;
            if (held && random.chance(10)) lose(0);
            if (held && random.chance(10)) consumer->revoke(shard(0));
            if (!held) grant(0);
            EXPECT_LE(consumer->counters().bytes_in_memory, options.memory_bytes);
        }
        tame = true;
        plan = plan.calm();
        ASSERT_TRUE(stream.split(shard(0)));
        for (int i = 0; i < 100 && !leases->rows[shard(0)].finished; ++i) {
            if (!leases->rows[shard(0)].held) grant(0);
            world.run_for(5s);
        }
        check();
        EXPECT_TRUE(leases->rows[shard(0)].finished);
        EXPECT_EQ(checkpoint_data(0), "299");
        EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
    }

    int first_unseen{0};
    bool tame{false};
    std::set<std::string> done;
};

TEST_F(ConsumerDriver, HandsRecordsOverInOrderAndAdvancesTheCheckpoint) {
    append(1, 3);
    grant(0);
    world.run_for(20ms);
    append(4, 5);
    world.run_for(50ms);  // woken by the stream's signal, not by the tip interval
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2 3", "0: 4 5"}));
    EXPECT_EQ(checkpoint_data(0), "5");
    EXPECT_EQ(leases->rows[shard(0)].records, 5U);
    EXPECT_TRUE(consumer->idle());
    const auto counters = consumer->counters();
    EXPECT_EQ(counters.records_read, 5U);
    EXPECT_EQ(counters.records_handed, 5U);
    EXPECT_EQ(counters.records_acknowledged, 5U);
    EXPECT_EQ(counters.bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, ResumesAfterTheCheckpoint) {
    append(1, 4);
    make();
    const auto& second = stream.shards()[0]->records[1];
    leases->rows[shard(0)].reached = checkpoint{second.position, wall_time{}};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 3 4"}));
}

TEST_F(ConsumerDriver, IsNotIdleBeforeTheTipWasSeenNorWhileAHandlerWorks) {
    append(1, 1);
    pool.takes = 1s;
    grant(0);
    EXPECT_FALSE(consumer->idle());
    world.run_for(500ms);
    EXPECT_FALSE(consumer->idle());
    world.run_for(600ms);
    EXPECT_TRUE(consumer->idle());
}

TEST_F(ConsumerDriver, FinishesOnlyAfterTheLastRecordIsAcknowledgedThoughTheEndWasReadLongBefore) {
    append(1, 3);
    ASSERT_TRUE(stream.split(shard(0)));
    std::vector<acknowledger> kept;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        return handled::later;
    };
    grant(0);
    world.run_for(5s);
    EXPECT_EQ(leases->discoveries, 1);  // the end was read: its children are to be listed
    EXPECT_FALSE(leases->rows[shard(0)].finished);
    kept[0].up_to(1);
    world.run_for(5s);
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_FALSE(leases->rows[shard(0)].finished);
    kept[0].one(2);
    world.run_for(5s);
    EXPECT_TRUE(leases->rows[shard(0)].finished);
    EXPECT_EQ(handler.told.back(), "finished 0");
}

TEST_F(ConsumerDriver, AnEmptyClosedShardIsFinishedAtOnce) {
    ASSERT_TRUE(stream.split(shard(0)));
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "finished 0"}));
}

TEST_F(ConsumerDriver, ARefusedFinishIsTriedAgainAndSaid) {
    ASSERT_TRUE(stream.split(shard(0)));
    make();
    leases->refusals = {{errc::unavailable, retry_advice::after_delay, false, "locked"}};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "finished 0"}));
    EXPECT_EQ(log.events["shard.finish_failed"], 1);
}

TEST_F(ConsumerDriver, ARevokedShardIsReleasedWhereItStandsAndTheHandlerIsNotToldThatItFinished) {
    append(1, 4);
    options.batch_records = 2;
    ASSERT_TRUE(stream.split(shard(0)));
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_TRUE(leases->rows[shard(0)].held);  // a call is under way
    pool.let_go();
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "revoked 0", "0: 1 2"}));
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_FALSE(leases->rows[shard(0)].finished);
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, ARevokedShardThatWasProcessedToItsEndIsFinishedAndNotReleased) {
    append(1, 2);
    ASSERT_TRUE(stream.split(shard(0)));
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    consumer->revoke(shard(0));
    pool.let_go();
    world.run_for(1s);
    EXPECT_TRUE(leases->rows[shard(0)].finished);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "revoked 0", "0: 1 2", "finished 0"}));
}

TEST_F(ConsumerDriver, TheDrainWaitsForAcknowledgementsThatComeLaterButNotForEver) {
    append(1, 2);
    append(3, 3);
    drain_limit = 10s;
    std::vector<acknowledger> kept;
    std::stop_token stop;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        stop = how.stop;
        return handled::later;
    };
    grant(0);
    world.run_for(1s);
    EXPECT_FALSE(stop.stop_requested());
    consumer->revoke(shard(0));
    EXPECT_TRUE(stop.stop_requested());
    kept[0].one(0);
    world.run_for(9s);
    EXPECT_TRUE(leases->rows[shard(0)].held);
    world.run_for(2s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_EQ(checkpoint_data(0), "1");
    EXPECT_EQ(log.events["shard.drain_limit"], 1);
    kept[0].all();  // too late: no effect, no crash
    world.run_for(1s);
    EXPECT_EQ(checkpoint_data(0), "1");
}

TEST_F(ConsumerDriver, ReleasesWhileTheSourceIsDown) {
    grant(0);
    world.run_for(1s);
    plan.down = true;
    append(1, 1);
    world.run_for(5s);
    EXPECT_FALSE(consumer->idle());
    consumer->revoke(shard(0));
    world.run_for(100ms);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_TRUE(consumer->idle());
}

TEST_F(ConsumerDriver, ReadsOnAfterAnOutage) {
    grant(0);
    world.run_for(1s);
    plan.down = true;
    append(1, 2);
    world.run_for(60s);
    plan.down = false;
    world.run_for(options.backoff_max);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2"}));
}

TEST_F(ConsumerDriver, AfterALossNothingMoreIsHandedOverAndLateAcknowledgementsDoNothing) {
    append(1, 4);
    options.batch_records = 2;
    std::optional<delivery> call;
    handler.behave = [&](const auto&, const delivery& how) {
        call = how;
        return handled::later;
    };
    pool.takes = 100ms;
    grant(0);
    world.run_for(150ms);
    ASSERT_TRUE(call);
    EXPECT_TRUE(call->still_owner());
    lose(0);
    EXPECT_TRUE(call->stop.stop_requested());
    EXPECT_FALSE(call->still_owner());
    call->acknowledge.all();
    world.run_for(5s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "lost 0"}));
    EXPECT_EQ(checkpoint_data(0), "");
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, NoCallBeginsAfterTheDeadlineThoughTheLoopWasToldNothing) {
    append(1, 2);
    pool.takes = 100ms;
    grant(0);
    world.run_for(50ms);  // the call is queued in the pool
    session.until = loop.now();
    world.run_for(1s);
    EXPECT_EQ(handler.calls, 0);
    session.until = mono_time::max();  // a late heartbeat was confirmed after all
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2"}));
    EXPECT_EQ(consumer->counters().records_handed, 2U);
}

TEST_F(ConsumerDriver, CallsOfOneShardNeverOverlapAlsoWhenItIsLostAndComesBackMeanwhile) {
    append(1, 2);
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    ASSERT_EQ(pool.held.size(), 1U);
    lose(0);
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(pool.held.size(), 1U);  // the earlier call has not returned
    EXPECT_FALSE(consumer->idle());
    pool.let_go();
    world.run_for(1s);
    EXPECT_EQ(pool.held.size(), 1U);
    pool.let_go();
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "lost 0", "assigned 0", "0: 1 2"}));
    EXPECT_EQ(checkpoint_data(0), "2");
}

TEST_F(ConsumerDriver, WhatTheHandlerThrowsIsAFailureAndRetried) {
    append(1, 2);
    int failures = 0;
    handler.behave = [&](const auto&, const delivery&) -> result<handled> {
        if (failures++ == 0) throw std::runtime_error("no");
        if (failures == 2) throw 7;
        return handled::all;
    };
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "0: 1 2 attempt 2", "0: 1 2 attempt 3"}));
    EXPECT_EQ(consumer->counters().handler_failures, 2U);
    EXPECT_EQ(log.events["shard.handler_failed"], 2);
    EXPECT_EQ(checkpoint_data(0), "2");
}

TEST_F(ConsumerDriver, AHandlerThatThrowsWhenItIsAssignedAShardIsToldAgainBeforeAnyRecord) {
    append(1, 2);
    handler.throws["assigned"] = 2;
    grant(0);
    world.run_for(2s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "assigned 0", "assigned 0", "0: 1 2"}));
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_EQ(log.events["shard.handler_failed"], 2);
    EXPECT_EQ(consumer->counters().handler_failures, 2U);
}

TEST_F(ConsumerDriver, UnderThePolicyStopAHandlerThatThrowsWhenItIsAssignedAShardStopsIt) {
    append(1, 2);
    options.on_failure = failure_policy::stop;
    handler.throws["assigned"] = 1;
    grant(0);
    world.run_for(2s);
    EXPECT_EQ(handler.told, lines{"assigned 0"});
    EXPECT_EQ(log.events["shard.stopped"], 1);
    EXPECT_EQ(consumer->counters().shards_stopped, 1U);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
}

TEST_F(ConsumerDriver, AHandlerThatThrowsAtTheEndOfALeaseKeepsNothingFromEnding) {
    handler.throws = {{"revoked", 1}, {"lost", 1}, {"finished", 1}};
    grant(0);
    world.run_for(1s);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    grant(0);
    world.run_for(1s);
    lose(0);
    world.run_for(1s);
    grant(0);
    ASSERT_TRUE(stream.split(shard(0)));
    world.run_for(2s);
    EXPECT_TRUE(leases->rows[shard(0)].finished);
    EXPECT_EQ(
        handler.told, (lines{"assigned 0", "revoked 0", "assigned 0", "lost 0", "assigned 0", "finished 0"})
    );
    EXPECT_EQ(log.events["shard.handler_failed"], 3);
}

TEST_F(ConsumerDriver, WhatWasAcknowledgedBeforeAnErrorIsNotHandedOverAgain) {
    append(1, 4);
    handler.behave = [&](const auto&, const delivery& how) -> result<handled> {
        if (how.attempt > 1) return handled::all;
        how.acknowledge.up_to(1);
        how.acknowledge.one(3);
        return tl::unexpected(broken());
    };
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2 3 4", "0: 3 attempt 2"}));
    EXPECT_EQ(checkpoint_data(0), "4");
}

TEST_F(ConsumerDriver, AStoppedShardIsReportedAndStaysHeldButIdle) {
    append(1, 4);
    options.on_failure = failure_policy::stop;
    options.batch_records = 2;
    handler.behave = [&](const auto& batch, const delivery&) -> result<handled> {
        if (batch->records()[0].data == "3") return tl::unexpected(broken());
        return handled::all;
    };
    grant(0);
    world.run_for(1s);
    append(5, 9);
    world.run_for(60s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "0: 3 4"}));
    EXPECT_EQ(log.events["shard.stopped"], 1);
    EXPECT_EQ(consumer->counters().shards_stopped, 1U);
    EXPECT_TRUE(consumer->idle());
    EXPECT_TRUE(leases->rows[shard(0)].held);
    consumer->revoke(shard(0));
    world.run_for(1s);
    EXPECT_FALSE(leases->rows[shard(0)].held);
    EXPECT_EQ(checkpoint_data(0), "2");
}

TEST_F(ConsumerDriver, ADeadLetterIsDurableBeforeTheCheckpointPassesItsRecord) {
    append(1, 3);
    options.on_failure = failure_policy::dead_letter;
    options.dead_letter_after = 2;
    dead_letters.failures = 3;
    handler.behave = [&](const auto& batch, const delivery&) -> result<handled> {
        for (const auto& r : batch->records())
            if (r.data == "2") return tl::unexpected(broken("poison"));
        return handled::all;
    };
    grant(0);
    while (dead_letters.stored.empty()) {
        ASSERT_TRUE(world.step());
        ASSERT_NE(checkpoint_data(0), "2");
        ASSERT_NE(checkpoint_data(0), "3");
    }
    world.run_for(10s);
    EXPECT_EQ(dead_letters.stored, lines{"2: poison"});
    EXPECT_EQ(checkpoint_data(0), "3");
    EXPECT_EQ(consumer->counters().records_dead_lettered, 1U);
    EXPECT_EQ(log.events["shard.dead_letter_failed"], 3);
    EXPECT_EQ(log.events["shard.record_dead_lettered"], 1);
}

TEST_F(ConsumerDriver, ATrimmedCheckpointGoesOnAtTheHorizonAndReportsOneGap) {
    append(1, 5);
    make();
    leases->rows[shard(0)].reached = checkpoint{stream.shards()[0]->records[0].position, loop.wall()};
    stream.trim(shard(0), 3);
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 4 5"}));
    EXPECT_EQ(consumer->counters().gaps_reported, 1U);
    EXPECT_EQ(log.events["shard.gap"], 1);
}

TEST_F(ConsumerDriver, AShardThatIsGoneEndsAndIsSaid) {
    grant(1);
    world.run_for(1s);
    EXPECT_EQ(handler.told, (lines{"assigned 1", "finished 1"}));
    EXPECT_EQ(log.events["shard.gone"], 1);
}

struct RetainingStream : ConsumerDriver {
    RetainingStream()
        : ConsumerDriver({}, {.trimmed_is_error = false, .retention = milliseconds{3'600'000}}) {}
};

TEST_F(RetainingStream, ACheckpointOlderThanTheRetentionReportsAPossibleGap) {
    append(1, 3);
    world.run_for(std::chrono::hours{2});
    make();
    const auto& first = stream.shards()[0]->records[0];
    leases->rows[shard(0)].reached = checkpoint{first.position, sim::wall_at(first.arrived)};
    client.force(
        "list_shards", sim::fate::unavailable
    );  // a failed look is no end: the next grant asks again
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().gaps_reported, 0U);
    consumer->revoke(shard(0));
    world.run_for(1s);
    leases->rows[shard(0)].reached = checkpoint{first.position, sim::wall_at(first.arrived)};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().gaps_reported, 1U);
    EXPECT_EQ(log.events["shard.gap"], 1);
}

TEST_F(RetainingStream, AFreshCheckpointReportsNone) {
    append(1, 3);
    make();
    leases->rows[shard(0)].reached = checkpoint{stream.shards()[0]->records[0].position, loop.wall()};
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().gaps_reported, 0U);
}

struct ShortLivedCursors : ConsumerDriver {
    ShortLivedCursors() : ConsumerDriver({}, {.cursor_life = 2s}) {}
};

TEST_F(ShortLivedCursors, ASlowHandlerCostsTheCursorButNoRecordAndNoRepetition) {
    options.read_records = 2;
    options.batch_records = 2;
    pool.takes = 10s;
    append(1, 8);
    grant(0);
    world.run_for(5min);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 1 2", "0: 3 4", "0: 5 6", "0: 7 8"}));
}

TEST_F(ShortLivedCursors, LatestLosesNothingWhenItsCursorExpiresBeforeTheFirstRecord) {
    append(1, 1);
    world.run_for(5s);
    grant(0, from::latest{});
    world.run_for(10ms);
    plan.down = true;
    append(2, 3);
    world.run_for(10s);
    plan.down = false;
    world.run_for(20s);
    EXPECT_EQ(handler.told, (lines{"assigned 0", "0: 2 3"}));
}

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
    EXPECT_GE(log.events["shard.read_failing"], 3);
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

TEST_F(ManyShards, ARecordLargerThanTheWholeBudgetIsStillProcessed) {
    options.memory_bytes = 1'000;
    options.read_bytes = 1'000;
    for (int i = 0; i < 40; ++i)
        stream.append("key" + std::to_string(i), std::string(5'000, 'x'));
    for (int i = 0; i < 8; ++i)
        grant(i);
    world.run_for(10min);
    EXPECT_EQ(consumer->counters().records_acknowledged, 40U);
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, MemoryThatTheHandlerKeepsIsCountedUntilItLetsGo) {
    append(1, 2);
    std::vector<std::shared_ptr<const record_batch>> kept;
    handler.behave = [&](const auto& batch, const delivery&) {
        kept.push_back(batch);
        return handled::all;
    };
    grant(0);
    world.run_for(1s);
    EXPECT_EQ(checkpoint_data(0), "2");
    EXPECT_GT(consumer->counters().bytes_in_memory, 0U);
    kept.clear();
    world.run_for(1s);
    EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
}

TEST_F(ConsumerDriver, ReadingPausesWhileTooManyRecordsWaitForAnAcknowledgement) {
    options.shard_unacknowledged = 10;
    options.batch_records = 4;
    append(1, 30);
    std::vector<acknowledger> kept;
    handler.behave = [&](const auto&, const delivery& how) {
        kept.push_back(how.acknowledge);
        return handled::later;
    };
    grant(0);
    world.run_for(10s);
    EXPECT_EQ(consumer->counters().records_read, 10U);
    while (!kept.empty()) {
        for (const auto& ack : std::exchange(kept, {}))
            ack.all();
        world.run_for(10s);
    }
    EXPECT_EQ(checkpoint_data(0), "30");
}

TEST_F(ConsumerDriver, TheNextReadIsUnderWayWhileTheHandlerWorks) {
    options.read_records = 100;
    options.batch_records = 100;
    append(1, 300);
    pool.takes = 1s;
    grant(0);
    world.run_for(500ms);
    EXPECT_EQ(handler.calls, 0);
    EXPECT_EQ(consumer->counters().records_read, 200U);  // one in the call, one ahead, no more
}

TEST_F(ConsumerDriver, DestroyedWithACallUnderWayItLeavesNothingBehind) {
    append(1, 2);
    pool.hold = true;
    grant(0);
    world.run_for(1s);
    ASSERT_EQ(pool.held.size(), 1U);
    consumer.reset();
    pool.let_go();
    append(3, 3);
    world.run_for(10s);
    EXPECT_EQ(handler.calls, 1);
}

// Faults of the stream, a handler that does anything, and leases that go and come: whatever happens, records
// are first handed over in order, the checkpoint never passes one that was not acknowledged, and in the end
// every record was.
TEST(ConsumerDriverUnderFaults, LosesNothingAndPassesNothing) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE("seed=" + std::to_string(seed));
        chaos run{seed};
        run.go();
        if (testing::Test::HasFailure()) return;
    }
}

TEST_F(ConsumerDriver, AFailureOfTheGroupIsPassedOnOnce) {
    make();
    std::string heard;
    consumer->on_failed([&](const error& why) { heard += why.detail; });
    consumer->failed({errc::worker_id_taken, retry_advice::never, false, "doubled"});
    consumer->failed({errc::worker_id_taken, retry_advice::never, false, "doubled"});
    EXPECT_EQ(heard, "doubled");
}

}  // namespace
}  // namespace millrace
