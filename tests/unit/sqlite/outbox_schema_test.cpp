#include "outbox_schema.hpp"

#include "database.hpp"
#include "sqlite_outbox_admin.hpp"
#include "support/temporary_folder.hpp"

#include <millrace/outbox.hpp>

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace {
namespace {

using testing::HasSubstr;

/// A connection as an application has one.
struct OutboxSchema : testing::Test {
    OutboxSchema() {
        sqlite3* raw = nullptr;
        EXPECT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
        application.reset(raw);
    }
    void execute(const char* sql) {
        EXPECT_EQ(sqlite3_exec(application.get(), sql, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(application.get());
    }
    int count(const char* sql) {
        sqlite3_stmt* raw = nullptr;
        EXPECT_EQ(sqlite3_prepare_v2(application.get(), sql, -1, &raw, nullptr), SQLITE_OK);
        EXPECT_EQ(sqlite3_step(raw), SQLITE_ROW);
        const int found = sqlite3_column_int(raw, 0);
        sqlite3_finalize(raw);
        return found;
    }
    error open_error() {
        auto opened = sqlite_outbox_admin::open(path, {.name = "sqlite:app.db"});
        EXPECT_FALSE(opened);
        return opened ? error{} : opened.error();
    }

    struct close {
        void operator()(sqlite3* db) const { sqlite3_close(db); }
    };
    support::temporary_folder files;
    std::string path = files.file("app.db");
    std::unique_ptr<sqlite3, close> application;
};

TEST_F(OutboxSchema, IsMadeOnceAndKeptThereafter) {
    ASSERT_TRUE(create_outbox(application.get()));
    execute("INSERT INTO outbox (topic) VALUES ('t')");
    ASSERT_TRUE(create_outbox(application.get()));
    EXPECT_EQ(count("SELECT count(*) FROM outbox"), 1);
    EXPECT_TRUE(sqlite_outbox_admin::init(path));
    EXPECT_TRUE(sqlite_outbox_admin::open(path));
}

TEST_F(OutboxSchema, IsPartOfTheApplicationsTransaction) {
    execute("BEGIN");
    ASSERT_TRUE(create_outbox(application.get()));
    EXPECT_EQ(count("SELECT count(*) FROM sqlite_schema WHERE name = 'outbox'"), 1);
    execute("ROLLBACK");
    EXPECT_EQ(count("SELECT count(*) FROM sqlite_schema WHERE name = 'outbox'"), 0);
    EXPECT_EQ(outbox_writer::open(application.get()).error().code, errc::not_found);
}

TEST_F(OutboxSchema, SaysThatADatabaseHasNoOutboxAndWhatToDo) {
    execute("CREATE TABLE other (n)");
    const auto why = open_error();
    EXPECT_EQ(why.code, errc::not_found);
    EXPECT_EQ(why.detail, "sqlite:app.db has no outbox; create it with `millrace outbox init`");
}

TEST_F(OutboxSchema, NamesTheColumnsThatAnotherTableOfThatNameLacks) {
    execute(
        "CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT, value BLOB, created_at "
        "INTEGER)"
    );
    for (const auto& why :
         {open_error(), sqlite_outbox_admin::init(path).error(), create_outbox(application.get()).error()}) {
        EXPECT_EQ(why.code, errc::invalid_config);
        EXPECT_THAT(why.detail, HasSubstr("lacks the column(s) key, headers, partition"));
    }
    EXPECT_EQ(count("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'outbox_%'"), 0)
        << "nothing was made";
}

TEST_F(OutboxSchema, RefusesATableWhoseIdsCouldComeTwice) {
    execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, topic, key, value, headers, partition, created_at)"
    );
    EXPECT_THAT(open_error().detail, HasSubstr("not AUTOINCREMENT"));
}

TEST_F(OutboxSchema, OfANewerProgramIsRefusedNamingBothVersions) {
    ASSERT_TRUE(create_outbox(application.get()));
    execute("UPDATE outbox_meta SET schema_version = 12");
    for (const auto& why : {open_error(), create_outbox(application.get()).error()}) {
        EXPECT_EQ(why.code, errc::wrong_version);
        EXPECT_THAT(why.detail, HasSubstr("version 12"));
        EXPECT_THAT(why.detail, HasSubstr("up to 2"));
    }
}

TEST_F(OutboxSchema, KeepsTheDeadLettersOfTheFirstVersionAndLetsTheirIdsComeAgain) {
    ASSERT_TRUE(create_outbox(application.get()));
    execute(
        "DROP TABLE outbox_dead; CREATE TABLE outbox_dead (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key "
        "BLOB, value BLOB, headers TEXT, partition INTEGER, created_at INTEGER NOT NULL, reason TEXT NOT "
        "NULL, "
        "error TEXT NOT NULL, attempts INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT "
        "NULL);"
        "INSERT INTO outbox_dead VALUES (7, 't', x'6b', x'76', NULL, NULL, 1, 'r', 'e', 1, 1, 1);"
        "UPDATE outbox_meta SET schema_version = 1"
    );
    ASSERT_TRUE(create_outbox(application.get()));
    execute(
        "INSERT INTO outbox_dead SELECT NULL, id, 'u', key, value, NULL, NULL, 1, 'r', 'e', 1, 1, 1 FROM "
        "outbox_dead"
    );
    EXPECT_EQ(count("SELECT count(*) FROM outbox_dead WHERE id = 7"), 2);
    EXPECT_EQ(count("SELECT schema_version FROM outbox_meta"), 2);
    ASSERT_TRUE(create_outbox(application.get())) << "once is enough";
    EXPECT_EQ(count("SELECT count(*) FROM outbox_dead"), 2);
}

TEST_F(OutboxSchema, RefusesADatabaseInUtf16) {
    execute("PRAGMA encoding = 'UTF-16'; CREATE TABLE other (n)");
    EXPECT_EQ(create_outbox(application.get()).error().code, errc::invalid_config);
}

TEST_F(OutboxSchema, WriterCommitsAndRollsBackWithTheApplication) {
    ASSERT_TRUE(create_outbox(application.get()));
    execute("CREATE TABLE orders (n)");
    auto writer = outbox_writer::open(application.get());
    ASSERT_TRUE(writer);
    const event e{"orders", "k", "v", {{"h", std::nullopt}}, std::nullopt};
    execute("BEGIN");
    execute("INSERT INTO orders VALUES (1)");
    EXPECT_EQ(writer->add(e), row_id{1});
    execute("ROLLBACK");
    EXPECT_EQ(count("SELECT count(*) FROM outbox"), 0);
    execute("BEGIN");
    EXPECT_TRUE(writer->add(e));
    EXPECT_TRUE(writer->add(e));
    execute("COMMIT");
    EXPECT_EQ(count("SELECT count(*) FROM outbox WHERE headers = '[[\"h\",null]]' AND partition IS NULL"), 2);
}

TEST_F(OutboxSchema, WriterRefusesWhatTheApplicationsLimitOfSqliteRefusesInsteadOfWritingNothingInItsPlace) {
    EXPECT_TRUE(create_outbox(application.get()));
    auto writer = outbox_writer::open(application.get());
    ASSERT_TRUE(writer);
    sqlite3_limit(application.get(), SQLITE_LIMIT_LENGTH, 10'000);
    const std::string large(20'000, 'x');
    for (const auto& what : {
             event{.topic = "orders", .key = "k", .value = large},
             event{.topic = "orders", .key = large, .value = "v"},
             event{.topic = "orders", .key = "k", .value = "v", .headers = {{"h", large}}},
             event{.topic = large, .key = "k", .value = "v"},
         }) {
        const auto added = writer->add(what);
        ASSERT_FALSE(added);
        EXPECT_EQ(added.error().code, errc::invalid_argument);
        EXPECT_EQ(count("SELECT count(*) FROM outbox"), 0);
    }
    EXPECT_TRUE(writer->add({.topic = "orders", .key = "k", .value = "v"}));
    EXPECT_EQ(count("SELECT count(*) FROM outbox WHERE value = CAST('v' AS BLOB)"), 1);
}

TEST_F(OutboxSchema, WriterRefusesWhatNoSinkCouldTakeAndWritesNothing) {
    ASSERT_TRUE(create_outbox(application.get()));
    auto writer = outbox_writer::open(application.get(), {.event_bytes_max = 100});
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->add({"", "k", "v", {}, std::nullopt}).error().code, errc::invalid_argument);
    EXPECT_EQ(writer->add({"\xff", "k", "v", {}, std::nullopt}).error().code, errc::invalid_argument);
    EXPECT_EQ(
        writer->add({"t", "k", "v", {{"\xff", "v"}}, std::nullopt}).error().code, errc::invalid_argument
    );
    EXPECT_EQ(writer->add({"t", "k", "v", {}, -1}).error().code, errc::invalid_argument);
    const auto huge = writer->add({"t", "k", std::string(99, 'v'), {}, std::nullopt});
    ASSERT_FALSE(huge);
    EXPECT_THAT(huge.error().detail, HasSubstr("101 bytes, and the limit is 100"));
    EXPECT_TRUE(writer->add({"t", "k", std::string(98, 'v'), {}, std::nullopt}));
    EXPECT_EQ(count("SELECT count(*) FROM outbox"), 1);
    EXPECT_EQ(
        outbox_writer::open(application.get(), {.event_bytes_max = 0}).error().code, errc::invalid_argument
    );
}

}  // namespace
}  // namespace millrace
