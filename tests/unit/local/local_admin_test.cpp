#include "local_admin.hpp"

#include "database.hpp"
#include "local_read.hpp"
#include "local_schema.hpp"
#include "local_trim.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

event order(const std::string& key, const std::string& value) {
    return {.topic = "orders", .key = key, .value = value};
}

shard_id shard(int number) {
    return shard_id{"shardId-00000000000" + std::to_string(number)};
}

struct LocalAdmin : testing::Test {
    LocalAdmin() { EXPECT_TRUE(admin.create_stream("orders", 2)); }

    std::vector<local_position> put(const std::vector<event>& events) {
        return admin.put("orders", events).value();
    }
    local_shard_info describe(int number) {
        const auto stream = admin.describe("orders").value();
        for (const auto& found : stream.shards) {
            if (found.shard == shard(number)) return found;
        }
        ADD_FAILURE() << "no shard " << number;
        return {};
    }
    std::set<shard_id> listed() {
        std::set<shard_id> shards;
        const auto stream = admin.describe("orders").value();
        for (const auto& found : stream.shards)
            shards.insert(found.shard);
        return shards;
    }

    support::temporary_folder directory;
    std::string file{directory.file("streams.db")};
    wall_time now{1'700'000'000'000ms};
    local_admin_options options{.busy_timeout = 20ms, .clock = [this] { return now; }, .trim_batch_rows = 3};
    local_admin admin{local_admin::open_or_create(file, options).value()};
};

TEST_F(LocalAdmin, DescribesANewStream) {
    const auto stream = admin.describe("orders").value();
    EXPECT_EQ(stream.name, "orders");
    EXPECT_EQ(stream.created_at, now);
    EXPECT_EQ(stream.next_sequence, 1U);
    ASSERT_EQ(stream.shards.size(), 2U);
    EXPECT_EQ(stream.shards[0].shard, shard(0));
    EXPECT_EQ(stream.shards[0].range, split_evenly(2)[0]);
    EXPECT_EQ(stream.shards[1].range, split_evenly(2)[1]);
    EXPECT_EQ(stream.shards[0].first_sequence, std::nullopt);
    EXPECT_FALSE(stream.shards[0].closed);
}

TEST_F(LocalAdmin, NumbersRecordsOverTheWholeStream) {
    std::vector<event> events;
    for (int i = 0; i < 40; ++i)
        events.push_back(order("key " + std::to_string(i), "v"));
    std::uint64_t expected = 1;
    std::set<shard_id> used;
    for (const auto& where : put(events)) {
        EXPECT_EQ(where.sequence, expected++);
        used.insert(where.shard);
    }
    EXPECT_EQ(used.size(), 2U);
    EXPECT_EQ(admin.describe("orders")->next_sequence, 41U);
}

TEST_F(LocalAdmin, RoutesByTheMd5OfTheKey) {
    for (int i = 0; i < 40; ++i) {
        const auto key = "key " + std::to_string(i);
        EXPECT_TRUE(describe(put({order(key, "")})[0].shard == shard(0) ? 0 : 1).range.contains(hash_of(key))
        );
    }
}

TEST_F(LocalAdmin, SpreadsRecordsWithoutAKeyInTurn) {
    const event keyless{.topic = "orders", .value = "v"};
    const auto where = put({keyless, keyless, keyless, keyless});
    EXPECT_NE(where[0].shard, where[1].shard);
    EXPECT_EQ(where[0].shard, where[2].shard);
    EXPECT_EQ(where[1].shard, where[3].shard);
}

TEST_F(LocalAdmin, CountsRecordsAndBytes) {
    const auto where =
        put({{"orders", "key", "value", {{"h", "x"}}, {}}, {"orders", "key", std::nullopt, {}, {}}});
    const auto info = describe(where[0].shard == shard(0) ? 0 : 1);
    EXPECT_EQ(info.records, 2U);
    EXPECT_EQ(info.bytes, 3 + 5 + 10 + 3U);
    EXPECT_EQ(info.first_sequence, 1U);
    EXPECT_EQ(info.last_sequence, 2U);
}

