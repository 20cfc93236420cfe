#include "sqlite_outbox.hpp"

#include "contract/loop_host.hpp"
#include "database.hpp"
#include "sqlite_outbox_admin.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct SqliteOutboxSource : testing::Test {
    result<fetch_reply> fetch(fetch_request request = {}) {
        return home.await<fetch_reply>([&](completion<fetch_reply> done) {
            source.fetch(std::move(request), std::move(done));
        });
    }

    support::temporary_folder files;
    std::string path = files.file("app.db");
    sqlite_outbox_admin admin = sqlite_outbox_admin::init(path).value();
    sqlite::database db = sqlite::database::open(path, {}).value();
    test::loop_host home;
    sqlite_outbox source{home, {.path = path}};
};

TEST_F(SqliteOutboxSource, BringsAnOutboxOfTheFirstVersionToTheNewestSoThatDeadLettersNeverCollide) {
    ASSERT_TRUE(db.execute(
        "DROP TABLE outbox_dead; CREATE TABLE outbox_dead (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key "
        "BLOB, "
        "value BLOB, headers TEXT, partition INTEGER, created_at INTEGER NOT NULL, reason TEXT NOT NULL, "
        "error TEXT "
        "NOT NULL, attempts INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL);"
        "INSERT INTO outbox_dead VALUES (7, 't', x'6b', x'76', NULL, NULL, 1, 'r', 'e', 1, 1, 1);"
        "UPDATE outbox_meta SET schema_version = 1"
    ));
    ASSERT_TRUE(fetch());
    EXPECT_EQ(db.integer("SELECT schema_version FROM outbox_meta"), 2);
    EXPECT_EQ(db.integer("SELECT count(*) FROM outbox_dead WHERE id = 7 AND entry = 1"), 1);
}

}  // namespace
}  // namespace millrace
