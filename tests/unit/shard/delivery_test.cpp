#include "shard/delivery.hpp"

#include "batches.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing_shard::at;
using testing_shard::batch;
using D = shard_delivery;

error broken(std::string detail = "simulated") {
    return {errc::handler_failed, retry_advice::after_delay, false, std::move(detail)};
}

// Scripts: what the machine says next is written as text, such as "hand 1-3 attempt 2", with the sequence
// numbers of the records; record n has the index n - 1. Every pause is the whole limit.
struct ShardDelivery : testing::Test {
    explicit ShardDelivery(shard_options o = {}) : options(o) {
        options.retry_min = 100ms;
        options.retry_max = 400ms;
        machine.emplace(options, shard_id{"s"});
    }

    void policy(failure_policy p, std::uint32_t dead_letter_after = 3) {
        options.on_failure = p;
        options.dead_letter_after = dead_letter_after;
    }

    std::string next(nanoseconds t = 0ms) {
        const auto said = machine->next(mono_time{} + t);
        if (const auto* w = std::get_if<D::wait>(&said))
            return "wait " + std::to_string((w->until.time_since_epoch()) / 1ms);
        if (const auto* b = std::get_if<D::bury>(&said))
            return "bury " + data(*b->batch, b->at) + ": " + b->why.detail;
        const auto* h = std::get_if<D::hand>(&said);
        if (h == nullptr) return "rest";
        std::string text = "hand";
        for (std::size_t i = 0; i < h->batch->records().size(); ++i) {
            const auto index = h->places ? (*h->places)[i] : h->first + i;
            EXPECT_EQ(data(*h->batch, i), std::to_string(index + 1));
            text += " " + data(*h->batch, i);
        }
        return text + (h->attempt > 1 ? " attempt " + std::to_string(h->attempt) : "");
    }

    static std::string data(const record_batch& b, std::size_t i) {
        return std::string(b.records()[i].data.value());
    }

    void all(nanoseconds t = 0ms) { machine->returned(mono_time{} + t, 0, handled::all); }
    void later(nanoseconds t = 0ms) { machine->returned(mono_time{} + t, 0, handled::later); }
    void failed(nanoseconds t = 0ms, std::string why = "simulated") {
        machine->returned(mono_time{} + t, draw(), tl::unexpected(broken(std::move(why))));
    }
    void fail_one(std::uint64_t record, nanoseconds t = 0ms) {
        machine->fail(mono_time{} + t, draw(), record - 1, broken("record " + std::to_string(record)));
    }
    void acknowledge(std::uint64_t first, std::uint64_t last) { machine->acknowledge(first - 1, last - 1); }

    // Every limit divides 400 ms, so this draw is the largest of each: pauses of 100, 200, 400, 400 ms.
    static std::uint64_t draw() { return 399'999'999; }

    std::optional<position> progress() {
        const auto p = machine->take_progress();
        return p ? std::optional(p->reached.position) : std::nullopt;
    }

    shard_options options;
    std::optional<D> machine;
};

struct SmallBatches : ShardDelivery {
    SmallBatches() : ShardDelivery({.batch_records = 3}) {}
};

TEST_F(SmallBatches, HandsOverInOrderInBatchesOfTheConfiguredSizeOneAtATime) {
    machine->push(batch(1, 4));
    machine->push(batch(5, 6));
    EXPECT_EQ(next(), "hand 1 2 3");
    EXPECT_EQ(next(), "rest");
    EXPECT_EQ(progress(), std::nullopt);
    all();
    EXPECT_EQ(progress(), at(3));
    EXPECT_EQ(next(), "hand 4");
    all();
    EXPECT_EQ(next(), "hand 5 6");
    all();
    EXPECT_EQ(progress(), at(6));
    EXPECT_EQ(next(), "rest");
}

TEST_F(ShardDelivery, AWholeReadIsHandedOverWithoutACopy) {
    const auto read = batch(1, 5);
    machine->push(read);
    const auto said = machine->next(mono_time{});
    EXPECT_EQ(std::get<D::hand>(said).batch, read);
}

