#include "postgres_lease_store.hpp"

#include "contract/loop_host.hpp"
#include "contract/postgres_fixture.hpp"
#include "postgres_lease_rows.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct PostgresLeaseStore : testing::Test {
    std::unique_ptr<postgres_lease_store> make(
        host& on, postgres::server where, std::optional<postgres::table_name> outbox = {}
    ) {
        where.schema = schema.name;
        return std::make_unique<postgres_lease_store>(
            on,
            postgres_lease_store_options{
                .where = std::move(where),
                .group = {"s", "g"},
                .outbox = std::move(outbox),
                .request_timeout = timeout}
        );
    }
    result<void> write(lease_store& to, shard_row row, std::optional<version> expected = {}) {
        return home.await<void>([&](auto done) { to.write(std::move(row), expected, std::move(done)); });
    }
    result<std::optional<lease_row>> read(lease_store& from, const std::string& shard) {
        return home.await<std::optional<lease_row>>([&](auto done) {
            from.read(shard_id{shard}, std::move(done));
        });
    }
    /// Tries again until it succeeds, or for some seconds.
    bool eventually(const std::function<bool()>& succeeds) {
        for (int i = 0; i < 500; ++i) {
            if (succeeds()) return true;
            home.run_for(10ms);
        }
        return false;
    }
    static shard_row shard(std::string name, std::uint64_t v) {
        shard_row row;
        row.shard = shard_id{std::move(name)};
        row.version = version{v};
        row.write_id = write_id{v + 70};
        row.updated_at = wall_time{1ms};
        return row;
    }

    milliseconds timeout{10'000};
    test::postgres_schema schema{"lease"};
    test::loop_host home;
};

TEST_F(PostgresLeaseStore, MakesItsSchemaAndTablesForManyAtOnce) {
    schema.admin.execute("DROP SCHEMA " + schema.name);
    std::vector<std::thread> starters;
    for (int i = 0; i < 6; ++i) {
        starters.emplace_back([&, i] {
            test::loop_host mine;
            const auto store = make(mine, test::shared_server());
            const auto done = mine.await<void>([&](auto d) {
                store->write(shard(std::to_string(i), 1), std::nullopt, std::move(d));
            });
            EXPECT_TRUE(done) << done.error().detail;
        });
    }
    for (auto& starter : starters)
        starter.join();
    EXPECT_EQ(schema.admin.number("SELECT count(*) FROM " + schema.table("millrace_shard")), 6);
}

TEST_F(PostgresLeaseStore, RefusesTablesOfANewerProgram) {
    ASSERT_TRUE(read(*make(home, test::shared_server()), "a"));
    schema.admin.execute("UPDATE " + schema.table("millrace_meta") + " SET value = 2");
    const auto refused = read(*make(home, test::shared_server()), "a");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::wrong_version);
    EXPECT_THAT(refused.error().detail, HasSubstr("version 2"));
}

TEST_F(PostgresLeaseStore, DoesNotMakeTablesAnewThatWereDroppedWhileItUsedThemButUsesThoseOfAnother) {
    const auto store = make(home, test::shared_server());
    ASSERT_TRUE(write(*store, shard("a", 1)));
    schema.admin.execute("DROP SCHEMA " + schema.name + " CASCADE");
    const auto met = read(*store, "a");
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, errc::not_found);
    EXPECT_EQ(met.error().retry, retry_advice::after_delay);
    const auto written = write(*store, shard("a", 1));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, errc::not_found);
    EXPECT_THAT(written.error().detail, HasSubstr("to begin anew instead, stop all workers"));
    const auto other = make(home, test::shared_server());
    EXPECT_TRUE(write(*other, shard("a", 1)));
    EXPECT_TRUE(eventually([&] { return read(*store, "a").has_value(); }));
}