TEST_F(LocalAdmin, PutsAllOrNothing) {
    options.limits.value_bytes_max = 3;
    auto strict = local_admin::open(file, options).value();
    const auto refused =
        strict.put("orders", std::vector{order("a", "ok"), order("b", "long"), order("c", "ok")});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::refused_record);
    EXPECT_THAT(refused.error().detail, HasSubstr("event 2 of 3"));
    EXPECT_EQ(admin.describe("orders")->next_sequence, 1U);
    EXPECT_EQ(put({order("a", "b")})[0].sequence, 1U);
    EXPECT_THAT(put({}), IsEmpty());
}

TEST_F(LocalAdmin, RefusesAnOversizeKeyAndOversizeHeaders) {
    options.limits = {.key_bytes_max = 3, .headers_bytes_max = 10};
    auto strict = local_admin::open(file, options).value();
    EXPECT_TRUE(strict.put("orders", std::vector{event{"", "abc", "", {{"h", "x"}}, {}}}));
    EXPECT_EQ(strict.put("orders", std::vector{order("abcd", "")}).error().code, errc::refused_record);
    const event headers{"", "a", "", {{"h", "xy"}}, {}};
    EXPECT_THAT(strict.put("orders", std::vector{headers}).error().detail, HasSubstr("header"));
}

TEST_F(LocalAdmin, SplitsInTheMiddleAndAtAHash) {
    EXPECT_EQ(admin.split("orders", shard(0))->second, shard(3));
    EXPECT_TRUE(describe(0).closed);
    EXPECT_THAT(describe(2).parents, ElementsAre(shard(0)));
    EXPECT_EQ(describe(2).range.from, hash_key{});
    EXPECT_EQ(join(describe(2).range, describe(3).range), describe(0).range);

    const auto at = hash_key::parse("42").value();
    ASSERT_TRUE(admin.split("orders", shard(2), at));
    EXPECT_EQ(describe(5).range.from, at);
}

TEST_F(LocalAdmin, MergesNeighboursGivenInAnyOrder) {
    EXPECT_EQ(admin.merge("orders", shard(1), shard(0)), shard(2));
    EXPECT_EQ(describe(2).range, hash_range{});
    EXPECT_THAT(describe(2).parents, ElementsAre(shard(0), shard(1)));
    EXPECT_TRUE(describe(0).closed);
    EXPECT_TRUE(describe(1).closed);
    EXPECT_EQ(put({order("k", "v")})[0].shard, shard(2));
}

TEST_F(LocalAdmin, GivesChildrenLargerNumbersThanTheirParents) {
    auto writer = local_admin::open(file, options).value();  // remembers the shards from before the split
    std::map<shard_id, std::vector<std::uint64_t>> numbers;
    const auto fill = [&] {
        for (int i = 0; i < 20; ++i) {
            const auto where =
                writer.put("orders", std::vector{order("key " + std::to_string(i), "")}).value()[0];
            numbers[where.shard].push_back(where.sequence);
        }
    };
    fill();
    ASSERT_TRUE(admin.split("orders", shard(0)));
    fill();
    ASSERT_TRUE(admin.merge("orders", shard(3), shard(1)));
    fill();
    for (int number = 0; number <= 4; ++number) {
        for (const auto& parent : describe(number).parents)
            EXPECT_LT(numbers[parent].back(), numbers[shard(number)].front()) << number;
    }
}

TEST_F(LocalAdmin, RefusesASplitThatIsImpossible) {
    const auto outside = admin.split("orders", shard(0), hash_key::largest());
    EXPECT_EQ(outside.error().code, errc::invalid_argument);
    EXPECT_THAT(outside.error().detail, HasSubstr(shard(0).value()));

    ASSERT_TRUE(admin.split("orders", shard(0)));
    const auto closed = admin.split("orders", shard(0));
    EXPECT_EQ(closed.error().code, errc::conflict);
    EXPECT_THAT(closed.error().detail, HasSubstr("is closed"));

    const auto unknown = admin.split("orders", shard(9));
    EXPECT_EQ(unknown.error().code, errc::not_found);
    EXPECT_THAT(unknown.error().detail, HasSubstr("shardId-000000000003"));
    EXPECT_EQ(admin.split("orders", shard_id{"0"}).error().code, errc::not_found);
}

