#include "support/delivery_check.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

std::string line(int number, const std::string& key, int sequence, const std::string& worker = "a") {
    return R"({"stream":"s","shard":"0","sequence":")" + std::to_string(sequence) +
           R"(","sub_sequence":0,"key":")" + key + R"(","data":"x","headers":[["event-number",")" +
           std::to_string(number) + R"("]],"worker":")" + worker + R"(","epoch":1})";
}

TEST(DeliveryCheck, IsCleanWhenEverythingComesOnceAndInOrder) {
    delivery_check check;
    for (const int n : {1, 2, 3})
        check.written(static_cast<std::uint64_t>(n));
    EXPECT_EQ(check.delivered(line(1, "k", 10)), 1U);
    EXPECT_EQ(check.delivered(line(3, "other", 11)), 3U);
    EXPECT_EQ(check.delivered(line(2, "k", 12)), 2U);
    const auto report = check.report();
    EXPECT_TRUE(report.clean());
    EXPECT_EQ(report.delivered, 3U);
}

TEST(DeliveryCheck, CountsWhatIsMissing) {
    delivery_check check;
    check.written(1);
    check.written(2);
    check.delivered(line(2, "k", 10));
    EXPECT_EQ(check.report().lost, 1U);
    EXPECT_EQ(check.missing(5), std::vector<std::uint64_t>{1});
}

TEST(DeliveryCheck, CountsAFirstDeliveryBehindALaterOneOfItsKey) {
    delivery_check check;
    check.written(1);
    check.written(2);
    check.delivered(line(2, "k", 10));
    check.delivered(line(1, "k", 11));
    EXPECT_EQ(check.report().out_of_order, 1U);
}

TEST(DeliveryCheck, TellsTheRelaysDuplicatesFromTheConsumers) {
    delivery_check check;
    check.written(1);
    check.delivered(line(1, "k", 10));
    check.delivered(line(1, "k", 10));
    check.delivered(line(1, "k", 11));
    const auto report = check.report();
    EXPECT_EQ(report.handed_twice, 1U);
    EXPECT_EQ(report.published_twice, 1U);
    EXPECT_TRUE(report.clean());
}

TEST(DeliveryCheck, CountsBrokenLinesAndStrangers) {
    delivery_check check;
    check.delivered(R"({"stream":"s","sh)");
    check.delivered(R"({"stream":"s","headers":[]})");
    check.delivered(line(9, "k", 1));
    const auto report = check.report();
    EXPECT_EQ(report.broken_lines, 1U);
    EXPECT_EQ(report.unknown, 2U);
}

}  // namespace
}  // namespace millrace::support
