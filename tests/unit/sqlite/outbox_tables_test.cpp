#include "outbox_tables.hpp"

#include "outbox_schema.hpp"
#include "sqlite_outbox_admin.hpp"
#include "support/temporary_folder.hpp"

#include <millrace/outbox.hpp>

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

struct SqliteOutbox : testing::Test {
    sqlite::database open() {
        auto made = sqlite::database::open(
            path, {.mode = sqlite::open_mode::create, .busy_timeout = 0ms, .name = "sqlite:app.db"}
        );
        EXPECT_TRUE(made) << made.error().detail;
        return std::move(*made);
    }
    void lease(std::uint64_t e) {
        ASSERT_TRUE(
            db.execute("CREATE TABLE IF NOT EXISTS millrace_shard (stream TEXT, group_name TEXT, shard TEXT, "
                       "epoch INTEGER, "
                       "PRIMARY KEY (stream, group_name, shard))")
        );
        ASSERT_TRUE(db.run("INSERT OR REPLACE INTO millrace_shard VALUES ('', 'outbox', 'outbox', ?)", e));
    }
    fetch_reply fetch(fetch_request request = {}) {
        auto reply = outbox_tables::fetch(db, view, request);
        EXPECT_TRUE(reply) << reply.error().detail;
        view.reported(reply->table_identity);
        return reply.value();
    }
    std::string why_malformed(const char* column, const char* sql_value) {
        const auto sql = fmt::format("INSERT INTO outbox (topic, {}) VALUES ('t', {})", column, sql_value);
        EXPECT_TRUE(db.execute(sql.c_str()));
        const auto reply = fetch();
        return std::string(reply.ahead->rows().back().malformed);
    }

    support::temporary_folder files;
    std::string path = files.file("app.db");
    sqlite_outbox_admin admin = sqlite_outbox_admin::init(path).value();
    sqlite::database db = open();
    outbox_view view;
};

TEST_F(SqliteOutbox, EstimatesItsBacklogByTheSpanOfIds) {
    EXPECT_EQ(outbox_tables::look(db)->backlog, 0U);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('t'), ('t'), ('t'), ('t')"));
    EXPECT_EQ(outbox_tables::look(db)->backlog, 4U);
    ASSERT_TRUE(db.execute("DELETE FROM outbox WHERE id IN (1, 3)"));
    EXPECT_EQ(outbox_tables::look(db)->backlog, 3U);
}

TEST_F(SqliteOutbox, TellsTheAgeOfItsLowestRow) {
    EXPECT_EQ(outbox_tables::look(db)->oldest_age, std::nullopt);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic, created_at) VALUES ('t', " MILLRACE_SQL_NOW
                           " - 90000), ('t', 0)"));
    EXPECT_GE(outbox_tables::look(db)->oldest_age.value(), 90s);
    EXPECT_LT(outbox_tables::look(db)->oldest_age.value(), 150s);
}

TEST_F(SqliteOutbox, TakesPlainSqlWithTextOrBlobAndTreatsTheSameBytesTheSame) {
    ASSERT_TRUE(
        db.execute("INSERT INTO outbox (topic, key, value) VALUES ('t', 'k', 'v'), ('t', x'6b', x'76'), "
                   "('t', 42, NULL), "
                   "('t', '', ''), ('t', x'', x''), ('t', NULL, x'00ff')")
    );
    const auto reply = fetch();
    const auto rows = reply.ahead->rows();
    ASSERT_EQ(rows.size(), 6u);
    EXPECT_EQ(rows[0].key, rows[1].key);
    EXPECT_EQ(rows[0].value, rows[1].value);
    EXPECT_EQ(rows[2].key, "42");
    EXPECT_EQ(rows[2].value, std::nullopt);
    EXPECT_EQ(rows[3].key, "");
    EXPECT_EQ(rows[4].key, "");
    EXPECT_EQ(rows[5].key, std::nullopt);
    EXPECT_EQ(rows[5].value, std::string_view("\0\xff", 2));
    EXPECT_GT(rows[0].created_at, wall_time{1'700'000'000'000ms});
}

