#include "contract/record_source_contract.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace millrace::test {

// Instantiated where an implementation joins.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordSourceContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullRecordSourceContract);

std::string RecordSourceContract::text(const read_reply& reply) {
    std::string text;
    for (const auto& r : reply.records->records())
        text.append(r.data ? std::string(*r.data) : "-").append(" ");
    return text;
}

RecordSourceContract::everything RecordSourceContract::read_all(
    const shard_id& shard, read_cursor cursor, read_limits limits
) {
    everything all;
    for (int quiet = 0; quiet < 2;) {
        const auto reply = read(shard, cursor, limits);
        EXPECT_TRUE(reply) << reply.error().detail;
        if (!reply) break;
        EXPECT_NE(reply->records, nullptr);
        all.data += text(*reply);
        for (const auto& r : reply->records->records())
            all.positions.push_back(r.position);
        quiet = reply->records->records().empty() ? quiet + 1 : 0;
        all.next = reply->next;
        all.ended = !reply->next;
        if (all.ended) break;
        cursor = *reply->next;
    }
    return all;
}

std::string RecordSourceContract::key_for(const shard_id& shard) {
    for (int i = 0;; ++i) {
        const auto key = "key-" + std::to_string(i);
        const auto cursor = open(shard, from::latest{}).value();
        append(key, "probe of a key");
        const auto reply = read(shard, cursor);
        if (!reply) throw std::runtime_error(reply.error().detail);
        if (!reply->records->records().empty()) return key;
    }
}

TEST_P(RecordSourceContract, ListsAllShardsWithTheirHashesAndAnIdentityThatStays) {
    const auto listing = list().value();
    EXPECT_FALSE(listing.identity.empty());
    ASSERT_EQ(listing.shards.size(), 2U);
    EXPECT_EQ(listing.shards[0].hash_from, "0");
    EXPECT_EQ(listing.shards[1].hash_to, "340282366920938463463374607431768211455");
    for (const auto& shard : listing.shards) {
        EXPECT_TRUE(shard.parents.empty());
        EXPECT_FALSE(shard.closed);
    }
    world->split(first);
    EXPECT_EQ(list()->identity, listing.identity);
}

TEST_P(RecordSourceContract, GivesRecordsOfAShardInOrderWithGrowingPositions) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    for (const auto* data : {"a", "b", "c"})
        append(key, data);
    const auto all = read_all(first, cursor);
    EXPECT_EQ(all.data, "a b c ");
    for (std::size_t i = 1; i < all.positions.size(); ++i)
        EXPECT_LT(all.positions[i - 1], all.positions[i]);
    EXPECT_FALSE(all.ended);
}

TEST_P(RecordSourceContract, KeepsOneKeyInOneShard) {
    const auto key = key_for(second);
    for (int i = 0; i < 5; ++i)
        append(key, "x");
    const auto all = read_all(second, open(second).value());
    EXPECT_GE(all.positions.size(), 5U);
    EXPECT_EQ(read_all(first, open(first).value()).data.find('x'), std::string::npos);
}

TEST_P(RecordSourceContract, KeepsAnyBytesOfData) {
    const auto key = key_for(first);
    const std::string bytes("\0\xff\n", 3);
    const auto cursor = open(first, from::latest{}).value();
    append(key, bytes);
    append(key, "");
    const auto reply = read(first, cursor).value();
    ASSERT_EQ(reply.records->records().size(), 2U);
    EXPECT_EQ(reply.records->records()[0].key, key);
    EXPECT_EQ(reply.records->records()[0].data, bytes);
    EXPECT_EQ(reply.records->records()[1].data, "");
}

TEST_P(FullRecordSourceContract, KeepsHeadersAndTellsAbsentFromEmpty) {
    const std::string bytes("\0\xff\n", 3);
    const std::vector<header> headers{{"h", bytes}, {"", ""}, {"none", std::nullopt}};
    std::map<shard_id, read_cursor> cursors{
        {first, open(first, from::latest{}).value()}, {second, open(second, from::latest{}).value()}};
    world->append(bytes, bytes, headers);
    world->append("", "", {});
    world->append(std::nullopt, std::nullopt, {});

    std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>> seen;
    for (const auto& [shard, cursor] : cursors) {
        const auto reply = read(shard, cursor).value();
        for (const auto& r : reply.records->records()) {
            seen.emplace_back(r.key, r.data);
            if (r.key != bytes) continue;
            ASSERT_EQ(r.headers.size(), 3U);
            EXPECT_EQ(r.headers[0], (record_header{"h", bytes}));
            EXPECT_EQ(r.headers[1], (record_header{"", ""}));
            EXPECT_EQ(r.headers[2], (record_header{"none", std::nullopt}));
        }
    }
    std::ranges::sort(seen);
    using pair = decltype(seen)::value_type;
    EXPECT_EQ(seen, (decltype(seen){pair{std::nullopt, std::nullopt}, pair{"", ""}, pair{bytes, bytes}}));
}

