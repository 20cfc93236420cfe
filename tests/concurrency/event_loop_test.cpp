#include "event_loop.hpp"

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(EventLoop, RunsWhatManyThreadsPostOnceAndInEachThreadsOrder) {
    constexpr std::size_t threads = 4;
    constexpr std::size_t each = 5'000;
    event_loop loop;
    std::vector<std::size_t> next(threads, 0);  // touched by the loop alone
    std::size_t total = 0;
    bool in_order = true;
    std::vector<std::jthread> posters;
    for (std::size_t t = 0; t < threads; ++t) {
        posters.emplace_back([&, t] {
            for (std::size_t i = 0; i < each; ++i) {
                loop.post([&, t, i] {
                    in_order = in_order && next[t]++ == i;
                    if (++total == threads * each) loop.stop();
                });
            }
        });
    }
    loop.run();
    EXPECT_TRUE(in_order);
    EXPECT_EQ(total, threads * each);
}

TEST(EventLoop, CallsTimersInOrderOfTimeAndNotBefore) {
    event_loop loop;
    std::vector<int> order;
    const auto start = loop.now();
    loop.call_at(start + 20ms, [&] {
        order.push_back(3);
        EXPECT_GE(loop.now(), start + 20ms);
        loop.stop();
    });
    loop.call_at(start + 5ms, [&] { order.push_back(2); });
    loop.call_at(start - 1s, [&] { order.push_back(1); });
    loop.run();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(EventLoop, NeverCallsACancelledTimerAlsoWhenItIsDueInTheSameTurn) {
    event_loop loop;
    const auto when = loop.now() + 2ms;
    host::timer second = 0;
    loop.call_at(when, [&] { loop.cancel(second); });
    second = loop.call_at(when, [&] { ADD_FAILURE() << "cancelled by the timer before it"; });
    loop.cancel(loop.call_at(when, [&] { ADD_FAILURE() << "cancelled at once"; }));
    loop.call_at(when + 1ms, [&] { loop.stop(); });
    loop.run();
    loop.cancel(second);  // no effect
}

TEST(EventLoop, CallsWhatHasTimeWithTheFirstTimerThatComesDueFromThenOn) {
    event_loop loop;
    bool called = false;
    const auto start = loop.now();
    loop.call_between(start + 10ms, start + 1h, [&] {
        EXPECT_GE(loop.now(), start + 10ms);
        called = true;
    });
    loop.call_between(start + 1h, start + 2h, [&] { ADD_FAILURE() << "before its first moment"; });
    loop.call_at(start + 5ms, [] {});
    loop.call_at(start + 20ms, [&] { loop.stop(); });
    loop.run();
    EXPECT_TRUE(called);
}

TEST(EventLoop, CallsWhatHasTimeAtItsLastMomentWhenNothingElseComesDue) {
    event_loop loop;
    const auto start = loop.now();
    loop.cancel(loop.call_between(start, start + 1ms, [&] { ADD_FAILURE() << "it was cancelled"; }));
    loop.call_between(start, start + 5ms, [&] {
        EXPECT_GE(loop.now(), start + 5ms);
        loop.stop();
    });
    loop.run();
}

TEST(EventLoop, GoesOnAfterItsOnlyTimer) {
    event_loop loop;
    loop.call_at(loop.now(), [&] {});
    std::jthread later([&] {
        std::this_thread::sleep_for(10ms);
        loop.post([&] { loop.call_at(loop.now() + 1ms, [&] { loop.stop(); }); });
    });
    loop.run();
}

TEST(EventLoop, ATimerThatSetsItselfForThePastDoesNotStarveWhatIsPosted) {
    event_loop loop;
    std::size_t rounds = 0;
    std::function<void()> again = [&] {
        if (++rounds == 3) loop.post([&] { loop.stop(); });
        loop.call_at(mono_time{}, again);
    };
    loop.call_at(mono_time{}, again);
    loop.run();
    EXPECT_GE(rounds, 3U);
}

TEST(EventLoop, SetsAndCancelsAHundredThousandTimersWithoutLeavingAny) {
    event_loop loop;
    std::size_t called = 0;
    for (std::size_t i = 0; i < 100'000; ++i) {
        const auto timer = loop.call_at(loop.now() + 1h, [&] { ++called; });
        if (i % 1000 != 0)
            loop.cancel(timer);
        else
            loop.call_at(loop.now(), [&] { ++called; });
    }
    loop.call_at(loop.now() + 1ms, [&] { loop.stop(); });
    loop.run();
    EXPECT_EQ(called, 100U);
}

TEST(EventLoop, HandsTheFirstSignalToTheCallbackInPlaceOfEnding) {
    for (const int first : {SIGTERM, SIGINT}) {
        event_loop loop;
        std::vector<int> seen;
        loop.on_signals([&](int signal) {
            seen.push_back(signal);
            loop.stop();
        });
        ::kill(::getpid(), first);
        loop.run();
        EXPECT_EQ(seen, std::vector<int>{first});
    }
}

TEST(EventLoopDeathTest, LetsASecondSignalEndTheProcess) {
    for (const int second : {SIGTERM, SIGINT}) {
        const auto twice = [&] {
            event_loop loop;
            loop.on_signals([&](int) { ::kill(::getpid(), second); });
            ::kill(::getpid(), SIGTERM);
            loop.run();
        };
        EXPECT_EXIT(twice(), testing::KilledBySignal(second), "");
    }
}

TEST(EventLoop, GoesOnWithWhatIsPendingWhenRunAgain) {
    event_loop loop;
    int calls = 0;
    loop.post([&] {
        ++calls;
        loop.stop();
    });
    loop.post([&] {
        ++calls;
        loop.stop();
    });
    loop.run();
    EXPECT_EQ(calls, 1);
    loop.run();
    EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace millrace
