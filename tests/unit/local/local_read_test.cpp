#include "local_read.hpp"

#include "local_admin.hpp"
#include "local_schema.hpp"
#include "support/temporary_folder.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

struct LocalRead : testing::Test {
    LocalRead() { EXPECT_TRUE(admin.create_stream("orders", 1)); }

    void put(int count) {
        const event one{.topic = "orders", .key = "k", .value = "v"};
        ASSERT_TRUE(admin.put("orders", std::vector<event>(static_cast<std::size_t>(count), one)));
    }
    result<read_cursor> open(const start_position& start) {
        return local::open_cursor(db, "orders", shard, start);
    }
    result<read_reply> read(std::string cursor, read_limits limits = {}) {
        return local::read_records(db, "orders", shard, read_cursor{std::move(cursor)}, limits);
    }
    static start_position after(std::uint64_t sequence) {
        return from::after{{sequence_number{sequence}, 0}};
    }

    support::temporary_folder directory;
    std::string file{directory.file("streams.db")};
    wall_time now{1'700'000'000'000ms};
    const local_clock clock{[this] { return now; }};
    local_admin admin{local_admin::open_or_create(file, {.clock = clock}).value()};
    sqlite::database db{sqlite::database::open(file, {.busy_timeout = 20ms}).value()};
    const shard_id shard{"shardId-000000000000"};
};

TEST_F(LocalRead, ACursorIsTheNextNumber) {
    put(5);
    EXPECT_EQ(open(from::trim_horizon{})->value(), "1");
    EXPECT_EQ(open(after(3))->value(), "4");
    EXPECT_EQ(open(from::latest{})->value(), "6");
    EXPECT_EQ(read("4")->next->value(), "6");
}

TEST_F(LocalRead, RefusesACursorBeyondWhatTheFileCanCount) {
    put(5);
    EXPECT_TRUE(read("9223372036854775807"));
    for (const auto* const cursor : {"9223372036854775808", "18446744073709551615"}) {
        const auto reply = read(cursor);
        ASSERT_FALSE(reply) << cursor;
        EXPECT_EQ(reply.error().code, errc::invalid_argument);
    }
}

TEST_F(LocalRead, RefusesAPositionThatTheStreamNeverGave) {
    put(5);
    EXPECT_TRUE(open(after(5)));
    const auto huge = from::after{{sequence_number::parse(std::string(40, '9')).value(), 0}};
    for (const auto& start : {after(6), start_position(huge)}) {
        const auto opened = open(start);
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, errc::invalid_argument);
        EXPECT_THAT(opened.error().detail, HasSubstr("whose next number is 6"));
    }
}

TEST_F(LocalRead, ReportsWhatWasTrimmedUnderACursor) {
    put(5);
    ASSERT_TRUE(admin.trim("orders", {.through_sequence = 3}));
    const auto reply = read("2");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, errc::position_trimmed);
    EXPECT_THAT(reply.error().detail, HasSubstr("from sequence number 2 up to 3"));
    EXPECT_EQ(read("4")->records->records().size(), 2U);
}

TEST_F(LocalRead, FindsTheFirstRecordSinceAMomentAmongMany) {
    for (int i = 0; i < 50; ++i) {
        put(1 + i % 3);
        now += 10ms;
    }
    const auto all = read("1")->records;
    for (const auto& expected : all->records()) {
        const auto cursor = open(from::timestamp{expected.arrival}).value();
        const auto found = read(cursor.value())->records;
        EXPECT_EQ(found->records().front().arrival, expected.arrival);
        EXPECT_LE(found->records().front().position, expected.position);
    }
    EXPECT_EQ(open(from::timestamp{now + 1h}), open(from::latest{})) << "a moment to come";
}

TEST_F(LocalRead, FindsAMomentBehindAGapThatTrimmingLeft) {
    put(10);
    now += 1s;
    put(10);
    ASSERT_TRUE(admin.trim("orders", {.through_sequence = 4}));
    EXPECT_EQ(open(from::timestamp{now})->value(), "11");
    EXPECT_EQ(open(from::timestamp{now - 1h})->value(), "5");
    ASSERT_TRUE(admin.trim("orders", {.through_sequence = 20}));
    EXPECT_EQ(open(from::timestamp{now - 1h})->value(), "21");
}

TEST_F(LocalRead, TakesTheMomentOfAListingFromTheStreamsOwnClock) {
    put(1);
    now -= 1h;
    EXPECT_EQ(local::list_stream(db, "orders", clock)->now, now + 1h);
    now += 2h;
    EXPECT_EQ(local::list_stream(db, "orders", clock)->now, now);
}