TEST_P(RecordSourceContract, ReadsAnEmptyShardWithoutEnding) {
    const auto reply = read(first, open(first).value()).value();
    EXPECT_TRUE(reply.records->records().empty());
    EXPECT_TRUE(reply.next);
    EXPECT_EQ(reply.behind, milliseconds{0});
    EXPECT_EQ(reply.records->shard(), first);
}

TEST_P(RecordSourceContract, ContinuesWhereTheLastReadEnded) {
    const auto key = key_for(first);
    auto all = read_all(first, open(first, from::latest{}).value());
    append(key, "later");
    all = read_all(first, *all.next);
    EXPECT_EQ(all.data, "later ");
}

TEST_P(RecordSourceContract, ReturnsAtMostTheRecordsAskedFor) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    for (int i = 0; i < 5; ++i)
        append(key, std::to_string(i));
    const auto reply = read(first, cursor, {.records_max = 2}).value();
    EXPECT_EQ(text(reply), "0 1 ");
    EXPECT_EQ(read_all(first, *reply.next, {.records_max = 2}).data, "2 3 4 ");
}

TEST_P(FullRecordSourceContract, ReturnsAtMostTheBytesAskedForButOneRecordAlways) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    for (const auto* data : {"a", "b"})
        append(key, std::string(10'000, *data));
    const auto small = read(first, cursor, {.bytes_max = 100}).value();
    ASSERT_EQ(small.records->records().size(), 1U);
    EXPECT_EQ(small.records->records()[0].data, std::string(10'000, 'a'));
    ASSERT_TRUE(small.next);
    EXPECT_EQ(read(first, *small.next, {.bytes_max = 100})->records->records().size(), 1U);
    EXPECT_EQ(read(first, cursor, {.bytes_max = 15'000})->records->records().size(), 1U);
    EXPECT_EQ(read(first, cursor, {.bytes_max = 30'000})->records->records().size(), 2U);
}

TEST_P(RecordSourceContract, TellsHowFarItLiesBehindAndZeroAtTheTip) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    append(key, "old");
    world->pass(milliseconds{500});
    append(key, "new");
    const auto reply = read(first, cursor, {.records_max = 1}).value();
    EXPECT_GT(reply.behind, milliseconds{0});
    EXPECT_EQ(read(first, *reply.next)->behind, milliseconds{0});
}

TEST_P(RecordSourceContract, StartsAfterAPosition) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    for (const auto* data : {"a", "b", "c"})
        append(key, data);
    const auto positions = read_all(first, cursor).positions;
    ASSERT_EQ(positions.size(), 3U);
    EXPECT_EQ(read_all(first, open(first, from::after{positions[0]}).value()).data, "b c ");
    EXPECT_EQ(read_all(first, open(first, from::after{positions[2]}).value()).data, "");
}

TEST_P(RecordSourceContract, StartsAtTheLatestWithWhatComesLater) {
    const auto key = key_for(first);
    append(key, "before");
    const auto cursor = open(first, from::latest{}).value();
    append(key, "after");
    EXPECT_EQ(read_all(first, cursor).data, "after ");
}

TEST_P(RecordSourceContract, StartsWithTheFirstRecordThatArrivedAtOrAfterAMoment) {
    const auto key = key_for(first);
    append(key, "early");
    world->pass(milliseconds{1'000});
    const auto moment = list()->now;
    EXPECT_EQ(read_all(first, open(first, from::timestamp{moment}).value()).data, "");
    append(key, "at");
    world->pass(milliseconds{1'000});
    append(key, "late");
    const auto both = open(first, from::timestamp{moment}).value();
    EXPECT_EQ(read_all(first, both).data, "at late ");
    const auto arrival = read(first, both)->records->records()[0].arrival;
    EXPECT_EQ(read_all(first, open(first, from::timestamp{arrival}).value()).data, "at late ");
    const auto later = open(first, from::timestamp{arrival + milliseconds{1}}).value();
    EXPECT_EQ(read_all(first, later).data, "late ");
    EXPECT_EQ(read_all(first, open(first, from::timestamp{wall_time{}}).value()).data, read_all(first).data);
}

TEST_P(RecordSourceContract, GivesArrivalTimesByItsOwnClock) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    const auto before = list()->now;
    append(key, "x");
    const auto after = list()->now + world->clock_step();
    const auto reply = read(first, cursor).value();
    ASSERT_EQ(reply.records->records().size(), 1U);
    EXPECT_LE(before, reply.records->records()[0].arrival);
    EXPECT_GE(after, reply.records->records()[0].arrival);
}

TEST_P(RecordSourceContract, EndsAClosedShardOnlyAfterItsLastRecord) {
    const auto key = key_for(first);
    const auto cursor = open(first, from::latest{}).value();
    append(key, "a");
    append(key, "b");
    world->split(first);
    const auto one = read(first, cursor, {.records_max = 1}).value();
    EXPECT_EQ(text(one), "a ");
    ASSERT_TRUE(one.next) << "a record is left";
    const auto rest = read_all(first, *one.next);
    EXPECT_EQ(rest.data, "b ");
    EXPECT_TRUE(rest.ended);
}

TEST_P(RecordSourceContract, EndsAClosedShardThatWasNeverWritten) {
    world->split(second);
    const auto all = read_all(second);
    EXPECT_TRUE(all.ended);
    EXPECT_TRUE(read_all(second, open(second, from::latest{}).value()).ended);
}

TEST_P(RecordSourceContract, ASplitMakesTwoChildrenWhoseRecordsAreNewer) {
    const auto key = key_for(first);
    append(key, "parent");
    world->split(first);
    append(key, "child");
    const auto listing = list().value();
    ASSERT_EQ(listing.shards.size(), 4U);
    std::string of_children;
    for (const auto& shard : listing.shards) {
        if (shard.parents.empty()) continue;
        EXPECT_EQ(shard.parents, std::vector{first});
        EXPECT_FALSE(shard.closed);
        const auto all = read_all(shard.shard);
        of_children += all.data;
        for (const auto& p : all.positions)
            EXPECT_GT(p, read_all(first).positions.back());
    }
    EXPECT_EQ(of_children, "child ");
    EXPECT_TRUE(std::ranges::find(listing.shards, first, &listed_shard::shard)->closed);
}

TEST_P(RecordSourceContract, AMergeMakesOneChildOfTwoParents) {
    const auto one = key_for(first);
    const auto two = key_for(second);
    world->merge(first, second);
    append(one, "1");
    append(two, "2");
    const auto listing = list().value();
    ASSERT_EQ(listing.shards.size(), 3U);
    const auto child = std::ranges::find_if(listing.shards, [](const auto& s) { return !s.parents.empty(); });
    const std::set<shard_id> parents(child->parents.begin(), child->parents.end());
    EXPECT_EQ(parents, (std::set{first, second}));
    EXPECT_EQ(child->hash_from, "0");
    EXPECT_EQ(child->hash_to, "340282366920938463463374607431768211455");
    EXPECT_EQ(read_all(child->shard).data, "1 2 ");
    EXPECT_TRUE(read_all(first).ended);
    EXPECT_TRUE(read_all(second).ended);
}

TEST_P(FullRecordSourceContract, SaysThatAPositionWasTrimmedOnlyWhenRecordsAfterItAreGone) {
    const auto key = key_for(first);
    for (const auto* data : {"a", "b", "c"})
        append(key, data);
    const auto before = read_all(first);
    const auto count = before.positions.size();
    world->trim(first, count - 1);
    const auto gap = open(first, from::after{before.positions[count - 3]});
    ASSERT_FALSE(gap);
    EXPECT_EQ(gap.error().code, errc::position_trimmed);
    EXPECT_EQ(read_all(first, open(first, from::after{before.positions[count - 2]}).value()).data, "c ");
    EXPECT_EQ(read_all(first, open(first).value()).data, "c ");
    EXPECT_EQ(read_all(first, open(first, from::timestamp{wall_time{}}).value()).data, "c ");
}

TEST_P(FullRecordSourceContract, NeverGivesATrimmedRecordToAnOldCursor) {
    const auto key = key_for(first);
    for (const auto* data : {"a", "b", "c"})
        append(key, data);
    const auto cursor = open(first).value();
    world->trim(first, read_all(first).positions.size() - 1);
    const auto reply = read(first, cursor);
    if (reply) {
        EXPECT_EQ(text(*reply), "c ");
    } else {
        EXPECT_EQ(reply.error().code, errc::position_trimmed);
    }
}

TEST_P(RecordSourceContract, SaysWhichShardDoesNotExist) {
    const shard_id unknown{"shardId-000000004711"};
    const auto opened = open(unknown);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, errc::not_found);
    EXPECT_NE(opened.error().detail.find(unknown.value()), std::string::npos);
    EXPECT_EQ(read(unknown, open(first).value()).error().code, errc::not_found);
}

TEST_P(RecordSourceContract, RefusesACursorThatItNeverGave) {
    for (const auto* text : {"", "x", "-1", "12 "})
        EXPECT_FALSE(read(first, read_cursor{text})) << text;
}

TEST_P(FullRecordSourceContract, WatchTellsOfNewRecordsUntilItIsEnded) {
    int told = 0;
    (void)list();  // so that the source is open
    source.watch([&told] { ++told; });
    (void)list();
    append("k", "v");
    EXPECT_TRUE(world->run_until([&] { return told > 0; }));
    source.watch({});
    told = 0;
    append("k", "v");
    (void)list();
    // Where the source looks for itself, it does so every 10 ms.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{50};
    (void)world->run_until([&] { return told > 0 || std::chrono::steady_clock::now() >= end; });
    EXPECT_EQ(told, 0);
}

TEST_P(RecordSourceContract, CompletesManyRequestsEachOnceAndNeverInsideTheCall) {
    const auto cursor = open(first).value();
    std::vector<int> completions(20, 0);
    for (std::size_t i = 0; i < completions.size(); ++i)
        source.read(first, cursor, {}, [&completions, i](const auto&) { ++completions[i]; });
    EXPECT_EQ(std::ranges::count(completions, 0), 20);
    EXPECT_TRUE(world->run_until([&] { return std::ranges::count(completions, 0) == 0; }));
    EXPECT_EQ(std::ranges::count(completions, 1), 20);
}

}  // namespace millrace::test