TEST_F(LocalAdmin, RefusesToSplitASinglePoint) {
    ASSERT_TRUE(admin.split("orders", shard(0), hash_key{0, 1}));
    EXPECT_EQ(admin.split("orders", shard(2)).error().code, errc::invalid_argument);
}

TEST_F(LocalAdmin, RefusesToMergeWhatIsNotAdjacent) {
    ASSERT_TRUE(admin.split("orders", shard(0)));
    const auto apart = admin.merge("orders", shard(2), shard(1));
    EXPECT_EQ(apart.error().code, errc::invalid_argument);
    EXPECT_THAT(apart.error().detail, HasSubstr("not adjacent"));
    EXPECT_EQ(admin.merge("orders", shard(1), shard(1)).error().code, errc::invalid_argument);
    EXPECT_EQ(admin.merge("orders", shard(0), shard(1)).error().code, errc::conflict);
    EXPECT_FALSE(describe(1).closed) << "a refused merge changes nothing";
}

TEST_F(LocalAdmin, TrimsUpToANumber) {
    put(std::vector<event>(10, order("k", "value")));
    const auto done = admin.trim("orders", {.through_sequence = 7}).value();
    EXPECT_EQ(done.records, 7U);
    EXPECT_EQ(done.bytes, 7 * 6U);
    const auto where = put({order("k", "value")})[0];
    const auto info = describe(where.shard == shard(0) ? 0 : 1);
    EXPECT_EQ(info.records, 4U);
    EXPECT_EQ(info.first_sequence, 8U);
    EXPECT_EQ(info.last_sequence, 11U);
    EXPECT_EQ(admin.trim("orders", {.through_sequence = 1'000'000})->records, 4U);
    EXPECT_EQ(put({order("k", "value")})[0].sequence, 12U) << "a number is never given twice";
}

TEST_F(LocalAdmin, TrimsWhatArrivedBeforeAMoment) {
    put(std::vector<event>(4, order("k", "old")));
    now += 1min;
    put(std::vector<event>(2, order("k", "new")));
    EXPECT_EQ(admin.trim("orders", {.before = now})->records, 4U);
    EXPECT_EQ(admin.trim("orders", {.before = now})->records, 0U);
    now += 1min;
    EXPECT_EQ(admin.trim("orders", {.before = now + 24h})->records, 2U);
}

TEST_F(LocalAdmin, TrimsWhatIsPastTheRetention) {
    ASSERT_TRUE(admin.create_stream("short", 1, 10min));
    ASSERT_TRUE(admin.put("short", std::vector<event>(4, order("k", "v"))));
    now += 10min;
    EXPECT_EQ(admin.trim("short")->records, 0U);
    now += 1ms;
    EXPECT_EQ(admin.trim("short")->records, 4U);

    const auto forever = admin.trim("orders");
    EXPECT_EQ(forever.error().code, errc::invalid_argument);
    EXPECT_THAT(forever.error().detail, HasSubstr("no retention"));
    EXPECT_FALSE(admin.trim("short", {.through_sequence = 1, .before = now}));
}

TEST_F(LocalAdmin, RetentionRemovesNothingThatIsYoungBecauseAClockWasAheadOnce) {
    ASSERT_TRUE(admin.create_stream("short", 1, 10min));
    const auto put_one = [&] { return admin.put("short", std::vector{order("k", "v")}).has_value(); };
    ASSERT_TRUE(put_one());
    now += 24h * 365 * 50;
    const auto far = now;
    ASSERT_TRUE(put_one());
    now -= 24h * 365 * 50;
    ASSERT_TRUE(put_one());
    const auto trimmed = admin.trim("short").value();
    EXPECT_EQ(trimmed.records, 0U);
    EXPECT_EQ(trimmed.clock_ahead, far);

    ASSERT_TRUE(admin.trim("short", {.through_sequence = 2}));
    EXPECT_EQ(admin.trim("short")->clock_ahead, far) << "the third record bears that time, too";
    EXPECT_EQ(admin.trim("short", {.through_sequence = 3})->clock_ahead, std::nullopt);
    ASSERT_TRUE(put_one());
    now += 10min + 1ms;
    EXPECT_EQ(admin.trim("short")->records, 1U) << "the clock is that of the system again";
}

