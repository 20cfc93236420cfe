// A stream that was deleted and made again under its name: whose checkpoints go, and whose stay.
#include "group/coordinator.hpp"
#include "group_world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;

struct RecreatedStream : GroupWorld {
    void make_anew() { stream->identity = "made at 2"; }

    /// One worker, with a checkpoint in a shard of the first stream.
    worker& at_work() {
        auto& a = run("a");
        world.run_for(2s);
        const auto lease = a.held.at(first);
        EXPECT_TRUE(a.group->advance(first, lease.epoch, at(50), 1));
        world.run_for(2s);
        EXPECT_EQ(row("shard-0000").checkpoint, at(50));
        return a;
    }

    const shard_id first{"shard-0000"};
};

TEST_F(RecreatedStream, IsReportedAndItsOldCheckpointsAreSetAside) {
    auto& a = run("a");
    world.run_for(1s);
    const auto lease = a.held.at(shard_id{"shard-0000"});
    ASSERT_TRUE(a.group->advance(lease.shard, lease.epoch, at(50), 1));
    world.run_for(2s);
    a.stop();
    world.run_for(1s);
    const auto old = row("shard-0000");
    ASSERT_EQ(old.checkpoint, at(50));
    stream->identity = "made at 2";
    auto& b = run("b");
    world.run_for(3s);
    EXPECT_EQ(b.log.count("stream.recreated"), 1U);
    EXPECT_EQ(b.held.size(), 4U);
    EXPECT_FALSE(b.held.at(shard_id{"shard-0000"}).checkpoint);
    EXPECT_GT(row("shard-0000").epoch, old.epoch);
    EXPECT_EQ(group_row_now()->stream_identity, "made at 2");
}

TEST_F(RecreatedStream, WaitsForALiveWorkerThatStillHoldsShardsOfTheOldOne) {
    auto& a = run("a");
    auto& b = run("b");
    world.run_for(3s);
    ASSERT_EQ(b.held.size(), 2U);
    const auto lease = b.held.begin()->second;
    b.lister.now = std::make_shared<stream_listing>(*stream);  // it has not looked again yet
    ASSERT_TRUE(b.group->advance(lease.shard, lease.epoch, at(5), 1));
    stream->identity = "made at 2";
    a.group->discover_soon();
    world.run_for(5s);
    EXPECT_EQ(group_row_now()->stream_identity, "made at 1");
    EXPECT_TRUE(a.held.empty());
    EXPECT_EQ(b.held.size(), 2U);
    EXPECT_TRUE(b.acts_on(lease.shard));
    EXPECT_EQ(row(lease.shard.value()).checkpoint, at(5));
    b.lister.now = stream;
    b.group->discover_soon();
    world.run_for(5s);
    EXPECT_EQ(group_row_now()->stream_identity, "made at 2");
    EXPECT_FALSE(row(lease.shard.value()).checkpoint);
    EXPECT_GT(row(lease.shard.value()).epoch, lease.epoch);
    EXPECT_TRUE(each_shard_has_one_holder());
}

TEST_F(RecreatedStream, IsDealtWithWhateverRequestFailsOnTheWay) {
    for (const std::string request : {"list_shards", "read", "write"}) {
        for (const int times : {1, 3}) {
            workers.clear();
            table = lease_table{};
            stream->identity = "made at 1";
            auto& a = at_work();
            make_anew();
            for (int i = 0; i < times; ++i)
                a.store.force(request, fate::throttled);
            a.group->discover_soon();
            world.run_for(8s);
            EXPECT_EQ(group_row_now()->stream_identity, "made at 2") << request;
            EXPECT_EQ(a.held.size(), 4U) << request;
            EXPECT_EQ(a.log.count("stream.recreated"), 1U) << request;
            EXPECT_FALSE(row("shard-0000").checkpoint) << request;
        }
    }
}

