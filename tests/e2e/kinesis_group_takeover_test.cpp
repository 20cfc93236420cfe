// How a group on Kinesis goes on after a worker starts, joins, ends, is killed or is paused, on each store:
// by what rule, seen from outside.
//
// As in takeover_test.cpp, limits tell one rule from another, not a fast machine from a slow one; what was
// measured is printed.

#include "kinesis_group_workers.hpp"
#include "kinesis_load.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr std::size_t open_shards = 4;
constexpr milliseconds long_lease = 10s;  // what is not a matter of the lease takes far less
constexpr milliseconds short_lease = 4s;
constexpr milliseconds well_before_the_lease = 4s;
constexpr milliseconds slack = 2s;
constexpr milliseconds patience = 30s;

milliseconds since(clock::time_point begin, clock::time_point end) {
    return std::chrono::duration_cast<milliseconds>(end - begin);
}

struct KinesisGroupTakeover : testing::TestWithParam<const char*> {
    ~KinesisGroupTakeover() override { load.stop(); }

    static std::unique_ptr<group_state> make_state(const std::string& kind, const std::string& stream) {
        const auto& shared = support::services();
        const group_name of{stream, kinesis_group_name};
        return kind == "Dynamodb" ? dynamodb_state(shared.dynamodb_endpoint, of)
                                  : postgres_state(shared.postgres, of);
    }

    void use(milliseconds lease) {
        workers.emplace(worker_options{
            .stream = load.url(support::port_of(support::services().kinesis_endpoint)),
            .state = state->url(state->port()),
            .lease = lease});
        watch.emplace(workers->deliveries(), *state);
    }
    void start(milliseconds lease) {
        use(lease);
        load.start(*watch);
    }

    /// Until so many shards were delivered last by the worker, under a later epoch than `before`.
    [[nodiscard]] bool has(
        const std::string& worker,
        std::size_t shards,
        const std::map<std::string, group_watch::stay>& before = {}
    ) {
        return support::eventually(patience, [&] {
            const auto now = watch->stays();
            return std::count_if(now.begin(), now.end(), [&](const auto& one) {
                       const auto was = before.find(one.first);
                       const bool new_stay = was == before.end() || was->second.epoch < one.second.epoch;
                       return one.second.worker == worker && new_stay;
                   }) >= static_cast<std::ptrdiff_t>(shards);
        });
    }
    static std::size_t shards_of(
        const std::map<std::string, group_watch::stay>& all, const std::string& worker
    ) {
        return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& one) {
            return one.second.worker == worker;
        }));
    }

    /// Two workers, two shards each.
    void start_two(milliseconds lease, machine on) {
        start(lease);
        workers->start("one", on);
        ASSERT_TRUE(has("one", open_shards)) << workers->log();
        workers->start("two", on);
        ASSERT_TRUE(has("two", open_shards / 2)) << workers->log();
    }

    void report(const char* what, milliseconds took) const {
        std::printf("%s: %s in %ld ms\n", GetParam(), what, static_cast<long>(took.count()));
    }

    /// And so many records came twice, at most.
    void ends_well(std::uint64_t repeated) {
        load.stop();
        EXPECT_EQ(load.failure(), "");
        EXPECT_TRUE(watch->drained(patience)) << workers->log();
        const auto judged = watch->with([](const auto& check) { return check.judge(); });
        EXPECT_TRUE(judged.faults.empty()) << judged.text() << '\n' << workers->log();
        EXPECT_LE(judged.repeated, repeated);
    }
    void lost_its_shards(const std::string& worker, group_watch::moment from) {
        const group_watch::moment to = watch->now();
        watch->with([&](auto& check) {
            check.disturbed({worker, from, to, workers->options().repeats_of_a_crash()});
        });
    }

    const std::string stream = support::unique_name("takeover");
    std::unique_ptr<group_state> state = make_state(GetParam(), stream);
    kinesis_load load{
        {.region = "eu-west-1", .stream = stream, .endpoint = support::services().kinesis_endpoint}, {}};
    std::optional<worker_fleet> workers;
    std::optional<group_watch> watch;
};

INSTANTIATE_TEST_SUITE_P(
    Stores,
    KinesisGroupTakeover,
    testing::Values("Dynamodb", "Postgres"),
    [](const auto& which) { return which.param; }
);

