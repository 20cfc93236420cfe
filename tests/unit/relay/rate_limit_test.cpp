#include "relay/rate_limit.hpp"

#include "relay_world.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

// Rows that go out in `span` when as many as may are sent at once, looking each millisecond.
std::size_t sent_within(rate_limit& limit, mono_time& now, nanoseconds span) {
    std::size_t sent = 0;
    for (const auto end = now + span; now < end; now += 1ms) {
        const auto room = limit.room(now);
        limit.spend(now, room);
        sent += room;
    }
    return sent;
}

TEST(RateLimit, ZeroIsNone) {
    rate_limit none(0);
    none.spend(mono_time{1h}, 1'000'000'000);
    EXPECT_GT(none.room(mono_time{1h}), 1'000'000'000U);
    EXPECT_LE(none.due(), mono_time{1h});
}

TEST(RateLimit, HoldsTheRateInTheLongRunAndABurstOfATenthOfASecond) {
    for (const std::uint64_t rate : {1U, 7U, 1'000U, 250'000U, 10'000'000U}) {
        rate_limit limit(rate);
        mono_time now{1h};
        const auto burst = limit.room(now);
        EXPECT_EQ(burst, std::max<std::uint64_t>(1, rate / 10));
        const auto sent = sent_within(limit, now, 20s);
        EXPECT_LE(sent, 20 * rate + burst) << rate;
        EXPECT_GE(sent, 20 * rate - rate / 50) << rate;
    }
}

TEST(RateLimit, WaitsUntilThereIsRoomForAWorthwhileRequest) {
    rate_limit limit(10'000);
    const mono_time now{1h};
    limit.spend(now, limit.room(now));
    EXPECT_EQ(limit.room(now), 0U);
    EXPECT_EQ(limit.room(limit.due() - 1us), 0U);
    EXPECT_EQ(limit.room(limit.due()), 100U);
}

TEST(RateLimit, ARelayKeepsItAndStillDeliversAll) {
    sim::relay_world w({.relay = {.rows_per_second = 1'000}});
    for (auto i = 0; i < 3'000; ++i)
        w.put("k" + std::to_string(i % 7));
    w.driver->start(epoch{1});
    w.world.run_for(1s);
    EXPECT_GE(w.first_appends.size(), 900U);
    EXPECT_LE(w.first_appends.size(), 1'100U);
    ASSERT_TRUE(w.run_until_empty(3s));
    EXPECT_THAT(w.broken, testing::IsEmpty());
}

}  // namespace
}  // namespace millrace