/// Rows changed by each transaction of a connection.
struct changes_by_commit {
    explicit changes_by_commit(sqlite3* db) : db_(db) {
        sqlite3_commit_hook(
            db, [](void* me) { return static_cast<changes_by_commit*>(me)->note(); }, this
        );
    }
    int note() {
        const int total = sqlite3_total_changes(db_);
        counts.push_back(total - before_);
        before_ = total;
        return 0;
    }
    std::vector<int> counts;

private:
    sqlite3* db_;
    int before_{0};
};

TEST_F(LocalAdmin, TrimsInTransactionsThatAreBoundedInBytesToo) {
    put(std::vector<event>(20, order("k", std::string(499, 'x'))));
    options.trim_batch_rows = 1'000;
    options.trim_batch_bytes = 1'000;
    auto db = local::open_streams(file, sqlite::open_mode::must_exist, 20ms).value();
    changes_by_commit seen(db.handle());
    EXPECT_EQ(local::trim_stream(db, "orders", {.through_sequence = 20}, options)->records, 20U);
    const auto large = std::ranges::count(seen.counts, 3);  // two records, and the row of the shard
    EXPECT_EQ(large, 10);
    EXPECT_THAT(seen.counts, testing::Each(testing::Le(3)));
}

TEST_F(LocalAdmin, TrimWritesNothingInPlaceOfWhatItRemoves) {
    for (int i = 0; i < 20; ++i)
        put(std::vector<event>(10, order("k", std::string(100'000, 'x'))));
    admin =
        local_admin::open_or_create(directory.file("other.db")).value();  // the last to close: no WAL is left
    ASSERT_FALSE(std::filesystem::exists(file + "-wal"));
    options.trim_batch_rows = 1'000;
    auto trimmer = local_admin::open(file, options).value();
    EXPECT_EQ(trimmer.trim("orders", {.through_sequence = 200})->records, 200U);
    EXPECT_LT(std::filesystem::file_size(file + "-wal"), 2'000'000U);
}

TEST_F(LocalAdmin, NoLongerListsAClosedAndEmptyShardPastTheTrimmedTime) {
    put(std::vector<event>(4, order("k", "v")));
    ASSERT_TRUE(admin.merge("orders", shard(0), shard(1)));
    EXPECT_THAT(admin.trim("orders", {.through_sequence = 4})->shards, IsEmpty());
    EXPECT_EQ(listed(), (std::set{shard(0), shard(1), shard(2)})) << "closed just now";
    now += 1min;
    EXPECT_THAT(admin.trim("orders", {.before = now})->shards, ElementsAre(shard(0), shard(1)));
    EXPECT_EQ(listed(), std::set{shard(2)});
    EXPECT_THAT(describe(2).parents, ElementsAre(shard(0), shard(1)));
    EXPECT_EQ(admin.split("orders", shard(2))->first, shard(3)) << "a shard's number is never given twice";
}

TEST_F(LocalAdmin, KeepsAClosedShardThatStillHasRecords) {
    put({order("k", "v")});
    const int holder = describe(0).records == 1 ? 0 : 1;
    ASSERT_TRUE(admin.merge("orders", shard(0), shard(1)));
    now += 1min;
    put({order("k", "w")});
    const auto moment = wall_time{1'700'000'000'000ms};  // the first record is not older
    EXPECT_THAT(admin.trim("orders", {.before = moment})->shards, IsEmpty());
    EXPECT_TRUE(listed().contains(shard(holder)));
}

TEST_F(LocalAdmin, KeepsItsClockWhenTheSystemClockJumpsBack) {
    put({order("k", "v")});
    now -= 1h;
    put({order("k", "w")});
    EXPECT_EQ(admin.trim("orders", {.before = now + 30min})->records, 0U);
    EXPECT_EQ(admin.trim("orders", {.before = now + 1h + 1ms})->records, 0U)
        << "not before the stream's own now";
}

TEST_F(LocalAdmin, HoldsSeveralStreamsThatCountAlone) {
    ASSERT_TRUE(admin.create_stream("payments", 3));
    put({order("k", "v")});
    EXPECT_EQ(admin.put("payments", std::vector{order("k", "v")})->at(0).sequence, 1U);
    EXPECT_THAT(admin.list_streams().value(), ElementsAre("orders", "payments"));
    EXPECT_NE(admin.describe("orders")->identity, admin.describe("payments")->identity);
}

TEST_F(LocalAdmin, RefusesToCreateAStreamTwiceOrOutOfRange) {
    EXPECT_EQ(admin.create_stream("orders", 2).error().code, errc::already_exists);
    EXPECT_EQ(admin.create_stream("x", 0).error().code, errc::invalid_argument);
    EXPECT_THAT(admin.create_stream("x", 10'001).error().detail, HasSubstr("1 to 10000"));
    EXPECT_EQ(admin.create_stream("a b", 1).error().code, errc::invalid_argument);
    EXPECT_EQ(admin.create_stream("x", 1, 0ms).error().code, errc::invalid_argument);
    EXPECT_THAT(admin.list_streams().value(), ElementsAre("orders"));
}

TEST_F(LocalAdmin, NamesTheNearestStreamWhenOneIsMissing) {
    for (const auto& why :
         {admin.describe("ordres").error(),
          admin.put("ordres", {}).error(),
          admin.put("ordres", std::vector{order("k", "v")}).error(),
          admin.split("ordres", shard(0)).error(),
          admin.merge("ordres", shard(0), shard(1)).error(),
          admin.trim("ordres").error()}) {
        EXPECT_EQ(why.code, errc::not_found);
        EXPECT_THAT(why.detail, HasSubstr("stream \"ordres\" does not exist in local:" + file));
        EXPECT_THAT(why.detail, HasSubstr("did you mean \"orders\"?"));
        EXPECT_THAT(why.detail, HasSubstr("millrace stream create"));
    }
}

TEST_F(LocalAdmin, WaitsForAWriterAndThenSaysThatTheFileIsLocked) {
    auto other = sqlite::database::open(file, {}).value();
    auto held = other.begin(sqlite::transaction_kind::immediate).value();
    for (const auto& why :
         {admin.put("orders", std::vector{order("k", "v")}).error(), admin.create_stream("x", 1).error()}) {
        EXPECT_EQ(why.code, errc::unavailable);
        EXPECT_EQ(why.retry, retry_advice::after_delay);
        EXPECT_THAT(why.detail, HasSubstr(file));
    }
    EXPECT_TRUE(admin.describe("orders")) << "a writer does not keep readers out";
}

TEST_F(LocalAdmin, SaysThatTheDiskIsFullAndKeepsWhatThereIs) {
    put({order("k", "v")});
    auto limit = sqlite::database::open(file, {}).value();
    const auto pages = limit.integer("PRAGMA page_count").value();
    // A limit holds for one connection, so the file is filled through the connection that has it.
    ASSERT_TRUE(limit.integer("PRAGMA max_page_count=" + std::to_string(pages)));
    local::routing_cache routes;
    auto append = local::append_transaction::begin(limit, routes, options.clock).value();
    const std::string large(100'000, 'x');
    const auto refused = append.add("orders", {"k", large, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::out_of_space);
    EXPECT_EQ(refused.error().retry, retry_advice::after_delay);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_EQ(admin.describe("orders")->next_sequence, 2U);
}

struct LocalFile : testing::Test {
    error open(const std::string& path) {
        auto opened = local_admin::open(path, {.busy_timeout = 20ms});
        EXPECT_FALSE(opened);
        return opened ? error{} : opened.error();
    }
    void write(const std::string& path, const std::string& bytes) { std::ofstream(path) << bytes; }

    support::temporary_folder directory;
    std::string file{directory.file("streams.db")};
};

TEST_F(LocalFile, MissingSaysHowToMakeOne) {
    const auto why = open(file);
    EXPECT_EQ(why.code, errc::not_found);
    EXPECT_THAT(why.detail, HasSubstr("local:" + file));
    EXPECT_THAT(why.detail, HasSubstr("millrace stream create"));
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(LocalFile, ADirectoryIsNoFile) {
    EXPECT_THAT(open(directory.path().string()).detail, HasSubstr("is a directory"));
    EXPECT_EQ(local_admin::open_or_create(directory.file("no/x.db")).error().code, errc::not_found);
}

TEST_F(LocalFile, AnythingElseIsNoDatabase) {
    write(file, std::string(5'000, 'x'));
    EXPECT_EQ(open(file).code, errc::corrupt);
    EXPECT_EQ(local_admin::open_or_create(file).error().code, errc::corrupt);
}

TEST_F(LocalFile, ADatabaseWithoutStreamsSaysSo) {
    ASSERT_TRUE(
        sqlite::database::open(file, {.mode = sqlite::open_mode::create})->execute("CREATE TABLE t (x)")
    );
    const auto why = open(file);
    EXPECT_EQ(why.code, errc::not_found);
    EXPECT_THAT(why.detail, HasSubstr("holds no streams"));
    EXPECT_TRUE(local_admin::open_or_create(file)->create_stream("beside-it", 1));
}

TEST_F(LocalFile, ANewerFormatIsLeftAlone) {
    ASSERT_TRUE(local_admin::open_or_create(file));
    ASSERT_TRUE(sqlite::database::open(file, {})->run("UPDATE millrace_stream_format SET version = 2"));
    for (const auto& why : {open(file), local_admin::open_or_create(file).error()}) {
        EXPECT_EQ(why.code, errc::wrong_version);
        EXPECT_THAT(why.detail, HasSubstr("format 2"));
    }
}

TEST_F(LocalFile, OneWhoseRecordsHaveNoRowidGoesOn) {
    auto admin = local_admin::open_or_create(file).value();
    ASSERT_TRUE(admin.create_stream("orders", 1));
    {
        auto db = sqlite::database::open(file, {}).value();
        ASSERT_TRUE(db.execute(
            "DROP TABLE millrace_stream_record;"
            "CREATE TABLE millrace_stream_record (shard INTEGER NOT NULL, sequence INTEGER NOT NULL, "
            "arrival INTEGER NOT NULL, key BLOB, data BLOB, headers BLOB, PRIMARY KEY (shard, sequence)) "
            "WITHOUT ROWID"
        ));
    }
    auto old = local_admin::open(file).value();
    ASSERT_TRUE(old.put("orders", std::vector<event>(3, order("k", "v"))));
    ASSERT_TRUE(old.trim("orders", {.through_sequence = 1}));
    auto db = sqlite::database::open(file, {}).value();
    const auto read = local::read_records(db, "orders", shard(0), read_cursor{"2"}, {}).value();
    ASSERT_EQ(read.records->records().size(), 2U);
    EXPECT_EQ(read.records->records().front().data, "v");
}

TEST_F(LocalFile, BrokenShardRowsAreCorrupt) {
    auto admin = local_admin::open_or_create(file).value();
    ASSERT_TRUE(admin.create_stream("orders", 2));
    auto db = sqlite::database::open(file, {}).value();
    ASSERT_TRUE(db.run("UPDATE millrace_stream_shard SET hash_from = 'x' WHERE number = 1"));
    EXPECT_EQ(admin.describe("orders").error().code, errc::corrupt);
    ASSERT_TRUE(db.run("DELETE FROM millrace_stream_shard"));
    const auto why = admin.put("orders", std::vector{order("k", "v")}).error();
    EXPECT_EQ(why.code, errc::corrupt);
    EXPECT_THAT(why.detail, HasSubstr("do not cover all hashes"));
}

}  // namespace
}  // namespace millrace
