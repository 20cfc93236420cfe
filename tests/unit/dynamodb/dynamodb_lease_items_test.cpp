#include "lease_items.hpp"

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::lease_items {
namespace {

using namespace std::chrono_literals;
using aws::dynamodb::number;
using aws::dynamodb::value;

const group_key group{"s", "g"};

item written(const lease_row& row, std::optional<version> expected = {}) {
    auto made = update_of(group, row, expected, wall_time{0ms});
    made.set.merge(made.key);
    return made.set;
}

shard_row full_shard() {
    shard_row row;
    row.shard = shard_id{"shard/1"};
    row.parents = {shard_id{"a"}, shard_id{""}};
    row.owner = incarnation{"i"};
    row.epoch = epoch{7};
    row.version = version{8};
    row.write_id = write_id{std::numeric_limits<std::uint64_t>::max()};
    row.checkpoint = checkpoint{{sequence_number::parse(std::string(129, '9')).value(), 3}, wall_time{5ms}};
    row.finished_at = wall_time{6ms};
    row.updated_at = wall_time{7ms};
    return row;
}

std::string sort_of(const item& key) {
    return std::get<std::string>(key.at("sk").is);
}

TEST(DynamodbLeaseItems, GroupsWithOddNamesShareNoPartition) {
    const std::vector<std::pair<group_key, group_key>> alike{
        {{"a-b", "c"}, {"a", "b-c"}},
        {{"a/b", "c"}, {"a", "b/c"}},
        {{"a%2Fb", "c"}, {"a/b", "c"}},
        {{"", "a/b"}, {"/a", "b"}},
        {{"a", ""}, {"", "a"}},
        {{"arn:aws:kinesis:r:1:stream/x", "g"}, {"arn:aws:kinesis:r:1:stream", "x/g"}}};
    for (const auto& [one, other] : alike) {
        EXPECT_NE(workers_of(one), workers_of(other));
        EXPECT_NE(shards_of(one), shards_of(other));
        EXPECT_NE(key_of(one, std::monostate{}), key_of(other, std::monostate{}));
    }
    EXPECT_NE(workers_of({"a", "b"}), shards_of({"a", "b"}));
    EXPECT_EQ(workers_of({"stream", "group"}), "workers/stream/group") << "people read it";
    EXPECT_EQ(group_name_of(key_of({"a/b", "c/d%"}, std::monostate{})), "c/d%");
}

TEST(DynamodbLeaseItems, AnEmptyNameHasAKeyThatIsNot) {
    EXPECT_EQ(sort_of(key_of(group, shard_id{""})), "shard/");
    EXPECT_EQ(sort_of(key_of(group, incarnation{"i"})), "worker/i");
}

TEST(DynamodbLeaseItems, EveryFieldComesBack) {
    const auto shard = full_shard();
    EXPECT_EQ(read_shard(written(shard), "t"), shard);
    worker_row worker{
        worker_id{"w"},
        incarnation{"i"},
        version{3},
        write_id{4},
        10s,
        5,
        {"h", "b", "n", -6, 7},
        wall_time{8ms}};
    EXPECT_EQ(read_worker(written(worker), "t"), worker);
    group_row own;
    own.version = version{2};
    own.stream_identity = "x";
    own.start = start_policy::at_timestamp;
    own.start_at = wall_time{9ms};
    EXPECT_EQ(read_group(written(own), "t"), own);
}

TEST(DynamodbLeaseItems, WhatIsEmptyIsRemovedFromARowThatIsThere) {
    auto row = full_shard();
    row.parents.clear();
    row.owner = incarnation{};
    row.checkpoint.reset();
    row.finished_at.reset();
    const auto made = update_of(group, row, version{7}, wall_time{0ms});
    EXPECT_EQ(
        made.remove,
        (std::vector<std::string>{"parents", "owner", "sequence", "sub_sequence", "arrival", "finished_at"})
    );
    EXPECT_TRUE(update_of(group, row, std::nullopt, wall_time{0ms}).remove.empty());
    EXPECT_EQ(read_shard(written(row), "t"), row);
}

TEST(DynamodbLeaseItems, WritesComparesTheVersionOrThatNothingIsThere) {
    const auto wanted = [](const aws::dynamodb::condition& c) { return std::get<aws::dynamodb::equals>(c); };
    const auto replaced = update_of(group, full_shard(), version{7}, wall_time{0ms});
    EXPECT_EQ(wanted(replaced.only_if).attribute, "version");
    EXPECT_EQ(wanted(replaced.only_if).wanted, value{number{"7"}});
    worker_row worker;
    worker.counter = version{2};
    EXPECT_EQ(wanted(update_of(group, worker, version{1}, wall_time{0ms}).only_if).attribute, "counter");
    const auto created = update_of(group, worker, std::nullopt, wall_time{0ms});
    EXPECT_EQ(std::get<aws::dynamodb::absent>(created.only_if).attribute, "pk");
}

TEST(DynamodbLeaseItems, OnlyWorkersExpireAndNotBeforeAWeekBehindTheirLastHeartbeat) {
    worker_row worker;
    const auto made = update_of(group, worker, version{1}, wall_time{1'000'000'000'999ms});
    EXPECT_EQ(made.set.at("expires_at"), value{number{std::to_string(1'000'000'000 + 7 * 24 * 3600)}});
    EXPECT_FALSE(update_of(group, full_shard(), version{7}, wall_time{0ms}).set.contains("expires_at"));
    EXPECT_FALSE(update_of(group, group_row{}, version{7}, wall_time{0ms}).set.contains("expires_at"));
}

TEST(DynamodbLeaseItems, TellsItsOwnWriteById) {
    EXPECT_TRUE(written_by(written(full_shard()), full_shard().write_id));
    EXPECT_FALSE(written_by(written(full_shard()), write_id{1}));
    EXPECT_FALSE(written_by({}, write_id{0}));
}

TEST(DynamodbLeaseItems, ReadsPastAttributesOfLaterVersions) {
    auto extended = written(full_shard());
    extended.insert({"later", value{aws::dynamodb::foreign{}}});
    EXPECT_EQ(read_shard(extended, "t"), full_shard());
}

TEST(DynamodbLeaseItems, NamesTheAttributeThatIsNotAsMillraceWritesIt) {
    const auto broken_by = [](const std::string& attribute, std::optional<value> held) {
        auto damaged = written(full_shard());
        damaged.erase(attribute);
        if (held) damaged.insert({attribute, *held});
        const auto refused = read_shard(damaged, "table \"t\"");
        ASSERT_FALSE(refused) << attribute;
        EXPECT_EQ(refused.error().code, errc::corrupt);
        EXPECT_NE(refused.error().detail.find("attribute " + attribute), std::string::npos)
            << refused.error().detail;
        EXPECT_NE(refused.error().detail.find("table \"t\""), std::string::npos);
    };
    broken_by("version", std::nullopt);
    broken_by("epoch", value{number{"-1"}});
    broken_by("epoch", value{"7"});
    broken_by("write_id", value{number{"18446744073709551616"}});
    broken_by("sequence", value{"twelve"});
    broken_by("sub_sequence", std::nullopt);
    broken_by("arrival", std::nullopt);
    broken_by("parents", value{"a"});
    broken_by("parents", value{aws::dynamodb::list{value{number{"1"}}}});
    broken_by("owner", value{true});
    broken_by("finished_at", value{"now"});
    auto elsewhere = written(full_shard());
    elsewhere.at("sk") = value{"worker/i"};
    EXPECT_NE(read_shard(elsewhere, "t").error().detail.find("attribute shard"), std::string::npos);
    group_row own;
    auto odd = written(own);
    odd.at("start") = value{"somewhere"};
    EXPECT_NE(read_group(odd, "t").error().detail.find("attribute start"), std::string::npos);
}

}  // namespace
}  // namespace millrace::lease_items
