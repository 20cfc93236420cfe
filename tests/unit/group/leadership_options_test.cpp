#include "group/options.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

leadership_options by_group() {
    leadership_options options;
    options.by = leadership_way::kafka_group;
    options.group = "shop-reaper";
    return options;
}

std::string fault(const leadership_options& options) {
    const auto valid = options.validate();
    if (valid) return "none";
    EXPECT_EQ(valid.error().code, errc::invalid_config);
    return valid.error().detail;
}

TEST(LeadershipOptions, DefaultsAreValid) {
    EXPECT_TRUE(leadership_options{}.validate());
    EXPECT_TRUE(by_group().validate());
}

TEST(LeadershipOptions, NameTheOptionThatIsWrongAndItsLimit) {
    leadership_options lease;
    lease.yield_after = 10ms;
    EXPECT_NE(fault(lease).find("yield_after is 0.01 s; it must be 1 s to 3600 s"), std::string::npos);

    auto group = by_group();
    group.group = "";
    EXPECT_NE(fault(group).find("group"), std::string::npos);
    group = by_group();
    group.topic = "a b";
    EXPECT_NE(fault(group).find("topic is \"a b\""), std::string::npos);
    group = by_group();
    group.name = "a%b";
    EXPECT_NE(fault(group).find("%"), std::string::npos);
    group = by_group();
    group.heartbeat_timeout = 100ms;
    EXPECT_NE(fault(group).find("heartbeat_timeout"), std::string::npos);
}

TEST(LeadershipOptions, AnInternalTopicOfTheBrokersIsRefused) {
    auto group = by_group();
    group.topic = "__consumer_offsets";
    EXPECT_NE(fault(group).find("__consumer_offsets"), std::string::npos);
}

TEST(LeadershipOptions, WhatOnlyTheGroupProtocolUsesIsNotCheckedWithALease) {
    leadership_options lease;
    lease.heartbeat_timeout = 1ms;
    EXPECT_TRUE(lease.validate());
}

}  // namespace
}  // namespace millrace
