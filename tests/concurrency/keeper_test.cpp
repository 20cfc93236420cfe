#include "keeper.hpp"

#include "memory_lease_store.hpp"
#include "process_identity.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

/// A main loop with a keeper on a store in memory.
struct Keeper : testing::Test, session_listener {
    void session_started(const incarnation& mine) override {
        EXPECT_EQ(std::this_thread::get_id(), loop_thread);
        started.push_back(mine);
        if (on_started) on_started();
    }
    void session_ended(const incarnation& mine, const error&) override {
        EXPECT_EQ(std::this_thread::get_id(), loop_thread);
        ended.push_back(mine);
        if (on_ended) on_ended();
    }

    void start() {
        const auto opened = guard.start([this](host& home) -> result<std::unique_ptr<lease_store>> {
            return std::make_unique<memory_lease_store>(home, table);
        });
        ASSERT_TRUE(opened);
        loop.call_at(loop.now() + 20s, [this] {
            ADD_FAILURE() << "timed out";
            loop.stop();
        });
    }

    void turn_regularly() {
        guard.loop_turned(loop.now());
        loop.call_at(loop.now() + 20ms, [this] { turn_regularly(); });
    }

    void stop() {
        guard.stop([this](const result<void>& outcome) {
            EXPECT_TRUE(outcome);
            loop.stop();
        });
        loop.run();
    }

    std::thread::id loop_thread = std::this_thread::get_id();
    std::shared_ptr<memory_lease_table> table = std::make_shared<memory_lease_table>();
    event_loop loop;
    std::vector<incarnation> started;
    std::vector<incarnation> ended;
    std::function<void()> on_started;
    std::function<void()> on_ended;
    keeper guard{loop, {.worker = worker_id("w"), .lease = 300ms}, this_process(), *this};
};

TEST_F(Keeper, RenewsForAsLongAsTheLoopTurnsAndDeregisters) {
    on_started = [this] {
        ASSERT_EQ(table->workers().size(), 1U);
        loop.call_at(loop.now() + 1s, [this] { loop.stop(); });
    };
    start();
    turn_regularly();
    loop.run();
    ASSERT_EQ(started.size(), 1U);
    EXPECT_TRUE(ended.empty());
    EXPECT_GT(guard.deadline(started[0]), loop.now());
    EXPECT_GT(table->workers().at(0).counter.value(), 5U);
    stop();
    EXPECT_TRUE(table->workers().empty());
    EXPECT_LE(guard.deadline(started[0]), loop.now());
}

TEST_F(Keeper, ALoopThatStandsStillForALeaseTimeLosesItsSession) {
    on_started = [this] {
        if (started.size() == 2) return loop.stop();
        std::promise<void> never;  // a callback that does not return in time
        EXPECT_EQ(never.get_future().wait_for(1s), std::future_status::timeout);
        EXPECT_LE(guard.deadline(started[0]), loop.now()) << "renewed for a loop that stood still";
    };
    start();
    turn_regularly();
    loop.run();
    ASSERT_EQ(started.size(), 2U);
    EXPECT_EQ(ended, (std::vector<incarnation>{started[0]}));
    EXPECT_NE(started[0], started[1]);
    EXPECT_LE(guard.deadline(started[0]), loop.now());
    stop();
}

TEST_F(Keeper, IsAskedFromManyThreadsWhileItRenews) {
    on_started = [this] { loop.call_at(loop.now() + 400ms, [this] { loop.stop(); }); };
    start();
    turn_regularly();
    std::atomic<std::uint64_t> asked{0};
    {
        std::vector<std::jthread> others;
        for (int i = 0; i < 3; ++i) {
            others.emplace_back([&](const std::stop_token& stopped) {
                while (!stopped.stop_requested()) {
                    (void)guard.deadline(incarnation("somebody"));
                    guard.note_change();
                    ++asked;
                }
            });
        }
        loop.run();
    }
    EXPECT_TRUE(ended.empty());
    EXPECT_GT(asked, 0U);
    EXPECT_GT(table->workers().at(0).changes, 0U);
    stop();
}

TEST_F(Keeper, EndsAtOnceWithoutDeregistering) {
    on_started = [this] { loop.stop(); };
    start();
    turn_regularly();
    loop.run();  // the keeper ends with the fixture, and the row stays to lapse
    EXPECT_EQ(table->workers().size(), 1U);
}

}  // namespace
}  // namespace millrace