// One worker with another region in its URL, of a stream of the same name and of the same shards.
TEST_F(RecreatedStream, AWorkerThatLooksAtAnotherStreamEndsAndChangesNothing) {
    const std::string here = "arn:aws:kinesis:eu-west-1:1:stream/orders of ";
    for (const std::string other :
         {"arn:aws:kinesis:eu-central-1:1:stream/orders of 3000",
          "arn:aws:kinesis:eu-west-1:2:stream/orders of 3000",
          "arn:aws:kinesis:eu-west-1:1:stream/orders of 1999"}) {
        workers.clear();
        table = lease_table{};
        stream->identity = here + "2000";
        auto& a = at_work();
        for (const bool alone : {false, true}) {
            if (alone) a.stop();
            world.run_for(2s);
            int changes = 0;
            table.observe([&](const std::string&, const lease_row* before, const lease_row* after) {
                const auto* old = before == nullptr ? nullptr : std::get_if<shard_row>(before);
                const auto* next = after == nullptr ? nullptr : std::get_if<shard_row>(after);
                // A worker that came may be given way to for a moment.
                if (old && next)
                    changes +=
                        old->checkpoint == next->checkpoint && old->finished_at == next->finished_at ? 0 : 1;
                else if (old || next || !std::holds_alternative<worker_row>(before ? *before : *after))
                    ++changes;
            });
            auto& b = add("b");
            auto listed = *stream;
            listed.identity = other;
            b.lister.now = std::make_shared<stream_listing>(listed);
            b.start();
            world.run_for(30s);
            ASSERT_TRUE(b.failure) << other;
            EXPECT_NE(b.failure->detail.find("correct the region"), std::string::npos) << b.failure->detail;
            EXPECT_TRUE(b.held.empty());
            EXPECT_EQ(changes, 0) << other << (alone ? " alone" : " beside one at work");
            EXPECT_EQ(b.log.count("group.failed"), 1U);
            b.stop();
            world.run_for(2s);
            table.observe(nullptr);
        }
        EXPECT_EQ(row("shard-0000").checkpoint, at(50));
        EXPECT_EQ(group_row_now()->stream_identity, here + "2000");
    }
}

TEST_F(RecreatedStream, ARowOfAnEarlierVersionIsOfTheStreamWhoseNameAndMomentItHas) {
    stream->identity = "orders of 2000";
    at_work().stop();
    world.run_for(2s);
    stream->identity = "arn:aws:kinesis:eu-west-1:1:stream/orders of 2000";
    auto& b = run("b");
    world.run_for(3s);
    EXPECT_EQ(b.held.size(), 4U);
    EXPECT_EQ(b.held.at(first).checkpoint, at(50));
    EXPECT_EQ(b.log.count("stream.recreated"), 0U);
}

// It slept while the others set everything aside and went on in the new stream.
TEST_F(RecreatedStream, ASleepersOldListingSetsNothingAside) {
    auto& sleeper = at_work();
    sleeper.pause();
    sleeper.lister.now = std::make_shared<stream_listing>(*stream);
    sleeper.lister.takes = 2s;
    make_anew();
    auto& b = run("b");
    world.run_for(20s);
    ASSERT_EQ(group_row_now()->stream_identity, "made at 2");
    ASSERT_EQ(b.held.size(), 4U);
    ASSERT_TRUE(b.group->advance(first, b.held.at(first).epoch, at(7), 1));
    b.group->finish(first, b.held.at(first).epoch, {});
    b.held.erase(first);
    world.run_for(2s);
    ASSERT_TRUE(row("shard-0000").finished_at);
    b.crash();
    world.run_for(20s);
    sleeper.resume();
    world.run_for(1s);
    sleeper.lister.now = stream;
    world.run_for(20s);
    EXPECT_EQ(group_row_now()->stream_identity, "made at 2");
    EXPECT_TRUE(row("shard-0000").finished_at);
    EXPECT_EQ(row("shard-0000").checkpoint, at(7));
    EXPECT_EQ(sleeper.held.size(), 3U);
}

