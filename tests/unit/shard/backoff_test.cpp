#include "retry/backoff.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

// The draw that gives the whole limit: one less than a multiple of it.
std::uint64_t draw_of(nanoseconds limit) {
    return static_cast<std::uint64_t>(limit.count()) - 1;
}

TEST(Backoff, DoublesUpToTheCapAndBeginsAnewAfterASuccess) {
    backoff pause{100ms, 1s};
    for (const nanoseconds limit : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms})
        EXPECT_EQ(pause.next(draw_of(limit)), limit);
    pause.reset();
    EXPECT_EQ(pause.next(draw_of(100ms)), 100ms);
}

TEST(Backoff, JitterSpansEverythingBelowTheLimitAndIsNeverZero) {
    backoff pause{100ms, 100ms};
    EXPECT_EQ(pause.next(0), 1ns);
    EXPECT_EQ(pause.next(41'999'999), 42ms);
    for (std::uint64_t draw : {std::uint64_t{7}, ~std::uint64_t{0}}) {
        const auto p = pause.next(draw);
        EXPECT_GT(p, 0ns);
        EXPECT_LE(p, 100ms);
    }
}

TEST(Backoff, DoesNotOverflowAfterAnyNumberOfFailures) {
    backoff pause{1ns, nanoseconds::max()};
    for (int i = 0; i < 200; ++i)
        EXPECT_GT(pause.next(~std::uint64_t{0}), 0ns);
    EXPECT_EQ(pause.failures(), 200U);
}

}  // namespace
}  // namespace millrace