TEST_F(SqliteOutbox, ParksAndReplaysALaneWhetherItsKeyIsTextOrBlob) {
    lease(1);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic, key) VALUES ('t', 'k'), ('t', x'6b'), ('t', 'other')")
    );
    fetch();
    bury_request first{
        {row_id{1}}, {"t", "k", std::nullopt}, bury_request::condition::park_lane, "r", "e", 1};
    ASSERT_TRUE(outbox_tables::bury(db, view, first, epoch{1}));
    bury_request second{
        {row_id{2}}, {"t", "k", std::nullopt}, bury_request::condition::lane_is_parked, "r", "e", 1};
    ASSERT_TRUE(outbox_tables::bury(db, view, second, epoch{1}));
    EXPECT_EQ(admin.retry_dead({.ids = {row_id{2}}}), 2u) << "a parked lane comes back as a whole";
    EXPECT_TRUE(outbox_tables::parked_lanes(db).value().empty());
    EXPECT_EQ(db.integer("SELECT count(*) FROM outbox WHERE typeof(key) = 'blob'"), 1) << "types are kept";
    EXPECT_EQ(fetch().ahead->rows().size(), 3u);
}

TEST_F(SqliteOutbox, KeepsALaneParkedUntilItsLastDeadLetterIsDropped) {
    lease(1);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic, key) VALUES ('t', 'k'), ('t', 'k')"));
    const auto generation = fetch().replay_generation;
    bury_request both{
        {row_id{1}, row_id{2}}, {"t", "k", std::nullopt}, bury_request::condition::park_lane, "r", "e", 1};
    ASSERT_TRUE(outbox_tables::bury(db, view, both, epoch{1}));
    EXPECT_EQ(admin.drop_dead({.ids = {row_id{1}}}), 1u);
    EXPECT_EQ(outbox_tables::parked_lanes(db).value().size(), 1u);
    EXPECT_EQ(fetch().replay_generation, generation);
    EXPECT_EQ(admin.drop_dead({.topic = "t"}), 1u);
    EXPECT_TRUE(outbox_tables::parked_lanes(db).value().empty());
    EXPECT_EQ(fetch().replay_generation, generation + 1);
}

TEST_F(SqliteOutbox, ARowWithAPartitionThatNoSinkHasIsOfTheLaneThatIsParkedForIt) {
    lease(1);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic, key, partition) VALUES ('t', 'k', -5)"));
    fetch();
    bury_request one{{row_id{1}}, {"t", "k", std::nullopt}, bury_request::condition::park_lane, "r", "e", 1};
    ASSERT_TRUE(outbox_tables::bury(db, view, one, epoch{1}));
    EXPECT_EQ(admin.drop_dead({}), 1u);
    EXPECT_TRUE(outbox_tables::parked_lanes(db).value().empty());
}

TEST_F(SqliteOutbox, ListsDeadLettersWithoutTheirPayloads) {
    lease(1);
    ASSERT_TRUE(
        db.execute("INSERT INTO outbox (topic, key, value, headers) VALUES ('t', 'k', 'v', "
                   "'[[\"h\",null]]')")
    );
    fetch();
    bury_request one{{row_id{1}}, {"t", "k", std::nullopt}, bury_request::condition::none, "r", "e", 1};
    ASSERT_TRUE(outbox_tables::bury(db, view, one, epoch{1}));
    EXPECT_EQ(admin.list_dead({}).value().front().event.headers.size(), 1u);
    const auto listed = admin.list_dead({}, 10, dead_part::without_payload).value().front();
    EXPECT_EQ(listed.event.key, "k");
    EXPECT_EQ(listed.event.value, std::nullopt);
    EXPECT_TRUE(listed.event.headers.empty());
    EXPECT_EQ(listed.broken_headers, "");
}

