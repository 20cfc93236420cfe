#include "group/stream_identity.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

const std::string here = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders";

TEST(StreamIdentity, ANewerMomentInThePlaceIsAStreamMadeAnewAndAnOlderOneAnother) {
    EXPECT_EQ(relation_of(here + " of 2000", here + " of 2000"), stream_relation::same);
    EXPECT_EQ(relation_of(here + " of 2000", here + " of 2001"), stream_relation::remade);
    EXPECT_EQ(relation_of(here + " of 2000", here + " of 1999"), stream_relation::other);
    EXPECT_EQ(relation_of(here + " of 2000", here + " of 10000"), stream_relation::remade) << "numbers";
}

TEST(StreamIdentity, AnotherAccountRegionOrNameIsAnotherStreamHoweverYoung) {
    for (const auto* other :
         {"arn:aws:kinesis:eu-central-1:123456789012:stream/orders",
          "arn:aws:kinesis:eu-west-1:999999999999:stream/orders",
          "arn:aws:kinesis:eu-west-1:123456789012:stream/order",
          "arn:aws-cn:kinesis:eu-west-1:123456789012:stream/orders",
          "orders"}) {
        for (const auto* moment : {" of 1", " of 2000", " of 3000"})
            EXPECT_EQ(relation_of(here + " of 2000", other + std::string(moment)), stream_relation::other);
    }
}

TEST(StreamIdentity, AnEarlierVersionsRowKnowsTheNameOnly) {
    EXPECT_EQ(relation_of("orders of 2000", here + " of 2000"), stream_relation::same);
    EXPECT_EQ(relation_of("orders of 2000", here + " of 2001"), stream_relation::remade);
    EXPECT_EQ(relation_of("orders of 2000", here + " of 1999"), stream_relation::other);
    EXPECT_EQ(relation_of("bills of 2000", here + " of 2000"), stream_relation::other);
    EXPECT_EQ(relation_of("a/orders of 2000", here + " of 2000"), stream_relation::other);
}

TEST(StreamIdentity, WhatIsOpaqueIsTheSameOrMadeAnew) {
    EXPECT_EQ(relation_of("20-ab", "20-ab"), stream_relation::same);
    EXPECT_EQ(relation_of("20-ab", "10-cd"), stream_relation::remade);
    EXPECT_EQ(relation_of("20-ab", here + " of 1"), stream_relation::remade);
    for (const auto* odd : {" of x", " of ", " of 1 ", " of 99999999999999999999", ""})
        EXPECT_EQ(relation_of(here + " of 2", here + odd), stream_relation::remade) << odd;
}

TEST(StreamIdentity, TheRefusalNamesBothAndWhatToDo) {
    const auto why = other_stream("a of 1", "b of 2");
    EXPECT_EQ(why.retry, retry_advice::never);
    for (const auto* part : {"\"a of 1\"", "\"b of 2\"", "correct the region", "nothing was changed"})
        EXPECT_NE(why.detail.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace millrace