TEST_F(SmallBatches, APartKeepsTheBytesOfTheWholeAlive) {
    machine->push(batch(1, 4, 100));
    const auto said = machine->next(mono_time{});
    const auto part = std::get<D::hand>(said).batch;
    machine.emplace(options, shard_id{"s"});
    EXPECT_EQ(part->records()[2].data->substr(0, 2), "3.");
}

TEST_F(ShardDelivery, RetriesWithGrowingPausesWhatWasNotAcknowledgedAndNothingNewerFirst) {
    machine->push(batch(1, 4));
    EXPECT_EQ(next(), "hand 1 2 3 4");
    machine->push(batch(5, 6));
    acknowledge(1, 2);
    failed(1s);
    EXPECT_EQ(progress(), at(2));
    EXPECT_EQ(next(1s), "wait 1100");
    EXPECT_EQ(next(1100ms), "hand 3 4 attempt 2");
    failed(1100ms);
    EXPECT_EQ(next(1200ms), "wait 1300");
    EXPECT_EQ(next(1300ms), "hand 3 4 attempt 3");
    failed(1300ms);
    EXPECT_EQ(next(1700ms), "hand 3 4 attempt 4");
    all();
    EXPECT_EQ(next(1700ms), "hand 5 6");
}

TEST_F(ShardDelivery, ASuccessBeginsThePausesAnew) {
    machine->push(batch(1, 1));
    machine->push(batch(2, 2));
    EXPECT_EQ(next(), "hand 1");
    failed();
    EXPECT_EQ(next(100ms), "hand 1 attempt 2");
    failed(100ms);
    EXPECT_EQ(next(300ms), "hand 1 attempt 3");
    all();
    EXPECT_EQ(next(300ms), "hand 2");
    failed(300ms);
    EXPECT_EQ(next(300ms), "wait 400");
}

TEST_F(ShardDelivery, AcknowledgedLaterAndOutOfOrderTheCheckpointWaitsForTheGap) {
    machine->push(batch(1, 3));
    machine->push(batch(4, 6));
    EXPECT_EQ(next(), "hand 1 2 3");
    later();
    EXPECT_EQ(next(), "hand 4 5 6");
    later();
    acknowledge(3, 5);
    EXPECT_EQ(progress(), std::nullopt);
    acknowledge(1, 2);
    EXPECT_EQ(progress(), at(5));
    EXPECT_FALSE(machine->settled());
    acknowledge(6, 6);
    EXPECT_TRUE(machine->settled());
}

TEST_F(ShardDelivery, WhatWasNotHandedOverCannotBeAcknowledged) {
    machine->push(batch(1, 2));
    acknowledge(1, 2);
    EXPECT_EQ(progress(), std::nullopt);
    EXPECT_EQ(next(), "hand 1 2");
    machine->push(batch(3, 4));
    acknowledge(1, 4);
    EXPECT_EQ(progress(), at(2));
}

TEST_F(ShardDelivery, ARecordThatFailsLaterIsRetriedAloneBeforeAnythingNewer) {
    machine->push(batch(1, 3));
    EXPECT_EQ(next(), "hand 1 2 3");
    later();
    machine->push(batch(4, 4));
    fail_one(2);
    fail_one(2);  // said twice, one failure
    EXPECT_EQ(next(), "wait 100");
    acknowledge(1, 1);
    EXPECT_EQ(next(100ms), "hand 2 attempt 2");
    all();
    EXPECT_EQ(progress(), at(2));
    EXPECT_EQ(next(100ms), "hand 4");
}

TEST_F(ShardDelivery, AnAcknowledgementThatComesWhileARecordWaitsForItsRetryCounts) {
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    failed();
    acknowledge(1, 2);
    EXPECT_EQ(progress(), at(2));
    EXPECT_EQ(next(), "rest");
}

