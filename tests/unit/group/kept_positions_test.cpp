#include "group/kept_positions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using testing::HasSubstr;

const std::string sequence = "49590338271490256608559692538361571095921575989136588898";

TEST(KeptPositions, StandUnderTheNamesThatGosolineAndHarlowMake) {
    EXPECT_EQ(kept_under(kept_by::gosoline, "shop-billing", "orders"), "checkpoint:shop-billing:orders");
    EXPECT_EQ(kept_under(kept_by::harlow, "billing", "orders"), "billing-orders");
    EXPECT_EQ(kept_by_from("gosoline"), kept_by::gosoline);
    EXPECT_EQ(kept_by_from("harlow"), kept_by::harlow);
    EXPECT_FALSE(kept_by_from("kcl"));
}

TEST(KeptPositions, BecomePositionsAndEndsOfShards) {
    const kept_row rows[] = {
        {"s0", sequence, ""}, {"s1", sequence, "2026-01-02T03:04:05Z"}, {"s2", "", "2026-01-02T03:04:05Z"}};
    const auto read = read_kept(rows, "app", "table");
    ASSERT_TRUE(read);
    ASSERT_EQ(read->size(), 3U);
    const position reached{*sequence_number::parse(sequence), 0};
    EXPECT_EQ((*read)[0], (imported_shard{0, shard_id{"s0"}, reached, false}));
    EXPECT_EQ((*read)[1], (imported_shard{0, shard_id{"s1"}, reached, true}));
    EXPECT_EQ((*read)[2], (imported_shard{0, shard_id{"s2"}, std::nullopt, true}));
}

TEST(KeptPositions, AShardThatWasTakenAndNeverMovedIsLeftOut) {
    const kept_row rows[] = {{"s0", "", ""}, {"s1", sequence, ""}};
    const auto read = read_kept(rows, "app", "table");
    ASSERT_TRUE(read);
    ASSERT_EQ(read->size(), 1U);
    EXPECT_EQ(read->front().shard, shard_id{"s1"});
}

TEST(KeptPositions, NothingUnderTheNameIsToldWithTheName) {
    const auto none = read_kept({}, "checkpoint:shop:orders", "dynamodb://eu-west-1/t");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, errc::not_found);
    EXPECT_THAT(
        none.error().detail, HasSubstr("dynamodb://eu-west-1/t has no row under \"checkpoint:shop:orders\"")
    );
    const kept_row never_moved[] = {{"s0", "", ""}};
    EXPECT_THAT(
        read_kept(never_moved, "app", "t").error().detail, HasSubstr("t has no position under \"app\"")
    );
}

TEST(KeptPositions, ADamagedRowIsRefusedWithItsShard) {
    const kept_row no_number[] = {{"s0", "LATEST", ""}};
    EXPECT_THAT(
        read_kept(no_number, "app", "t").error().detail, HasSubstr("shard \"s0\" has a position that")
    );
    const kept_row no_shard[] = {{"", sequence, ""}};
    EXPECT_EQ(read_kept(no_shard, "app", "t").error().code, errc::corrupt);
}

}  // namespace
}  // namespace millrace
