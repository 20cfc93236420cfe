#include "shard/byte_budget.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

using granted = std::optional<std::size_t>;

TEST(ByteBudget, GivesBackTheDifferenceBetweenReservedAndRead) {
    byte_budget budget{1000};
    const auto a = budget.join();
    EXPECT_EQ(budget.reserve(a, 200), granted{200});
    budget.settle(a, 200, 30);
    EXPECT_EQ(budget.in_use(), 30U);
    budget.give_back(a, 30);
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(ByteBudget, ARecordLargerThanTheWholeBudgetIsReadWhenNothingElseIsInUse) {
    byte_budget budget{100};
    const auto a = budget.join();
    const auto b = budget.join();
    EXPECT_EQ(budget.reserve(a, 500), granted{500});
    budget.settle(a, 500, 700);
    EXPECT_EQ(budget.reserve(b, 500), std::nullopt);
    EXPECT_EQ(budget.next(), std::nullopt);
    budget.give_back(a, 700);
    EXPECT_EQ(budget.next(), b);
    EXPECT_EQ(budget.reserve(b, 500), granted{500});
}

TEST(ByteBudget, AStuckShardDoesNotStarveTheOthers) {
    byte_budget budget{1000};
    const auto stuck = budget.join();
    while (budget.reserve(stuck, 50)) {
    }
    EXPECT_LE(budget.in_use(), 500U);
    for (int i = 0; i < 20; ++i) {
        const auto healthy = budget.join();
        const auto got = budget.reserve(healthy, 50);
        ASSERT_TRUE(got);
        budget.settle(healthy, *got, *got);
        budget.give_back(healthy, *got);
    }
}

TEST(ByteBudget, WaitersAreServedInTurn) {
    byte_budget budget{1000};
    const auto big = budget.join();
    const auto b = budget.join();
    const auto c = budget.join();
    EXPECT_EQ(budget.reserve(big, 1000), granted{1000});
    EXPECT_EQ(budget.reserve(b, 100), std::nullopt);
    EXPECT_EQ(budget.reserve(c, 100), std::nullopt);
    EXPECT_EQ(budget.reserve(b, 100), std::nullopt);  // queued once
    budget.give_back(big, 1000);
    EXPECT_EQ(budget.next(), b);
    EXPECT_EQ(budget.next(), c);
    EXPECT_EQ(budget.next(), std::nullopt);
}

TEST(ByteBudget, WhatALostShardsHandlerKeepsStaysCountedUntilItComesBack) {
    byte_budget budget{100};
    const auto a = budget.join();
    EXPECT_EQ(budget.reserve(a, 80), granted{80});
    budget.leave(a);
    EXPECT_EQ(budget.in_use(), 80U);
    budget.give_back(a, 80);
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(ByteBudget, AMemberThatLeavesIsNoLongerServed) {
    byte_budget budget{100};
    const auto a = budget.join();
    const auto b = budget.join();
    EXPECT_EQ(budget.reserve(a, 100), granted{100});
    EXPECT_EQ(budget.reserve(b, 100), std::nullopt);
    budget.leave(b);
    budget.give_back(a, 100);
    EXPECT_EQ(budget.next(), std::nullopt);
}

RC_GTEST_PROP(ByteBudgetProperty, NeverGrantsBeyondTheLimitAndAlwaysLetsAnEmptyHandedShardRead, ()) {
    const std::size_t limit = 1000;
    byte_budget budget{limit};
    const auto count = *rc::gen::inRange<std::size_t>(1, 6);
    std::vector<byte_budget::member> members;
    for (std::size_t i = 0; i < count; ++i)
        members.push_back(budget.join());
    std::map<byte_budget::member, std::size_t> held;
    for (int i = *rc::gen::inRange(0, 60); i > 0; --i) {
        const auto who = members[*rc::gen::inRange<std::size_t>(0, count)];
        const auto bytes = *rc::gen::inRange<std::size_t>(1, 400);
        if (*rc::gen::arbitrary<bool>()) {
            const auto got = budget.reserve(who, bytes);
            RC_ASSERT(got || held[who] > 0);
            if (got) held[who] += *got;
        } else {
            const auto back = std::min(bytes, held[who]);
            budget.give_back(who, back);
            held[who] -= back;
        }
        std::size_t sum = 0;
        for (const auto& [m, h] : held)
            sum += h;
        RC_ASSERT(budget.in_use() == sum);
        RC_ASSERT(sum <= limit);
    }
}

}  // namespace
}  // namespace millrace
