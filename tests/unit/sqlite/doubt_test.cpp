// A commit whose sync fails may have landed all the same: its frames lie in the log.
#include "database.hpp"
#include "lease_tables.hpp"
#include "support/temporary_folder.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace {
namespace {

/// The syncs of write-ahead logs fail while `fails` is set, of all files that are opened while it lives.
class failing_syncs {
public:
    failing_syncs() {
        real_ = sqlite3_vfs_find(nullptr);
        shim_ = *real_;
        shim_.pNext = nullptr;
        shim_.zName = "failing-syncs";
        shim_.xOpen = &open;
        sqlite3_vfs_register(&shim_, 1);
    }
    failing_syncs(const failing_syncs&) = delete;
    failing_syncs& operator=(const failing_syncs&) = delete;
    ~failing_syncs() {
        sqlite3_vfs_unregister(&shim_);
        sqlite3_vfs_register(real_, 1);
    }

    static inline bool fails = false;

private:
    static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* got) {
        const int code = real_->xOpen(real_, name, file, flags, got);
        if (code != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0) return code;
        methods_ = file->pMethods;
        patched_ = *methods_;
        patched_.xSync = &sync;
        file->pMethods = &patched_;
        return code;
    }
    static int sync(sqlite3_file* file, int flags) {
        return fails ? SQLITE_IOERR_FSYNC : methods_->xSync(file, flags);
    }

    static inline sqlite3_vfs* real_ = nullptr;
    static inline const sqlite3_io_methods* methods_ = nullptr;
    static inline sqlite3_io_methods patched_{};
    sqlite3_vfs shim_{};
};

struct SqliteDoubt : testing::Test {
    SqliteDoubt() { EXPECT_TRUE(lease_tables::ensure(*db)); }
    ~SqliteDoubt() override { failing_syncs::fails = false; }

    void reopen() {
        failing_syncs::fails = false;
        db.reset();
        db.emplace(sqlite::database::open(path, {}).value());
    }

    support::temporary_folder files;
    std::string path = files.file("a.db");
    failing_syncs disk;
    std::optional<sqlite::database> db{
        sqlite::database::open(path, {.mode = sqlite::open_mode::create, .sync = sqlite::durability::full})
            .value()};
};

TEST_F(SqliteDoubt, ACommitWhoseSyncFailsIsInDoubtAndAStatementBeforeItIsNot) {
    ASSERT_TRUE(db->execute("CREATE TABLE t (n)"));
    failing_syncs::fails = true;
    {
        auto open = db->begin(sqlite::transaction_kind::immediate);
        ASSERT_TRUE(open && db->run("INSERT INTO t VALUES (1)"));
        const auto refused = db->run("INSERT INTO nowhere VALUES (1)");
        ASSERT_FALSE(refused);
        EXPECT_FALSE(refused.error().in_doubt);
        const auto done = open->commit();
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, errc::unavailable);
        EXPECT_TRUE(done.error().in_doubt);
    }
    const auto alone = db->run("INSERT INTO t VALUES (2)");
    ASSERT_FALSE(alone);
    EXPECT_TRUE(alone.error().in_doubt) << "a statement of its own commits, too";
    reopen();
    EXPECT_LE(db->integer("SELECT count(*) FROM t").value(), 2);
    EXPECT_TRUE(db->run("INSERT INTO t VALUES (3)"));
}

TEST_F(SqliteDoubt, TheWriteIdOfALeaseTellsWhetherAWriteInDoubtHasLanded) {
    const group_key group{"s", "g"};
    shard_row row;
    row.shard = shard_id{"a"};
    row.version = version{1};
    row.write_id = write_id{7};
    failing_syncs::fails = true;
    const auto written = lease_tables::write(*db, group, row, std::nullopt);
    ASSERT_FALSE(written);
    EXPECT_TRUE(written.error().in_doubt);
    reopen();
    const auto found = lease_tables::read(*db, group, row.shard);
    ASSERT_TRUE(found);
    if (*found) {
        EXPECT_EQ(std::get<shard_row>(**found).write_id, row.write_id);
    } else {
        EXPECT_TRUE(lease_tables::write(*db, group, row, std::nullopt));
    }
}

}  // namespace
}  // namespace millrace