TEST_F(LocalRead, AMomentThatCannotWaitForAWriterLeavesOutNothingThatTheWriterCommits) {
    put(1);
    auto other = sqlite::database::open(file, {}).value();
    local::routing_cache routes;
    auto writer = local::append_transaction::begin(other, routes, clock).value();
    const auto began = now;
    now += 1min;
    auto read_only = sqlite::database::open(file, {.mode = sqlite::open_mode::read_only}).value();
    for (auto* reader : {&db, &read_only}) {
        const auto moment = local::list_stream(*reader, "orders", clock)->now;
        EXPECT_LE(moment, began);
        EXPECT_EQ(open(from::timestamp{moment})->value(), "1")
            << "what arrived at that very moment comes again";
    }
    const auto moment = local::list_stream(db, "orders", clock)->now;
    ASSERT_TRUE(writer.add("orders", {"k", "slow", {}}));
    ASSERT_TRUE(writer.commit());
    const auto reply = read(open(from::timestamp{moment})->value());
    ASSERT_TRUE(reply && !reply->records->records().empty());
    EXPECT_EQ(reply->records->records().back().data, "slow");
}

TEST_F(LocalRead, ABatchThatEndsByItsLimitIsBehindEvenRecordsThatArrivedWithIt) {
    put(3);
    EXPECT_GT(read("1", {.records_max = 2})->behind, 0ms);
    EXPECT_EQ(read("3", {.records_max = 2})->behind, 0ms);
}

TEST_F(LocalRead, ListsRetentionAndIdentity) {
    ASSERT_TRUE(admin.create_stream("short", 1, 10min));
    const auto listing = local::list_stream(db, "short", clock).value();
    EXPECT_EQ(listing.retention, 10min);
    EXPECT_EQ(listing.identity, admin.describe("short")->identity);
    EXPECT_EQ(local::list_stream(db, "orders", clock)->retention, std::nullopt);
}

TEST_F(LocalRead, DamagedHeadersAreCorruptAndNamed) {
    put(2);
    ASSERT_TRUE(db.run("UPDATE millrace_stream_record SET headers = x'0000' WHERE sequence = 2"));
    const auto reply = read("1");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, errc::corrupt);
    EXPECT_THAT(reply.error().detail, HasSubstr("record 2 of shardId-000000000000"));
}

TEST_F(LocalRead, AMissingTableIsDamageAndEndsNoShard) {
    put(2);
    auto reader = local::open_streams(file, sqlite::open_mode::must_exist, 20ms).value();
    ASSERT_TRUE(local::read_records(reader, "orders", shard, read_cursor{"1"}, {}));
    for (const auto* table : {"millrace_stream_record", "millrace_stream_shard", "millrace_stream"}) {
        ASSERT_TRUE(db.execute(fmt::format("ALTER TABLE {0} RENAME TO away_{0}", table).c_str()));
        const auto reply = local::read_records(reader, "orders", shard, read_cursor{"1"}, {});
        ASSERT_FALSE(reply) << table;
        EXPECT_EQ(reply.error().code, errc::corrupt) << reply.error().detail;
        EXPECT_THAT(reply.error().detail, HasSubstr("restore it from a backup"));
        const auto anew = local::open_streams(file, sqlite::open_mode::must_exist, 20ms);
        ASSERT_FALSE(anew) << table;
        EXPECT_EQ(anew.error().code, errc::corrupt) << anew.error().detail;
        ASSERT_TRUE(db.execute(fmt::format("ALTER TABLE away_{0} RENAME TO {0}", table).c_str()));
    }
    EXPECT_TRUE(local::read_records(reader, "orders", shard, read_cursor{"1"}, {}));
}

TEST_F(LocalRead, AStreamThatIsNotThereSaysNothingAboutItsShards) {
    for (const auto code :
         {local::open_cursor(db, "bills", shard, from::trim_horizon{}).error().code,
          local::read_records(db, "bills", shard, read_cursor{"1"}, {}).error().code})
        EXPECT_EQ(code, errc::unavailable) << "not_found would be the end of the shard";
}

TEST_F(LocalRead, ATrimmedAwayShardIsNotFound) {
    put(1);
    ASSERT_TRUE(admin.split("orders", shard));
    now += 1min;
    ASSERT_TRUE(admin.trim("orders", {.before = now}));
    const auto reply = read("1");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, errc::not_found);
    EXPECT_THAT(reply.error().detail, HasSubstr("trimmed away"));
}

}  // namespace
}  // namespace millrace