TEST_F(PostgresLeaseStore, ShowsTheSqlToWhoMayNotMakeTables) {
    const auto role = support::unique_name("poor");
    schema.admin.execute(
        "CREATE ROLE " + role + " LOGIN; GRANT USAGE ON SCHEMA " + schema.name + " TO " + role
    );
    {
        auto where = test::shared_server();
        for (auto& [keyword, value] : where.parameters) {
            if (keyword == "user") value = role;
        }
        const auto refused = read(*make(home, where), "a");
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::permission_denied);
        EXPECT_THAT(refused.error().detail, HasSubstr("CREATE TABLE IF NOT EXISTS \"" + schema.name + "\""));
    }
    schema.admin.execute("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(PostgresLeaseStore, NamesTheColumnOfAHandWrittenRow) {
    const auto store = make(home, test::shared_server());
    ASSERT_TRUE(write(*store, shard("a", 1)));
    schema.admin.execute("UPDATE " + schema.table("millrace_shard") + " SET sequence = 'twelve'");
    const auto refused = read(*store, "a");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::corrupt);
    EXPECT_THAT(refused.error().detail, HasSubstr("column sequence of shard \"a\""));
}

TEST_F(PostgresLeaseStore, ListsAShardWhoseRowCannotBeReadByItsNameAndTheOthersAsTheyAre) {
    const auto store = make(home, test::shared_server());
    ASSERT_TRUE(write(*store, shard("a", 1)));
    ASSERT_TRUE(write(*store, shard("b", 1)));
    schema.admin.execute(
        "UPDATE " + schema.table("millrace_shard") + " SET sequence = 'twelve' WHERE shard = 'a'"
    );
    auto listed = home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    ASSERT_TRUE(listed) << listed.error().detail;
    ASSERT_EQ(listed->size(), 2U);
    if (listed->front().unreadable.empty()) std::swap(listed->front(), listed->back());
    EXPECT_EQ(listed->front().shard, shard_id{"a"});
    EXPECT_THAT(listed->front().unreadable, HasSubstr("column sequence of shard \"a\""));
    EXPECT_EQ(listed->back(), shard("b", 1));
}

TEST_F(PostgresLeaseStore, ListsAWorkerWhoseRowCannotBeReadByItsSessionAndTheOthersAsTheyAre) {
    const auto store = make(home, test::shared_server());
    worker_row row{.worker = worker_id{"w"}, .counter = version{1}, .lease = std::chrono::seconds{10}};
    for (const auto* name : {"a", "b"}) {
        row.incarnation = incarnation{name};
        ASSERT_TRUE(home.await<void>([&](auto done) { store->write(row, std::nullopt, std::move(done)); }));
    }
    schema.admin.execute(
        "UPDATE " + schema.table("millrace_worker") + " SET counter = -1 WHERE incarnation = 'a'"
    );
    auto listed =
        home.await<std::vector<worker_row>>([&](auto done) { store->list_workers(std::move(done)); });
    ASSERT_TRUE(listed) << listed.error().detail;
    ASSERT_EQ(listed->size(), 2U);
    if (listed->front().unreadable.empty()) std::swap(listed->front(), listed->back());
    EXPECT_EQ(listed->front().incarnation, incarnation{"a"});
    EXPECT_EQ(listed->front().counter, version{0});
    EXPECT_EQ(listed->front().lease, nanoseconds{std::chrono::seconds{10}});
    EXPECT_THAT(listed->front().unreadable, HasSubstr("column counter of worker \"w\""));
    EXPECT_EQ(listed->back(), row);
}

TEST_F(PostgresLeaseStore, KeepsTheLeaseOfAnOutboxBesideIt) {
    const auto store = make(home, test::shared_server(), postgres::table_name{schema.name, "Out Box"});
    const auto early = write(*store, shard("outbox", 1));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, errc::not_found);
    EXPECT_EQ(early.error().retry, retry_advice::after_delay);
    EXPECT_THAT(early.error().detail, HasSubstr("outbox init"));
    schema.admin.execute("CREATE TABLE " + schema.table("\"Out Box\"") + " (id bigint)");
    ASSERT_TRUE(eventually([&] { return write(*store, shard("outbox", 1)).has_value(); }));
    EXPECT_EQ(
        schema.admin.value(
            "SELECT concat_ws('/', stream, group_name, shard) FROM " + schema.table("millrace_shard")
        ),
        "/outbox:" + schema.name + ".Out Box/outbox"
    );
}