TEST_F(SqliteOutbox, PutsBackWhatFitsAndNamesTheRestWhenIdsCameAgain) {
    lease(1);
    const auto bury = [&](std::int64_t id, const char* key, bury_request::condition when) {
        fetch();
        bury_request one{{row_id{id}}, {"t", key, std::nullopt}, when, "r", "e", 1};
        ASSERT_TRUE(outbox_tables::bury(db, view, one, epoch{1}));
    };
    using condition = bury_request::condition;
    const auto ids = [&] {
        std::vector<std::int64_t> found;
        const auto reply = fetch();
        for (const auto& row : reply.ahead->rows())
            found.push_back(row.id.value());
        return found;
    };
    ASSERT_TRUE(
        db.execute("INSERT INTO outbox (id, topic, key) VALUES (1, 't', 'a'), (2, 't', 'b'), (3, 't', "
                   "'c')")
    );
    bury(1, "a", condition::park_lane);
    bury(2, "b", condition::park_lane);
    bury(3, "c", condition::none);
    ASSERT_TRUE(
        db.execute("DELETE FROM outbox; INSERT INTO outbox (id, topic, key) VALUES (1, 't', 'x'), (2, "
                   "'t', 'b')")
    );
    bury(2, "b", condition::lane_is_parked);

    const auto some = admin.retry_dead({});
    ASSERT_FALSE(some);
    EXPECT_EQ(some.error().code, errc::conflict);
    EXPECT_THAT(some.error().detail, HasSubstr("1 were put back and 3 stay"));
    EXPECT_THAT(some.error().detail, HasSubstr("(ids 1, 2, 2)"));
    EXPECT_EQ(ids(), (std::vector<std::int64_t>{1, 3}));
    EXPECT_EQ(outbox_tables::parked_lanes(db).value().size(), 2u);

    EXPECT_EQ(admin.drop_dead({.ids = {row_id{2}}}), 1u) << "the oldest of the id";
    EXPECT_EQ(admin.retry_dead({.ids = {row_id{2}}}), 1u);
    ASSERT_TRUE(db.execute("DELETE FROM outbox WHERE id = 1"));
    EXPECT_EQ(admin.retry_dead({}), 1u);
    EXPECT_EQ(ids(), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(SqliteOutbox, NamesWhatIsWrongWithHeadersOrPartitionAndReadsOn) {
    for (const auto* json :
         {"'{}'",
          "'x'",
          "'[1]'",
          "'[[\"a\"]]'",
          "'[[1,\"a\"]]'",
          "'[[\"a\",1]]'",
          "'['",
          "x'5bff5d'",
          "'[[\"a\",{\"base64\":\"*\"}]]'",
          "'[[\"a\",{\"base64\":\"\",\"x\":1}]]'",
          "'[[\"a\",\"b\",\"c\"]]'"}) {
        EXPECT_THAT(why_malformed("headers", json), HasSubstr("header")) << json;
    }
    for (const auto* json :
         {"NULL", "''", "'[]'", "'[[\"a\",null]]'", "'[[\"a\",{\"base64\":\"AP8=\"}]]'", "x'5b5d'"}) {
        EXPECT_EQ(why_malformed("headers", json), "") << json;
    }
    EXPECT_THAT(why_malformed("headers", "'[[\"a\",\"b\"],[\"c\",{}]]'"), HasSubstr("header 2"));
    for (const auto* number : {"-1", "2147483648", "1.5", "'x'"}) {
        EXPECT_THAT(why_malformed("partition", number), HasSubstr("partition")) << number;
    }
    EXPECT_EQ(why_malformed("partition", "'7'"), "") << "the column turns numeric text into numbers";
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('')"));
    EXPECT_EQ(fetch().ahead->rows().back().malformed, "the topic is empty");
}

TEST_F(SqliteOutbox, NeverShowsWhatBrokenHeadersHold) {
    EXPECT_THAT(why_malformed("headers", "'[[\"secret\",42]]'"), testing::Not(HasSubstr("secret")));
}

TEST_F(SqliteOutbox, BoundsWhatAGapProbeReturnsAndSaysThatItWasCut) {
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(db.run("INSERT INTO outbox (topic, value) VALUES ('t', ?)", std::string(1'000, 'v')));
    const auto cut =
        fetch({.gaps = {{row_id{1}, row_id{4}}, {row_id{6}, row_id{10}}}, .gap_bytes_max = 6'000});
    EXPECT_TRUE(cut.gaps_more);
    EXPECT_LE(cut.filled->bytes(), 6'000u);
    EXPECT_EQ(cut.filled->rows().back().id, row_id{6}) << "lowest first";
    const auto one = fetch({.gaps = {{row_id{1}, row_id{4}}}, .gap_bytes_max = 1});
    EXPECT_EQ(one.filled->rows().size(), 1u);
    EXPECT_TRUE(one.gaps_more);
    const auto all = fetch({.gaps = {{row_id{1}, row_id{4}}}});
    EXPECT_FALSE(all.gaps_more);
    EXPECT_EQ(all.ahead->rows().size(), 10u);
}

TEST_F(SqliteOutbox, DeletesNothingUnderAStaleEpochOrWithoutALease) {
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('t')"));
    fetch();
    const std::vector<id_range> ranges{{row_id{1}, row_id{1}}};
    const auto refused = [&] {
        const auto removed = outbox_tables::remove(db, view, ranges, epoch{1});
        return !removed && removed.error().code == errc::not_owner;
    };
    EXPECT_TRUE(refused());
    lease(2);
    EXPECT_TRUE(refused());
    EXPECT_EQ(outbox_tables::remove(db, view, ranges, epoch{2}), 1u);
}

TEST_F(SqliteOutbox, DeletesNothingAfterIdsWereStartedAnewByHand) {
    lease(1);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('t'), ('t')"));
    const auto before = fetch().table_identity;
    ASSERT_TRUE(db.execute(
        "DELETE FROM outbox; DELETE FROM sqlite_sequence; INSERT INTO outbox (topic) VALUES ('new')"
    ));
    EXPECT_EQ(outbox_tables::remove(db, view, {{row_id{1}, row_id{2}}}, epoch{1}), 0u);
    EXPECT_NE(fetch().table_identity, before);
}

TEST_F(SqliteOutbox, RefusesIdsBelowOneWhichNoRelayWouldEverRead) {
    EXPECT_EQ(db.run("INSERT INTO outbox (id, topic) VALUES (0, 't')").error().code, errc::invalid_config);
    EXPECT_EQ(db.run("INSERT INTO outbox (id, topic) VALUES (-5, 't')").error().code, errc::invalid_config);
}

TEST_F(SqliteOutbox, ATriggerThatForbidsABurialIsNoLaneThatWasUnparked) {
    lease(1);
    ASSERT_TRUE(
        db.execute("INSERT INTO outbox (topic, key) VALUES ('t', 'a'), ('t', 'a');"
                   "CREATE TRIGGER keep BEFORE DELETE ON outbox BEGIN SELECT RAISE(ABORT, 'kept'); END")
    );
    fetch();
    bury_request request{.rows = {row_id{1}}, .lane = {"t", "a", {}}, .reason = "r", .detail = "d"};
    for (const auto when : {bury_request::condition::park_lane, bury_request::condition::lane_is_parked}) {
        ASSERT_TRUE(db.execute("INSERT OR IGNORE INTO outbox_parked VALUES ('t', CAST('a' AS BLOB), NULL, 1)")
        );
        request.when = when;
        request.table_identity = view.identity();
        const auto done = outbox_tables::bury(db, view, request, epoch{1});
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, errc::invalid_config) << done.error().detail;
        EXPECT_EQ(done.error().retry, retry_advice::after_delay);
        EXPECT_THAT(done.error().detail, HasSubstr("kept"));
    }
}

TEST_F(SqliteOutbox, KeepsTheRowsWhenTheDiskIsFullWhileARowIsBuried) {
    lease(1);
    ASSERT_TRUE(
        db.run("INSERT INTO outbox (topic, key, value) VALUES ('t', 'k', ?)", std::string(100'000, 'v'))
    );
    fetch();
    const auto pages = db.integer("PRAGMA page_count").value();
    ASSERT_TRUE(db.execute(fmt::format("PRAGMA max_page_count={}", pages).c_str()));
    bury_request request{
        {row_id{1}}, {"t", "k", std::nullopt}, bury_request::condition::park_lane, "r", "e", 1};
    const auto refused = outbox_tables::bury(db, view, request, epoch{1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::out_of_space);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_EQ(fetch().ahead->rows().size(), 1u);
    EXPECT_TRUE(outbox_tables::parked_lanes(db).value().empty());
}

TEST_F(SqliteOutbox, IsUnavailableWhileAWriterHoldsTheFileButCanBeRead) {
    lease(1);
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('t')"));
    fetch();
    auto application = open();
    const auto held = application.begin(sqlite::transaction_kind::immediate);
    const auto refused = outbox_tables::remove(db, view, {{row_id{1}, row_id{1}}}, epoch{1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::unavailable);
    EXPECT_EQ(refused.error().retry, retry_advice::after_delay);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_EQ(fetch().ahead->rows().size(), 1u);
}

TEST_F(SqliteOutbox, PutsAllEventsOrNone) {
    const std::vector<event> events{
        {"a", "k", "v", {{"h", "x"}}, 3}, {"b", std::nullopt, std::nullopt, {}, std::nullopt}};
    EXPECT_EQ(admin.put(events).value(), row_id{2});
    EXPECT_EQ(admin.put({}).value(), std::nullopt);
    const std::vector<event> bad{events[0], {"", "k", "v", {}, std::nullopt}};
    EXPECT_EQ(admin.put(bad).error().code, errc::invalid_argument);
    const auto stats = admin.stats().value();
    EXPECT_EQ(stats.backlog, 2u);
    EXPECT_EQ(stats.dead, 0u);
    EXPECT_TRUE(stats.oldest_age);
}

TEST_F(SqliteOutbox, ShowsADeadLetterWithAllThatIsKnownOfIt) {
    lease(1);
    const event e{"t", std::string("\0k", 2), std::nullopt, {{"h", "\xff"}}, 5};
    ASSERT_TRUE(admin.put(std::vector{e}));
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic, headers) VALUES ('u', 'broken')"));
    fetch();
    bury_request request{
        {row_id{1}, row_id{2}},
        {"t", e.key, 5},
        bury_request::condition::park_lane,
        "refused_record",
        "too large",
        3};
    ASSERT_TRUE(outbox_tables::bury(db, view, request, epoch{1}));
    const auto all = admin.list_dead({}).value();
    ASSERT_EQ(all.size(), 2u);
    const auto* const shown = &all.front();
    EXPECT_EQ(shown->event, e);
    EXPECT_EQ(shown->reason, "refused_record");
    EXPECT_EQ(shown->error, "too large");
    EXPECT_EQ(shown->attempts, 3u);
    EXPECT_GE(shown->last_at, shown->first_at);
    EXPECT_NE(all.back().broken_headers, "");
    EXPECT_TRUE(admin.list_dead({.ids = {row_id{9}}}).value().empty());
    EXPECT_EQ(admin.list_dead({}, 1).value().size(), 1u);
    EXPECT_EQ(admin.list_dead({.topic = "u"}).value().size(), 1u);
    EXPECT_EQ(admin.list_dead({.key = e.key}).value().size(), 1u);
    EXPECT_EQ(admin.list_dead({.ids = {row_id{2}}, .topic = "t"}).value().size(), 0u);
    EXPECT_EQ(admin.stats()->dead, 2u);
}

}  // namespace
}  // namespace millrace
