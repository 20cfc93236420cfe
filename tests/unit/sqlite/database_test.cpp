#include "database.hpp"

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

namespace millrace::sqlite {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

/// Drops this thread's rights over files, so that modes count even when the tests run as root.
class without_privileges {
public:
    without_privileges() : before_(setfsuid(65'534)) {}
    without_privileges(const without_privileges&) = delete;
    without_privileges& operator=(const without_privileges&) = delete;
    ~without_privileges() { setfsuid(static_cast<uid_t>(before_)); }

private:
    int before_;
};

struct SqliteDatabase : testing::Test {
    result<database> open(open_options options) { return database::open(path, std::move(options)); }
    database made() {
        auto db = open({.mode = open_mode::create, .busy_timeout = 0ms, .name = "sqlite:a.db"});
        EXPECT_TRUE(db) << db.error().detail;
        EXPECT_TRUE(db->execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, v BLOB)"));
        return std::move(*db);
    }

    support::temporary_folder files;
    std::string path = files.file("a.db");
};

TEST_F(SqliteDatabase, SaysThatTheFileIsMissingAndWhatToDo) {
    const auto db = open(
        {.mode = open_mode::must_exist,
         .name = "sqlite:a.db",
         .when_missing = "create it with `millrace outbox init`"}
    );
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::not_found);
    EXPECT_EQ(
        db.error().detail,
        "cannot open sqlite:a.db: the file does not exist; create it with `millrace outbox init`"
    );
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SqliteDatabase, SaysThatTheDirectoryIsMissing) {
    path = files.file("no/such/a.db");
    const auto db = open({.mode = open_mode::create});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::not_found);
    EXPECT_THAT(db.error().detail, HasSubstr("no/such\" does not exist; create it"));
}

TEST_F(SqliteDatabase, SaysThatThePathIsADirectory) {
    path = files.path().string();
    const auto db = open({.mode = open_mode::create});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::invalid_config);
    EXPECT_THAT(db.error().detail, HasSubstr("is a directory; name a file"));
}

TEST_F(SqliteDatabase, SaysThatThePathIsNoRegularFile) {
    path = "/dev/null";
    const auto db = open({.mode = open_mode::create});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::invalid_config);
    EXPECT_THAT(db.error().detail, HasSubstr("is a device, a pipe or a socket; name a file"));
}

TEST_F(SqliteDatabase, SaysThatTheFileIsNoDatabase) {
    std::ofstream(path) << std::string(4'096, 'x');
    const auto db = open({.name = "sqlite:a.db"});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::corrupt);
    EXPECT_THAT(db.error().detail, HasSubstr("sqlite:a.db"));
    EXPECT_THAT(db.error().detail, HasSubstr("not a SQLite database"));
}

TEST_F(SqliteDatabase, SaysThatTheFileIsDamaged) {
    {
        auto db = made();
        for (int i = 0; i < 200; ++i) {
            ASSERT_TRUE(db.run("INSERT INTO t (v) VALUES (?)", std::string(500, 'v')));
        }
    }
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 1; page < 10; ++page) {
        file.seekp(page * 4'096);
        file << std::string(64, '\xee');
    }
    file.close();
    auto db = open({});
    ASSERT_TRUE(db) << db.error().detail;
    const auto sum = db->integer("SELECT sum(length(v)) FROM t");
    ASSERT_FALSE(sum);
    EXPECT_EQ(sum.error().code, errc::corrupt);
    EXPECT_THAT(sum.error().detail, HasSubstr("restore it from a backup"));
}

TEST_F(SqliteDatabase, SaysThatTheFileIsReadOnly) {
    made();
    std::filesystem::permissions(files.path(), std::filesystem::perms{0755});
    std::filesystem::permissions(path, std::filesystem::perms{0444});
    const without_privileges nobody;
    const auto db = open({.name = "sqlite:a.db"});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::permission_denied);
    EXPECT_THAT(db.error().detail, HasSubstr("sqlite:a.db"));
    EXPECT_THAT(db.error().detail, HasSubstr("check mode and owner"));
}

TEST_F(SqliteDatabase, SaysThatTheFileMayNotBeRead) {
    made();
    std::filesystem::permissions(files.path(), std::filesystem::perms{0755});
    std::filesystem::permissions(path, std::filesystem::perms{0000});
    const without_privileges nobody;
    const auto db = open({});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::permission_denied);
}

TEST_F(SqliteDatabase, RefusesToWriteThroughAReadOnlyConnection) {
    made();
    auto db = open({.mode = open_mode::read_only});
    ASSERT_TRUE(db) << db.error().detail;
    EXPECT_EQ(db->integer("SELECT count(*) FROM t"), 0);
    EXPECT_EQ(db->run("INSERT INTO t (v) VALUES (1)").error().code, errc::permission_denied);
}