TEST_F(ShardDelivery, ARecordThatTheHandlerNamedAsFailedIsNotAcknowledgedByTheEndOfItsCall) {
    machine->push(batch(1, 3));
    EXPECT_EQ(next(), "hand 1 2 3");
    fail_one(2);
    all();
    EXPECT_EQ(progress(), at(1));
    EXPECT_EQ(next(100ms), "hand 2 attempt 2");
    all();
    EXPECT_EQ(progress(), at(3));
}

TEST_F(ShardDelivery, UpToAndAnErrorRetriesTheRestWithThatErrorsRecordFirst) {
    machine->push(batch(1, 5));
    EXPECT_EQ(next(), "hand 1 2 3 4 5");
    acknowledge(1, 3);
    failed();
    EXPECT_EQ(next(100ms), "hand 4 5 attempt 2");
}

TEST_F(ShardDelivery, StopKeepsTheCheckpointAndHandsNothingMore) {
    policy(failure_policy::stop);
    machine->push(batch(1, 3));
    machine->push(batch(4, 9));
    machine->end_read();
    EXPECT_EQ(next(), "hand 1 2 3");
    acknowledge(1, 1);
    failed(0ms, "no database");
    ASSERT_TRUE(machine->stopped());
    EXPECT_EQ(machine->stopped()->detail, "no database");
    EXPECT_EQ(progress(), at(1));
    EXPECT_EQ(next(1h), "rest");
    EXPECT_EQ(machine->in_window(), 2U);  // what was never handed over is not held in memory
    acknowledge(1, 9);                    // late
    EXPECT_EQ(progress(), at(3));
    EXPECT_FALSE(machine->finished());
}

TEST_F(ShardDelivery, DeadLettersOnlyTheGuiltyRecordOfABatch) {
    policy(failure_policy::dead_letter, 2);
    machine->push(batch(1, 3));
    EXPECT_EQ(next(), "hand 1 2 3");
    failed();
    EXPECT_EQ(next(100ms), "hand 1 attempt 2");
    all(100ms);
    EXPECT_EQ(next(100ms), "hand 2 attempt 2");
    failed(100ms, "poison");
    EXPECT_EQ(next(100ms), "bury 2: poison");
    EXPECT_EQ(next(100ms), "rest");
    EXPECT_EQ(progress(), at(1));  // not before the dead letter is durable
    machine->buried(mono_time{} + 110ms, draw(), {});
    EXPECT_EQ(progress(), at(2));
    EXPECT_EQ(next(110ms), "hand 3 attempt 2");
    all();
    EXPECT_EQ(machine->totals().dead_lettered, 1U);
    EXPECT_EQ(progress(), at(3));
}

TEST_F(ShardDelivery, TriesTheWholeBatchAgainBeforeTheLastAttempt) {
    policy(failure_policy::dead_letter, 3);
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    failed();
    EXPECT_EQ(next(100ms), "hand 1 2 attempt 2");
    failed(100ms);
    EXPECT_EQ(next(300ms), "hand 1 attempt 3");
    all();
    EXPECT_EQ(next(300ms), "hand 2 attempt 3");
}

TEST_F(ShardDelivery, AFailureOfAWholeBatchIsNoVerdictEvenWithOneAttempt) {
    policy(failure_policy::dead_letter, 1);
    machine->push(batch(1, 2));
    machine->push(batch(3, 3));
    EXPECT_EQ(next(), "hand 1 2");
    failed();
    EXPECT_EQ(next(100ms), "hand 1 attempt 2");
    all();
    EXPECT_EQ(next(100ms), "hand 2 attempt 2");
    all();
    EXPECT_EQ(next(100ms), "hand 3");
    failed(100ms);
    EXPECT_EQ(next(100ms), "bury 3: simulated");
}