TEST_F(PostgresLeaseStore, LeavesAWriteInDoubtWhoseReplyIsLostAndItsIdInTheRow) {
    support::fault_proxy proxy(support::port_of(support::services().postgres));
    const auto store = make(home, test::shared_server_at(proxy.port()));
    ASSERT_TRUE(write(*store, shard("a", 1)));
    proxy.lose_reply("UPDATE");
    const auto lost = write(*store, shard("a", 2), version{1});
    ASSERT_FALSE(lost);
    EXPECT_TRUE(lost.error().in_doubt);
    std::optional<lease_row> found;
    ASSERT_TRUE(eventually([&] {
        auto row = read(*store, "a");
        if (row) found = *row;
        return found && version_of(*found) == version{2};
    }));
    EXPECT_EQ(std::get<shard_row>(*found).write_id, write_id{72});
}

TEST_F(PostgresLeaseStore, LeavesAReadOutOfDoubtAndGoesOnAfterEveryCut) {
    support::fault_proxy proxy(support::port_of(support::services().postgres));
    const auto store = make(home, test::shared_server_at(proxy.port()));
    ASSERT_TRUE(write(*store, shard("a", 1)));
    proxy.lose_reply("SELECT");
    const auto lost = read(*store, "a");
    ASSERT_FALSE(lost);
    EXPECT_FALSE(lost.error().in_doubt);
    for (int i = 0; i < 5; ++i) {
        proxy.cut();
        ASSERT_TRUE(eventually([&] { return read(*store, "a").has_value(); }));
    }
}

TEST_F(PostgresLeaseStore, NamesWhoBlocksAWriteAndIsNotHeldUpElsewhere) {
    timeout = 200ms;
    const auto loop = make(home, test::shared_server());
    const auto keeper = make(home, test::shared_server());
    ASSERT_TRUE(write(*loop, shard("a", 1)));
    ASSERT_TRUE(write(*keeper, shard("b", 1)));
    schema.admin.execute("BEGIN");
    schema.admin.execute("SELECT * FROM " + schema.table("millrace_shard") + " WHERE shard = 'a' FOR SHARE");
    std::optional<result<void>> blocked;
    loop->write(shard("a", 2), version{1}, [&](result<void> r) { blocked = std::move(r); });
    std::uint64_t beats = 1;
    for (; beats < 4; ++beats) {
        const auto beat = write(*keeper, shard("b", beats + 1), version{beats});
        EXPECT_TRUE(beat) << beat.error().detail;
    }
    ASSERT_TRUE(home.run_until([&] { return blocked.has_value(); }));
    ASSERT_FALSE(*blocked);
    EXPECT_EQ(blocked->error().code, errc::unavailable);
    EXPECT_FALSE(blocked->error().in_doubt);
    EXPECT_THAT(blocked->error().detail, HasSubstr("pid " + std::to_string(schema.admin.backend())));
    schema.admin.execute("ROLLBACK");
    EXPECT_TRUE(write(*loop, shard("a", 2), version{1}));
}

TEST_F(PostgresLeaseStore, ListsTheGroupsOfAStream) {
    ASSERT_TRUE(write(*make(home, test::shared_server()), shard("a", 1)));
    auto where = test::shared_server();
    where.schema = schema.name;
    EXPECT_THAT(postgres_groups(where, "s").value(), ElementsAre("g"));
    EXPECT_TRUE(postgres_groups(where, "t").value().empty());
    where.schema = "no_such_schema";
    EXPECT_EQ(postgres_groups(where, "s").error().code, errc::not_found);
}

}  // namespace
}  // namespace millrace