TEST_F(SqliteDatabase, IsUnavailableAndNotInDoubtWhileAnotherHoldsTheLock) {
    auto holder = made();
    auto db = made();
    const auto held = holder.begin(transaction_kind::immediate);
    ASSERT_TRUE(held);
    const auto refused = db.run("INSERT INTO t (v) VALUES (1)");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::unavailable);
    EXPECT_EQ(refused.error().retry, retry_advice::after_delay);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_THAT(refused.error().detail, HasSubstr("locked"));
    EXPECT_EQ(db.integer("SELECT count(*) FROM t"), 0) << "readers are not blocked";
}

TEST_F(SqliteDatabase, IsOutOfSpaceWhenTheDatabaseIsFullAndKeepsNothingOfTheTransaction) {
    auto db = made();
    ASSERT_TRUE(db.run("PRAGMA max_page_count=8"));
    auto writing = db.begin(transaction_kind::immediate);
    ASSERT_TRUE(writing);
    ASSERT_TRUE(db.run("INSERT INTO t (v) VALUES (1)"));
    const auto refused = db.run("INSERT INTO t (v) VALUES (?)", std::string(1 << 20, 'v'));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::out_of_space);
    EXPECT_THAT(refused.error().detail, HasSubstr("make room"));
    { const auto dropped = std::move(*writing); }
    EXPECT_EQ(db.integer("SELECT count(*) FROM t"), 0);
}

TEST_F(SqliteDatabase, RollsBackATransactionThatIsNotCommitted) {
    auto db = made();
    {
        const auto writing = db.begin(transaction_kind::immediate);
        ASSERT_TRUE(db.run("INSERT INTO t (v) VALUES (1)"));
    }
    EXPECT_EQ(db.integer("SELECT count(*) FROM t"), 0);
    {
        auto writing = db.begin(transaction_kind::immediate);
        ASSERT_TRUE(db.run("INSERT INTO t (v) VALUES (1)"));
        ASSERT_TRUE(writing->commit());
    }
    EXPECT_EQ(db.integer("SELECT count(*) FROM t"), 1);
}

TEST_F(SqliteDatabase, TellsTextBlobNullAndEmptyApart) {
    auto db = made();
    const std::string zeros("a\0b", 3);
    const auto type_of = [&](auto value) {
        auto found = db.prepare("SELECT ?");
        EXPECT_TRUE(found->with(value).step().value());
        return std::pair(found->type(0), found->text(0));
    };
    EXPECT_EQ(type_of(zeros), std::pair(value_type::text, zeros));
    EXPECT_EQ(type_of(blob_view{zeros}), std::pair(value_type::blob, zeros));
    EXPECT_EQ(type_of(std::string_view()), std::pair(value_type::text, std::string()));
    EXPECT_EQ(type_of(blob_view{}), std::pair(value_type::blob, std::string()));
    EXPECT_EQ(type_of(std::nullopt), std::pair(value_type::null, std::string()));
    EXPECT_EQ(type_of(std::optional<std::int64_t>{}), std::pair(value_type::null, std::string()));
    EXPECT_EQ(type_of(42), std::pair(value_type::integer, std::string("42")));
}

TEST_F(SqliteDatabase, ReportsAValueThatIsTooLarge) {
    auto db = made();
    const std::string_view huge(path.data(), std::size_t{1} << 32);  // refused by its length, never read
    const auto refused = db.run("INSERT INTO t (v) VALUES (?)", blob_view{huge});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_argument);
    EXPECT_TRUE(db.run("INSERT INTO t (v) VALUES (?)", blob_view{"x"})) << "the statement can be used again";
}

TEST_F(SqliteDatabase, RefusesAFileThatKeepsTextAsUtf16) {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(
        sqlite3_exec(raw, "PRAGMA encoding='UTF-16'; CREATE TABLE t (n)", nullptr, nullptr, nullptr),
        SQLITE_OK
    );
    sqlite3_close(raw);
    const auto db = open({});
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code, errc::invalid_config);
}

TEST_F(SqliteDatabase, NoticesThatTheFileWasReplaced) {
    auto db = made();
    EXPECT_FALSE(db.moved());
    std::filesystem::rename(path, path + ".old");
    EXPECT_TRUE(db.moved());
    std::ofstream(path) << "";
    EXPECT_TRUE(db.moved());
}

TEST_F(SqliteDatabase, SwitchesTheFileToWriteAheadLogging) {
    made();
    auto db = open({.wal = false});
    auto mode = db->prepare("PRAGMA journal_mode");
    ASSERT_TRUE(mode->step().value());
    EXPECT_EQ(mode->text(0), "wal");
}

}  // namespace
}  // namespace millrace::sqlite
