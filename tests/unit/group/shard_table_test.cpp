#include "group/shard_table.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

const shard_id s{"s"};

shard_row row_of(std::string owner, std::uint64_t e, std::uint64_t v) {
    shard_row row;
    row.shard = s;
    row.owner = incarnation{std::move(owner)};
    row.epoch = epoch{e};
    row.version = version{v};
    return row;
}

TEST(ShardTable, AnAbsentOwnerOnlyCountsInAListingBegunAfterTheRowWasSeen) {
    shard_table table;
    table.put(row_of("just registered", 1, 1), 10);
    // Begun before its owner registered: it proves nothing.
    EXPECT_FALSE(table.takeable(s, {9, {}}));
    EXPECT_TRUE(table.takeable(s, {10, {}}));
    EXPECT_FALSE(table.takeable(s, {11, {incarnation{"just registered"}}}));
    // The next owner must be proved absent anew; a checkpoint of the same one need not.
    table.put(row_of("just registered", 1, 2), 12);
    EXPECT_TRUE(table.takeable(s, {11, {}}));
    table.put(row_of("another", 2, 3), 13);
    EXPECT_FALSE(table.takeable(s, {11, {}}));
}

TEST(ShardTable, AFreeShardIsTakeableAndAFinishedOneNever) {
    shard_table table;
    table.put(row_of("", 1, 1), 1);
    EXPECT_TRUE(table.takeable(s, {}));
    auto finished = row_of("", 1, 2);
    finished.finished_at = wall_time{milliseconds{1}};
    table.put(finished, 2);
    EXPECT_FALSE(table.takeable(s, {9, {}}));
}

TEST(ShardTable, AnOlderReplyDoesNotReplaceANewerRow) {
    shard_table table;
    EXPECT_TRUE(table.put(row_of("b", 2, 7), 1));
    EXPECT_FALSE(table.put(row_of("a", 2, 6), 2));
    EXPECT_EQ(table.find(s)->owner, incarnation{"b"});
    // Deleted and created anew: the epoch tells, whatever the version.
    EXPECT_TRUE(table.put(row_of("c", 3, 1), 3));
    EXPECT_EQ(table.highest_epoch(), epoch{3});
}

TEST(ShardTable, AYoungerListingShowsARowThatWasMadeAnewWithALowerVersion) {
    shard_table table;
    shard_row old;
    old.shard = shard_id{"s"};
    old.epoch = epoch{1};
    old.version = version{900};
    old.owner = incarnation{"dead"};
    table.put(old, 5);
    auto anew = old;
    anew.version = version{100};
    anew.owner = incarnation{};
    table.merge({anew}, 5, 7, {});
    EXPECT_EQ(*table.find(old.shard), old) << "begun before the row was seen";
    table.merge({anew}, 8, 9, {});
    EXPECT_EQ(*table.find(old.shard), anew);
}

TEST(ShardTable, ARowMissingFromACompleteListingIsForgottenUnlessItIsNewerOrHeld) {
    shard_table table;
    table.put(row_of("", 1, 1), 5);
    table.merge({}, 4, 6, {});
    EXPECT_NE(table.find(s), nullptr);
    table.merge({}, 6, 7, {s});
    EXPECT_NE(table.find(s), nullptr);
    table.merge({}, 7, 8, {});
    EXPECT_EQ(table.find(s), nullptr);
    EXPECT_EQ(table.highest_epoch(), epoch{1});
}

}  // namespace
}  // namespace millrace