TEST_F(ShardDelivery, ADeadLetterThatCannotBeStoredIsTriedAgainAndHoldsTheShard) {
    policy(failure_policy::dead_letter, 1);
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    acknowledge(1, 1);
    fail_one(2);
    later();
    machine->push(batch(3, 3));
    EXPECT_EQ(next(), "bury 2: record 2");
    machine->buried(mono_time{} + 10ms, draw(), fail(errc::unavailable, "disk"));
    EXPECT_EQ(next(10ms), "wait 210");
    EXPECT_EQ(next(210ms), "bury 2: record 2");
    machine->buried(mono_time{} + 220ms, draw(), {});
    EXPECT_EQ(progress(), at(2));
    EXPECT_EQ(next(220ms), "hand 3");
}

TEST_F(ShardDelivery, FinishesWhenTheEndWasReadAndEverythingIsAcknowledged) {
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    later();
    EXPECT_FALSE(machine->finished());
    machine->end_read();
    EXPECT_FALSE(machine->finished());
    acknowledge(2, 2);
    EXPECT_FALSE(machine->finished());
    acknowledge(1, 1);
    EXPECT_TRUE(machine->finished());
}

TEST_F(SmallBatches, TheRestOfAPartlyHandledReadHoldsTheEndBack) {
    machine->push(batch(1, 4));
    machine->end_read();
    EXPECT_EQ(next(), "hand 1 2 3");
    all();
    EXPECT_FALSE(machine->finished());
    EXPECT_EQ(next(), "hand 4");
    all();
    EXPECT_TRUE(machine->finished());
}

TEST_F(ShardDelivery, AnEmptyShardIsFinishedAtItsEnd) {
    machine->push(batch(2, 1));
    machine->end_read();
    EXPECT_TRUE(machine->finished());
}

TEST_F(ShardDelivery, DrainingItHandsNothingMoreAndIsSettledWhenTheCallIsBack) {
    machine->push(batch(1, 2));
    machine->push(batch(3, 4));
    EXPECT_EQ(next(), "hand 1 2");
    machine->drain();
    EXPECT_FALSE(machine->settled());
    all();
    EXPECT_TRUE(machine->settled());
    EXPECT_EQ(next(), "rest");
    EXPECT_EQ(progress(), at(2));
}

TEST_F(ShardDelivery, WhatWaitsForARetryDoesNotHoldTheDrain) {
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    acknowledge(1, 1);
    machine->drain();
    failed();
    EXPECT_TRUE(machine->settled());
    EXPECT_EQ(next(1h), "rest");
    EXPECT_EQ(progress(), at(1));
}

TEST_F(ShardDelivery, ACallThatEndsEarlyBecauseItWasAskedToHasNotFailed) {
    policy(failure_policy::stop);
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    acknowledge(1, 1);
    machine->drain();
    const error early{errc::cancelled, retry_advice::never, false, "the worker is to stop"};
    EXPECT_TRUE(machine->ended_early(early));
    machine->returned(mono_time{}, draw(), tl::unexpected(early));
    EXPECT_FALSE(machine->stopped());
    EXPECT_EQ(machine->totals().failures, 0U);
    EXPECT_TRUE(machine->settled());
    EXPECT_FALSE(machine->finished());
    EXPECT_EQ(progress(), at(1)) << "what is open is not acknowledged";
}

TEST_F(ShardDelivery, ACancellationThatNobodyAskedForIsAFailure) {
    policy(failure_policy::stop);
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    machine->returned(mono_time{}, draw(), fail(errc::cancelled, "on a whim", retry_advice::never));
    EXPECT_TRUE(machine->stopped());
    EXPECT_EQ(machine->totals().failures, 1U);
}

TEST_F(ShardDelivery, ACallThatDidNotTakePlaceIsNoAttempt) {
    machine->push(batch(1, 2));
    EXPECT_EQ(next(), "hand 1 2");
    machine->not_called();
    EXPECT_EQ(next(), "hand 1 2");
    failed();
    EXPECT_EQ(next(100ms), "hand 1 2 attempt 2");
    machine->not_called();
    EXPECT_EQ(next(100ms), "hand 1 2 attempt 2");
    all();
    EXPECT_EQ(machine->totals().handed, 4U);
    EXPECT_EQ(progress(), at(2));
}