// The read that a new session begins with was sent before the rows were listed, and answers after them.
TEST_F(RecreatedStream, AnOldReadOfTheGroupRowProvesNothing) {
    coordinator machine{{}, {"host", "boot", "pid:[1]", 1, 1}, {}, [] { return 9U; }};
    const auto step = [&](const group_event& what) {
        return machine.step(mono_time{} + 1s, mono_time::max(), what);
    };
    const auto asks = [](const std::vector<group_action>& actions) {
        std::optional<std::uint64_t> request;
        for (const auto& action : actions) {
            if (const auto* read = std::get_if<read_group>(&action)) request = read->request;
        }
        return request;
    };
    const auto writes = [](const std::vector<group_action>& actions) {
        return std::any_of(actions.begin(), actions.end(), [](const group_action& action) {
            return std::holds_alternative<set_row_aside>(action) ||
                   std::holds_alternative<write_group>(action);
        });
    };
    group_row old;
    old.version = version{1};
    old.stream_identity = "made at 1";
    shard_row done;
    done.shard = first;
    done.version = version{3};
    done.checkpoint = at(7);
    make_anew();

    const auto begun = asks(step(group_begin{}));
    ASSERT_TRUE(begun);
    step(rows_listed{std::vector<shard_row>{}});
    step(stream_listed{*stream});
    step(group_read{*begun, old});
    const auto of_session = asks(step(session_came{incarnation{"mine"}}));
    ASSERT_TRUE(of_session);
    step(workers_listed{std::vector<worker_row>{}});
    const auto after_rows = asks(step(rows_listed{std::vector<shard_row>{done}}));
    ASSERT_TRUE(after_rows);
    EXPECT_FALSE(writes(step(group_read{*of_session, old})));
    EXPECT_FALSE(writes(step(stream_listed{*stream})));
    auto present = old;
    present.stream_identity = "made at 2";
    EXPECT_FALSE(writes(step(group_read{*after_rows, present})));
    EXPECT_FALSE(writes(step(stream_listed{*stream})));
}

TEST_F(RecreatedStream, RowsThatCannotBeSetAsideAreToldAndTriedOncePerTick) {
    auto& a = at_work();
    a.stop();
    world.run_for(2s);
    make_anew();
    auto& b = add("b");
    for (int i = 0; i < 30; ++i)
        b.store.force("write", fate::unavailable);
    int changes = 0;
    table.observe([&](const std::string&, const lease_row*, const lease_row* after) {
        changes += after != nullptr && std::holds_alternative<shard_row>(*after) ? 1 : 0;
    });
    b.start();
    world.run_for(4s);
    EXPECT_EQ(changes, 0);
    EXPECT_GE(b.log.count("checkpoint.set_aside_failed"), 1U);
    world.run_for(60s);
    EXPECT_EQ(group_row_now()->stream_identity, "made at 2");
    EXPECT_EQ(b.held.size(), 4U);
}

// Positions tell of which stream they are: a thousand to each. Workers that sleep, listings that are old or
// do not come, rows that an operator deletes under a lease, and a store that loses requests and replies.
struct RecreatedAgainAndAgain : GroupWorld {
    static constexpr std::uint64_t span = 1'000;

    [[nodiscard]] std::string name_of(std::uint64_t made) const { return fmt::format("made at {}", made); }
    [[nodiscard]] static std::uint64_t generation_of(const checkpoint& at) {
        std::uint64_t made = 0;
        while (at.position.sequence >= sequence_number{(made + 1) * span})
            ++made;
        return made;
    }

