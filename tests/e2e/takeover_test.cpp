// How work goes on after a process ends, is killed, or is paused: by what rule, seen from outside.
//
// Limits are far above what is usual and far below the lease (10 s for a group, 5 s for an outbox), so that a
// test tells one rule from another and not a fast machine from a slow one. The usual figures are in the
// benchmarks.

#include "fleet.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto long_lease = 10'000ms;
constexpr auto well_before_the_lease = 4s;

struct Takeover : testing::Test {
    static fleet_options one_each() { return {.relays = 1, .workers = 1, .lease = long_lease}; }

    /// Writes one more event and waits until it is delivered; the time that took, or the limit.
    std::chrono::milliseconds time_to_deliver(std::chrono::milliseconds limit) {
        const auto begin = clock::now();
        put();
        delivered(limit);
        return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
    }

    void put() {
        const auto number = std::to_string(++written_);
        const auto done = support::run(
            {MILLRACE_PROGRAM,
             "outbox",
             "put",
             "--outbox",
             "sqlite:" + members_.database().string(),
             "--topic",
             "orders",
             "--key",
             "k" + number,
             "--value",
             "v",
             "--header",
             "event-number=" + number}
        );
        ASSERT_EQ(done.status, 0) << done.errors;
    }

    void delivered(std::chrono::milliseconds limit) {
        ASSERT_TRUE(support::eventually(
            limit,
            [&] {
                members_.follow();
                return members_.check().distinct() == written_;
            }
        )) << members_.log()
           << members_.group_status().output;
    }

    void kill(std::size_t index) {
        members_.members()[index].process.signal(SIGKILL);
        ASSERT_TRUE(members_.members()[index].process.wait(5s));
    }

    void start(fleet_options options = one_each()) {
        members_.use(options);
        members_.start();
        ASSERT_NO_FATAL_FAILURE(put());
        ASSERT_NO_FATAL_FAILURE(delivered(10s));
    }

    static constexpr std::size_t relay = 0;
    static constexpr std::size_t worker = 1;
    fleet members_{one_each()};
    std::uint64_t written_{0};
};

TEST_F(Takeover, AKilledWorkerThatStartsAgainUnderItsNameGoesOnAtOnce) {
    ASSERT_NO_FATAL_FAILURE(start());
    kill(worker);
    members_.start_again(worker);
    EXPECT_LT(time_to_deliver(long_lease), well_before_the_lease);
}

TEST_F(Takeover, AKilledWorkerIsReplacedAtOnceByAnotherOnTheSameMachine) {
    ASSERT_NO_FATAL_FAILURE(start());
    kill(worker);
    members_.start_renamed(worker);
    EXPECT_LT(time_to_deliver(long_lease), well_before_the_lease);
}

TEST_F(Takeover, AKilledRelayIsReplacedAtOnceOnTheSameMachine) {
    ASSERT_NO_FATAL_FAILURE(start());
    kill(relay);
    members_.start_again(relay);
    EXPECT_LT(time_to_deliver(long_lease), well_before_the_lease);
}

TEST_F(Takeover, AWaitingRelayTakesOverWhenTheLeaderIsKilled) {
    ASSERT_NO_FATAL_FAILURE(start({.relays = 2, .workers = 1, .lease = long_lease}));
    kill(relay);  // the first to start leads
    EXPECT_LT(time_to_deliver(long_lease), well_before_the_lease);
}

TEST_F(Takeover, AWorkerThatStopsCleanlyHandsOverWithoutADuplicate) {
    ASSERT_NO_FATAL_FAILURE(start({.relays = 1, .workers = 2, .lease = long_lease}));
    auto& leaving = members_.members()[worker].process;
    leaving.ask_to_end();
    const auto ended = leaving.wait(5s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0);
    for (int i = 0; i < 8; ++i)
        ASSERT_LT(time_to_deliver(long_lease), well_before_the_lease);
    EXPECT_EQ(members_.check().report().handed_twice, 0U);
}

TEST_F(Takeover, APausedWorkerLosesItsShardsAfterItsLeaseAndNothingIsLostWhenItWakes) {
    const auto lease = 2'000ms;
    ASSERT_NO_FATAL_FAILURE(start({.relays = 1, .workers = 2, .lease = lease}));
    auto& paused = members_.members()[worker].process;
    paused.signal(SIGSTOP);
    for (int i = 0; i < 8; ++i)
        ASSERT_NO_FATAL_FAILURE(put());
    ASSERT_NO_FATAL_FAILURE(delivered(lease + 5s));
    paused.signal(SIGCONT);
    for (int i = 0; i < 8; ++i)
        ASSERT_LT(time_to_deliver(5s), 5s);
    EXPECT_EQ(members_.check().report().out_of_order, 0U);
    EXPECT_TRUE(paused.running()) << "it registers anew and goes on";
}

TEST_F(Takeover, AWorkerIdThatIsInUseMakesTheNewcomerEndAndNameBoth) {
    ASSERT_NO_FATAL_FAILURE(start({.relays = 1, .workers = 1, .lease = 3'000ms}));
    auto newcomer = members_.another("worker-1");
    const auto ended = newcomer.wait(15s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 1);
    const auto log = members_.log();
    EXPECT_NE(log.find("worker-1"), std::string::npos);
    EXPECT_NE(log.find(std::to_string(members_.members()[worker].process.pid())), std::string::npos) << log;
    EXPECT_NE(log.find(std::to_string(newcomer.pid())), std::string::npos) << log;
    EXPECT_LT(time_to_deliver(10s), 10s) << "the first one goes on";
}

}  // namespace
}  // namespace millrace::e2e
