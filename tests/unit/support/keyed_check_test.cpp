#include "support/keyed_check.hpp"

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

TEST(KeyedCheck, IsCleanWhenEachLaneComesOnceAndInOrder) {
    keyed_check check;
    check.seen("t", "a", "1 xxx");
    check.seen("t", "b", "1");
    check.seen("u", "a", "1");
    check.seen("t", "a", "2");
    check.committed("t", "a", 2);
    check.committed("t", "b", 1);
    check.committed("u", "a", 1);
    check.committed("u", "b", 0);
    const auto report = check.report();
    EXPECT_TRUE(report.clean()) << report.first_fault;
    EXPECT_EQ(report.delivered, 4U);
    EXPECT_EQ(report.twice, 0U);
}

TEST(KeyedCheck, CountsWhatCameAgainAndForgivesItsPlace) {
    keyed_check check;
    for (const auto* value : {"1", "2", "3", "2", "3", "4", "1"})
        check.seen("t", "a", value);
    check.committed("t", "a", 4);
    const auto report = check.report();
    EXPECT_TRUE(report.clean()) << report.first_fault;
    EXPECT_EQ(report.twice, 3U);
    EXPECT_EQ(report.records, 7U);
}

TEST(KeyedCheck, CountsFirstDeliveriesBehindALaterOne) {
    keyed_check check;
    for (const auto* value : {"2", "3", "1", "3", "4"})
        check.seen("t", "a", value);
    check.committed("t", "a", 4);
    const auto report = check.report();
    EXPECT_EQ(report.inverted, 1U);
    EXPECT_EQ(report.first_fault, "number 1 of t/a came behind a later one");
    EXPECT_EQ(report.lost, 0U);
    EXPECT_EQ(report.twice, 1U);
}

TEST(KeyedCheck, CountsWhatIsMissingInTheMiddleAndAtTheEnd) {
    keyed_check check;
    check.seen("t", "a", "1");
    check.seen("t", "a", "3");
    check.committed("t", "a", 5);
    check.committed("t", "b", 2);
    const auto report = check.report();
    EXPECT_EQ(report.lost, 5U);
    EXPECT_EQ(report.first_fault, "number 2 of t/a is lost");
    EXPECT_EQ(report.delivered, 2U);
}

TEST(KeyedCheck, CountsWhatNobodyCommitted) {
    keyed_check check;
    for (const auto* value : {"1", "2", "4"})
        check.seen("t", "a", value);
    check.seen("t", "stranger", "1");
    check.seen("t", "a", "text");
    check.committed("t", "a", 1);
    const auto report = check.report();
    EXPECT_EQ(report.unknown, 4U);
    EXPECT_EQ(report.lost, 0U);
    EXPECT_FALSE(report.clean());
}

}  // namespace
}  // namespace millrace::support
