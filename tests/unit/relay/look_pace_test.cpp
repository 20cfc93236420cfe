// How long a relay waits between two looks at its outbox.

#include "unit/relay/bare_relay.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

struct LookPace : testing::Test, test::bare_relay {
    LookPace() : bare_relay({.poll_min = 1ms, .poll_max = 50ms}) { start({}); }

    // Until the next look, after one that found so many rows.
    nanoseconds after(std::int64_t rows, bool more = false) {
        while (find<relay_action::fetch>() == nullptr)
            wake();
        const auto number = number_of<relay_action::fetch>();
        const auto begin = now;
        step(relay_event::fetched{number, page(next, rows, more)});
        next += rows;
        while (find<relay_action::fetch>() == nullptr)
            wake();
        return now - begin;
    }

    std::int64_t next{1};
};

TEST_F(LookPace, LooksSoonAfterAFewRowsAndLessOftenTheMoreArrive) {
    EXPECT_EQ(after(1), 1'250us);
    EXPECT_EQ(after(4), 2ms);
    EXPECT_EQ(after(20), 6ms);
    EXPECT_EQ(after(200), 10ms);
    EXPECT_EQ(after(1), 1'250us);
}

TEST_F(LookPace, LooksAtOnceWhenMoreIsThere) {
    EXPECT_EQ(after(200, true), 0ms);
}

TEST_F(LookPace, LooksLessAndLessOftenWhileNothingComes) {
    for (const auto pause : {1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 50ms, 50ms})
        EXPECT_EQ(after(0), pause);
    EXPECT_EQ(after(1), 1'250us);
    EXPECT_EQ(after(0), 1ms);
}

TEST(LookPaceOfASignalledOutbox, LooksOnceASecondUntilItIsToldOfAChange) {
    test::bare_relay relay({.poll_min = 1ms, .poll_max = 50ms}, true);
    relay.start({});
    const auto look = [&] {
        while (relay.find<relay_action::fetch>() == nullptr)
            relay.wake();
        const auto number = relay.number_of<relay_action::fetch>();
        relay.step(relay_event::fetched{number, test::bare_relay::page(1, 0, false)});
        return relay.now;
    };
    auto last = look();
    for (int i = 0; i < 10; ++i)
        last = look();
    EXPECT_EQ(look() - last, 1s);
    relay.now += 100ms;
    relay.step(relay_event::source_changed{});
    EXPECT_NE(relay.find<relay_action::fetch>(), nullptr);
}

}  // namespace
}  // namespace millrace