    void watch_rows(std::uint64_t seed) {
        table.observe([this, seed](const std::string&, const lease_row* before, const lease_row* after) {
            const auto* old = before == nullptr ? nullptr : std::get_if<shard_row>(before);
            const auto* next = after == nullptr ? nullptr : std::get_if<shard_row>(after);
            if (old == nullptr || next == nullptr) return;
            EXPECT_GE(next->epoch, old->epoch) << "seed " << seed;
            const auto group = group_row_now();
            if (!group || !old->checkpoint) return;
            if (group->stream_identity != name_of(generation)) return;
            if (generation_of(*old->checkpoint) != generation) return;
            // Of the stream that is there and that the group is in: it stays.
            ASSERT_TRUE(next->checkpoint) << "seed " << seed << ": " << next->shard.value();
            EXPECT_GE(next->checkpoint->position, old->checkpoint->position) << "seed " << seed;
        });
    }

    // A listing may come late, but it is true for a moment after it was asked for.
    void make_anew() {
        auto next = std::make_shared<stream_listing>(*stream);
        next->identity = name_of(++generation);
        stream = std::move(next);
        for (const auto& w : workers)
            w->lister.now = stream;
    }

    // As whoever reads does: on from the checkpoint, or from the start of the stream that is there now.
    void work(worker& w) {
        for (const auto& [shard, lease] : w.held) {
            if (!w.acts_on(shard)) continue;
            auto& reached = position_of[{&w, shard, lease.epoch}];
            const auto begin = lease.checkpoint ? *lease.checkpoint : at(generation * span);
            if (reached == 0) reached = std::stoull(begin.position.sequence.to_string());
            if (reached / span == generation) (void)w.group->advance(shard, lease.epoch, at(++reached), 1);
        }
    }

    std::uint64_t generation{1};
    std::map<std::tuple<const worker*, shard_id, epoch>, std::uint64_t> position_of;
};

TEST_F(RecreatedAgainAndAgain, TheNewStreamsCheckpointsStayAndAllEndInTheLatest) {
    settings.group.checkpoint_every = 100ms;
    settings.group.shard_list_every = 4s;
    settings.group.discover_every = 3s;
    settings.lease = 2s;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        workers.clear();
        position_of.clear();
        table = lease_table{};
        random = rng{seed};
        generation = 0;
        stream = std::make_shared<stream_listing>(*stream);
        make_anew();
        watch_rows(seed);
        plan = faults{};
        if (seed % 2 == 0) plan.lost_reply = plan.late = plan.unavailable = plan.doubled = plan.throttled = 4;
        for (int i = 0; i < 3; ++i)
            run(fmt::format("w{}", i), fmt::format("m{}", i));
        for (int t = 0; t < 400; ++t) {
            world.run_for(50ms);
            auto& w = *workers[random.below(3)];
            if (random.chance(2)) w.pause();
            if (random.chance(8)) w.resume();
            if (random.chance(10)) {
                if (w.lister.refuses) {
                    w.lister.refuses.reset();
                } else {
                    w.lister.refuses =
                        error{errc::unavailable, retry_advice::after_delay, false, "no answer"};
                }
            }
            if (random.chance(10)) w.lister.takes = milliseconds{random.below(3'000)};
            if (random.chance(1)) make_anew();
            if (seed % 3 == 0 && random.chance(1)) {
                const auto& shard = stream->shards[random.below(4)].shard;
                (void)table.remove(shard, row(shard.value()).version, "operator");
            }
            for (const auto& one : workers)
                work(*one);
        }
        plan = plan.calm();
        for (const auto& w : workers) {
            w->lister.refuses.reset();
            w->lister.takes = 0s;
            w->resume();
        }
        world.run_for(60s);
        ASSERT_TRUE(each_shard_has_one_holder()) << "seed " << seed;
        ASSERT_EQ(group_row_now()->stream_identity, name_of(generation)) << "seed " << seed;
        for (const auto& shard : stream->shards) {
            const auto known = row(shard.shard.value());
            if (!known.checkpoint) continue;
            EXPECT_EQ(generation_of(*known.checkpoint), generation) << "seed " << seed;
        }
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace millrace::sim
