#include "outbox_pauses.hpp"

#include "outbox_tables.hpp"
#include "relay/window.hpp"
#include "sqlite_outbox_admin.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct SqliteOutboxPauses : testing::Test {
    SqliteOutboxPauses() { EXPECT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('a'), ('b'), ('a')")); }

    fetch_reply fetch(const fetch_request& request = {}) {
        auto reply = outbox_tables::fetch(db, view, request);
        EXPECT_TRUE(reply) << reply.error().detail;
        view.reported(reply->table_identity);
        return reply.value();
    }
    std::vector<std::int64_t> ids(const fetch_request& request = {}) {
        std::vector<std::int64_t> found;
        const auto reply = fetch(request);
        for (const auto* const part : {&reply.ahead, &reply.filled})
            for (const auto& row : (*part)->rows())
                found.push_back(row.id.value());
        return found;
    }

    support::temporary_folder files;
    std::string path = files.file("app.db");
    sqlite_outbox_admin admin = sqlite_outbox_admin::init(path).value();
    sqlite::database db = sqlite::database::open(path, {.name = "sqlite:app.db"}).value();
    outbox_view view;
};

TEST_F(SqliteOutboxPauses, RowsOfAPausedTopicAreLeftOutAheadAndInGaps) {
    EXPECT_TRUE(admin.pause("a").value());
    EXPECT_THAT(ids(), ElementsAre(2));
    EXPECT_THAT(ids({.after = row_id{3}, .gaps = {{row_id{1}, row_id{3}}}}), ElementsAre(2));
    EXPECT_FALSE(fetch({.rows_max = 1}).more) << "nothing else can be read";
}

TEST_F(SqliteOutboxPauses, TheBacklogOfAPausedTopicIsPassedOverOnceAndInShortLooks) {
    constexpr std::int64_t backlog = 50'000;
    ASSERT_TRUE(db.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO outbox "
        "(topic, "
        "value) SELECT 'a', zeroblob(100) FROM n",
        backlog
    ));
    ASSERT_TRUE(db.execute("INSERT INTO outbox (topic) VALUES ('b')"));
    EXPECT_TRUE(admin.pause("a").value());
    std::int64_t steps = 0;  // hundreds of steps of SQLite's machine
    const auto count = [](void* to) { return ++*static_cast<std::int64_t*>(to), 0; };
    sqlite3_progress_handler(db.handle(), 100, count, &steps);
    const auto steps_of_look = [&](const fetch_request& request, fetch_reply& reply) {
        steps = 0;
        reply = fetch(request);
        return steps;
    };

    window seen(100);
    std::vector<std::int64_t> found;
    std::int64_t most = 0;
    int looks = 0;
    for (bool more = true; more && looks < 20; ++looks) {
        fetch_reply reply;
        most = std::max(most, steps_of_look(seen.look(1'000, 1 << 20, 0), reply));
        const auto intake = seen.looked(reply);
        more = intake.more;
        for (const auto& row : intake.rows)
            found.push_back(row.row->id.value());
    }
    EXPECT_THAT(found, ElementsAre(2, 4 + backlog));
    EXPECT_GT(looks, 3);
    fetch_reply reply;
    (void)seen.looked((steps_of_look(seen.look(1'000, 1 << 20, 0), reply), reply));
    const auto idle = steps_of_look(seen.look(1'000, 1 << 20, 0), reply);
    EXPECT_LT(idle, 10) << "what is known to be paused is not walked again";
    EXPECT_LT(most, 5'000) << "one look has a bound";
    sqlite3_progress_handler(db.handle(), 0, nullptr, nullptr);
}

TEST_F(SqliteOutboxPauses, NothingIsReadWhileAllIsPaused) {
    EXPECT_TRUE(admin.pause(std::nullopt).value());
    EXPECT_THAT(ids({.gaps = {{row_id{1}, row_id{3}}}}), IsEmpty());
}

TEST_F(SqliteOutboxPauses, ResumingSendsTheRelayBackToTheHead) {
    EXPECT_TRUE(admin.pause("a").value());
    const auto before = fetch().replay_generation;
    EXPECT_TRUE(admin.resume("a").value());
    EXPECT_NE(fetch().replay_generation, before);
    EXPECT_THAT(ids(), ElementsAre(1, 2, 3));
}

TEST_F(SqliteOutboxPauses, ResumingAllLeavesTopicsThatWerePausedByName) {
    EXPECT_TRUE(admin.pause("b").value());
    EXPECT_TRUE(admin.pause(std::nullopt).value());
    EXPECT_TRUE(admin.stats()->paused);
    EXPECT_TRUE(admin.resume(std::nullopt).value());
    EXPECT_FALSE(admin.stats()->paused);
    EXPECT_THAT(admin.stats()->paused_topics, ElementsAre("b"));
    EXPECT_THAT(ids(), ElementsAre(1, 3));
}

TEST_F(SqliteOutboxPauses, WhatIsSoAlreadyChangesNothing) {
    EXPECT_TRUE(admin.pause("a").value());
    EXPECT_FALSE(admin.pause("a").value());
    EXPECT_FALSE(admin.resume("b").value());
    EXPECT_EQ(fetch().replay_generation, 0u);
}

TEST_F(SqliteOutboxPauses, AnOutboxOfAnEarlierProgramIsPausedByNobodyAndCanBePaused) {
    ASSERT_TRUE(db.execute("DROP TABLE outbox_paused"));
    EXPECT_THAT(ids(), ElementsAre(1, 2, 3));
    EXPECT_FALSE(admin.stats()->paused);
    EXPECT_TRUE(admin.pause("a").value());
    EXPECT_THAT(ids(), ElementsAre(2));
    ASSERT_TRUE(db.execute("DROP TABLE outbox_paused"));
    ASSERT_TRUE(sqlite_outbox_admin::init(path));
    EXPECT_EQ(db.integer("SELECT count(*) FROM outbox_paused").value(), 0);
}

}  // namespace
}  // namespace millrace