// A handler that does anything at all: nothing is lost, nothing is handed over before an earlier failure is
// settled, and the checkpoint never passes a record that was neither acknowledged nor dead-lettered.
RC_GTEST_PROP(ShardDeliveryProperty, NeverPassesAnUnsettledRecordAndFinishesInTheEnd, ()) {
    shard_options options;
    options.on_failure = *rc::gen::element(failure_policy::retry, failure_policy::dead_letter);
    options.dead_letter_after = *rc::gen::inRange<std::uint32_t>(1, 4);
    options.batch_records = *rc::gen::inRange<std::size_t>(1, 6);
    D machine{options, shard_id{"s"}};
    const auto count = *rc::gen::inRange<std::uint64_t>(1, 20);
    std::uint64_t pushed = 0;
    std::vector<bool> done(count, false);
    std::vector<bool> open(count, false);  // with the handler, to be acknowledged later
    auto now = mono_time{};
    for (int steps = 0; !machine.finished(); ++steps) {
        RC_ASSERT(steps < 5000);
        const bool tame = steps > 200;  // then everything goes well
        if (pushed < count) {
            const auto n = *rc::gen::inRange<std::uint64_t>(1, count - pushed + 1);
            machine.push(batch(pushed + 1, pushed + n));
            pushed += n;
            if (pushed == count) machine.end_read();
        }
        const auto said = machine.next(now);
        if (const auto* w = std::get_if<D::wait>(&said)) now = w->until;
        if (const auto* b = std::get_if<D::bury>(&said)) {
            const auto n = b->batch->records()[b->at].position.sequence.low64() - 1;
            const bool ok = tame || *rc::gen::arbitrary<bool>();
            if (ok) done[n] = true;
            machine.buried(now, 5, ok ? result<void>{} : result<void>{tl::unexpected(broken())});
        }
        if (const auto* h = std::get_if<D::hand>(&said)) {
            const auto records = h->batch->records();
            std::vector<std::uint64_t> mine;
            for (std::size_t i = 0; i < records.size(); ++i) {
                mine.push_back(records[i].position.sequence.low64() - 1);
                RC_ASSERT(mine.back() == (h->places ? (*h->places)[i] : h->first + i));
            }
            for (std::uint64_t n = 0; n < mine.front(); ++n)
                RC_ASSERT(done[n] || open[n]);  // nothing earlier waits
            const auto how = tame ? 0 : *rc::gen::inRange(0, 3);
            if (how == 0) {
                for (const auto n : mine)
                    done[n] = true;
                machine.returned(now, 5, handled::all);
            } else if (how == 1) {
                const auto good = *rc::gen::inRange<std::size_t>(0, mine.size());
                for (std::size_t i = 0; i < good; ++i) {
                    done[mine[i]] = true;
                    machine.acknowledge(mine[i], mine[i]);
                }
                for (std::size_t i = good; i < mine.size(); ++i)
                    open[mine[i]] = false;
                machine.returned(now, 5, tl::unexpected(broken()));
            } else {
                for (const auto n : mine)
                    open[n] = true;
                machine.returned(now, 5, handled::later);
            }
        }
        for (std::uint64_t n = 0; n < count; ++n) {
            if (!open[n] || done[n]) continue;
            const auto fate = tame ? 1 : *rc::gen::inRange(0, 4);
            if (fate == 0 || fate == 1) open[n] = false;
            if (fate == 0) machine.fail(now, 5, n, broken());
            if (fate == 1) {
                done[n] = true;
                machine.acknowledge(n, n);
            }
        }
        if (const auto p = machine.take_progress())
            for (std::uint64_t n = 0; n < p->reached.position.sequence.low64(); ++n)
                RC_ASSERT(done[n]);
    }
    for (std::uint64_t n = 0; n < count; ++n)
        RC_ASSERT(done[n]);
}

}  // namespace
}  // namespace millrace