TEST_P(KinesisGroupTakeover, AFirstWorkerStartsAtOnceOnAnEmptyTable) {
    use(long_lease);
    load.put(*watch, 5);
    const auto begin = clock::now();
    workers->start("one");
    ASSERT_TRUE(has("one", 1)) << workers->log();
    const auto took = since(begin, watch->stays().begin()->second.first);
    report("the first record", took);
    EXPECT_LT(took, 500ms + slack);
    ends_well(0);
}

TEST_P(KinesisGroupTakeover, AJoiningWorkerGetsItsShareAndShardsThatDoNotMoveGoOn) {
    start(long_lease);
    workers->start("one");
    ASSERT_TRUE(has("one", open_shards)) << workers->log();
    const auto before = watch->stays();
    const auto begin = clock::now();
    workers->start("two");
    ASSERT_TRUE(has("two", open_shards / 2)) << workers->log();
    report("a share of a worker that joins", since(begin, clock::now()));
    EXPECT_LT(since(begin, clock::now()), well_before_the_lease);
    const auto after = watch->stays();
    EXPECT_EQ(shards_of(after, "one"), open_shards / 2);
    for (const auto& [shard, stay] : after) {
        if (stay.worker != "one") continue;
        EXPECT_EQ(stay.epoch, before.at(shard).epoch) << shard << " was not moved";
        EXPECT_LT(since({}, clock::time_point(stay.longest_silence)), slack) << shard << " went on";
    }
    ends_well(0);
}

TEST_P(KinesisGroupTakeover, AKilledWorkerOfAnotherMachineIsReplacedWithinTheLeaseAndASecond) {
    ASSERT_NO_FATAL_FAILURE(start_two(short_lease, machine::another));
    const auto before = watch->stays();
    const auto from = watch->now();
    const auto begin = clock::now();
    workers->kill(0);
    ASSERT_TRUE(has("two", open_shards / 2, before)) << workers->log();
    const auto took = since(begin, clock::now());
    lost_its_shards("one", from);
    report("the shards of a worker killed on another machine, of a lease of 4 s", took);
    EXPECT_GT(took, short_lease / 2) << "nobody can see that it is gone";
    EXPECT_LT(took, short_lease + 1s + slack);
    ends_well(open_shards * workers->options().repeats_of_a_crash());
}

TEST_P(KinesisGroupTakeover, AKilledWorkerThatStartsAgainOnItsMachineGoesOnAtOnce) {
    start(long_lease);
    workers->start("one");
    ASSERT_TRUE(has("one", open_shards)) << workers->log();
    const auto before = watch->stays();
    const auto from = watch->now();
    workers->kill(0);
    const auto begin = clock::now();
    workers->start_again(0, "one", machine::same);
    ASSERT_TRUE(has("one", open_shards, before)) << workers->log();
    const auto took = since(begin, clock::now());
    lost_its_shards("one", from);
    report("all shards of a worker started again", took);
    EXPECT_LT(took, well_before_the_lease);
    ends_well(open_shards * workers->options().repeats_of_a_crash());
}

TEST_P(KinesisGroupTakeover, AWorkerThatStopsCleanlyHandsOverAtOnceAndNothingComesTwice) {
    ASSERT_NO_FATAL_FAILURE(start_two(long_lease, machine::another));
    const auto before = watch->stays();
    const auto begin = clock::now();
    workers->members()[0].process.ask_to_end();
    ASSERT_TRUE(has("two", open_shards / 2, before)) << workers->log();
    const auto took = since(begin, clock::now());
    report("the shards of a worker that stops", took);
    EXPECT_LT(took, well_before_the_lease);
    EXPECT_EQ(workers->stop(0), 0);
    ends_well(0);
}

TEST_P(KinesisGroupTakeover, APausedWorkerLosesItsShardsAndComesBackAsAnother) {
    ASSERT_NO_FATAL_FAILURE(start_two(short_lease, machine::another));
    const auto before = watch->stays();
    const auto from = watch->now();
    auto& paused = workers->members()[0].process;
    paused.signal(SIGSTOP);
    ASSERT_TRUE(has("two", open_shards / 2, before)) << workers->log();
    const auto taken = watch->stays();
    paused.signal(SIGCONT);
    ASSERT_TRUE(has("one", open_shards / 2, taken)) << "it registers anew: " << workers->log();
    lost_its_shards("one", from);
    EXPECT_TRUE(paused.running());
    ends_well(open_shards * workers->options().repeats_of_a_crash());
}

}  // namespace
}  // namespace millrace::e2e
