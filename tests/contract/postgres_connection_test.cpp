#include "catalog.hpp"
#include "connection.hpp"
#include "contract/postgres_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/process.hpp"

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::postgres {
namespace {

using namespace std::chrono_literals;
using test::reading;
using test::writing;
using testing::HasSubstr;

struct PostgresConnection : testing::Test {
    void SetUp() override { schema.admin.execute("CREATE TABLE " + t + " (id bigint PRIMARY KEY, v bytea)"); }
    statement insert(std::int64_t id) { return writing("INSERT INTO " + t + " (id) VALUES ($1)").with(id); }
    long long count() { return schema.admin.number("SELECT count(*) FROM " + t); }
    long long running(const std::string& mark) {
        return schema.admin.number(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND "
            "query LIKE $1",
            {"%" + mark + "%"}
        );
    }

    static connection open(const server& where, const stop_signal& stop, limits given = {}) {
        auto made = connection::open(where, stop, given);
        if (!made) throw std::runtime_error(made.error().detail);
        return std::move(*made);
    }

    test::postgres_schema schema{"connection"};
    std::string t = schema.table("t");
    stop_signal stop;
    connection db = open(test::shared_server(), stop);
};

TEST_F(PostgresConnection, GivesBackWhatItSends) {
    const std::vector<std::int64_t> numbers{1, -1};
    const std::vector<std::optional<std::string_view>> texts{"a", std::nullopt, ""};
    const auto found =
        db.run(reading("SELECT $1, $2, $3, $4, $5::bigint, $6, $7[2], array_length($8, 1), $7[1] || 'b'")
                   .with(
                       std::int64_t{1} << 40,
                       "t",
                       bytes_view{std::string_view("\0\xff", 2)},
                       wall_time{1'700'000'000'123ms},
                       std::nullopt,
                       true,
                       text_array{texts},
                       std::span<const std::int64_t>(numbers)
                   ));
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(found->integer(0, 0), std::int64_t{1} << 40);
    EXPECT_EQ(found->value(0, 1), "t");
    EXPECT_EQ(found->value(0, 2), std::string_view("\0\xff", 2));
    EXPECT_EQ(found->time(0, 3), wall_time{1'700'000'000'123ms});
    EXPECT_TRUE(found->is_null(0, 4));
    EXPECT_EQ(found->boolean(0, 5), true);
    EXPECT_TRUE(found->is_null(0, 6));
    EXPECT_EQ(found->integer(0, 7), 2);
    EXPECT_EQ(found->text(0, 8), "ab");
}

TEST_F(PostgresConnection, RunsABatchAsOneTransaction) {
    ASSERT_TRUE(db.run_together(std::vector{insert(1), insert(2)}));
    const auto refused = db.run_together(std::vector{insert(3), insert(1), insert(4)});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::conflict);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_EQ(count(), 2);
}

TEST_F(PostgresConnection, ReportsWhatFailsOnlyAtTheCommit) {
    schema.admin.execute(
        "DROP TABLE " + t + "; CREATE TABLE " + t + " (id bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)"
    );
    ASSERT_TRUE(db.run(insert(1)));
    const auto refused = db.run(insert(1));
    ASSERT_FALSE(refused) << "the statement itself had succeeded";
    EXPECT_EQ(refused.error().code, errc::conflict);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_TRUE(db.run(insert(2)));
    EXPECT_EQ(count(), 2);
}

TEST_F(PostgresConnection, CommitsATransactionOrUndoesIt) {
    {
        auto kept = db.begin();
        ASSERT_TRUE(db.run(insert(1)));
        EXPECT_EQ(count(), 0);
        ASSERT_TRUE(kept.commit());
    }
    {
        auto dropped = db.begin();
        ASSERT_TRUE(db.run(insert(2)));
    }
    {
        auto with_the_last = db.begin(isolation::repeatable_read);
        EXPECT_EQ(
            db.run(reading("SELECT current_setting('transaction_isolation')"))->text(0, 0), "repeatable read"
        );
        ASSERT_TRUE(with_the_last.commit_with(std::vector{insert(3)}));
    }
    EXPECT_TRUE(db.begin().commit()) << "nothing was sent";
    EXPECT_EQ(schema.admin.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM " + t), "1 3");
}

TEST_F(PostgresConnection, NeverTakesAFailedTransactionForCommitted) {
    auto failed = db.begin();
    ASSERT_TRUE(db.run(insert(1)));
    ASSERT_FALSE(db.run(insert(1)));
    const auto refused = failed.commit();
    ASSERT_FALSE(refused);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_EQ(count(), 0);
}

TEST_F(PostgresConnection, GoesOnAfterATransactionFailed) {
    {
        auto failed = db.begin();
        ASSERT_FALSE(db.run(writing("nonsense")));
    }
    EXPECT_TRUE(db.run(insert(1)));
    EXPECT_EQ(count(), 1);
}

TEST_F(PostgresConnection, HoldsItsLimitsInEachTransaction) {
    const auto shown = [](connection& on) {
        return on
            .run(reading("SELECT concat_ws(' ', current_setting('statement_timeout'), "
                         "current_setting('lock_timeout'), current_setting('synchronous_commit'), "
                         "current_setting('enable_seqscan'))"))
            ->text(0, 0);
    };
    const support::private_pgbouncer pooler(
        support::port_of(support::services().postgres), {"default_pool_size=1"}
    );
    auto pooled = open(test::shared_server_at(pooler.port()), stop);
    auto other = open(test::shared_server_at(pooler.port()), stop);
    for (auto* on : {&db, &pooled}) {
        on->set_limits(
            {.statement = 1'234ms,
             .lock = 567ms,
             .idle_in_transaction = 890ms,
             .commit = durability::relaxed,
             .by_index = true}
        );
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(shown(*on), "1234ms 567ms off off");
        {
            auto inside = on->begin();
            EXPECT_EQ(shown(*on), "1234ms 567ms off off");
            on->set_limits({.statement = 0ms, .lock = 0ms, .commit = durability::durable});
        }
        EXPECT_EQ(shown(*on), "0 0 on on") << "what a transaction has set is undone with it";
        ASSERT_FALSE(on->run(reading("SELECT 1 / 0")));
        EXPECT_EQ(shown(*on), "0 0 on on");
        on->set_limits({});
        EXPECT_EQ(shown(*on), "2s 1s on on");
        EXPECT_EQ(shown(other), "2s 1s on on") << "the other client of a pooled session sees nothing of it";
    }
}

TEST_F(PostgresConnection, TakesNoFurtherProcessesOfTheServerForAQuery) {
    const auto role = support::unique_name("parallel");
    schema.admin.execute(
        "CREATE ROLE " + role + " LOGIN SUPERUSER; ALTER ROLE " + role +
        " SET parallel_setup_cost = 0; ALTER ROLE " + role + " SET parallel_tuple_cost = 0; ALTER ROLE " +
        role + " SET min_parallel_table_scan_size = 0"
    );
    {
        auto where = test::shared_server();
        for (auto& [keyword, value] : where.parameters) {
            if (keyword == "user") value = role;
        }
        auto tempted = open(where, stop);
        const auto plan = [&] {
            std::string lines;
            const auto got = tempted.run(reading("EXPLAIN SELECT count(*) FROM pg_attribute"));
            for (std::size_t i = 0; got && i < got->size(); ++i)
                lines += got->text(i, 0);
            return lines;
        };
        EXPECT_THAT(plan(), AllOf(HasSubstr("Scan"), Not(HasSubstr("Gather"))));
    }
    schema.admin.execute("DROP ROLE " + role);
}

TEST_F(PostgresConnection, ReadsCommittedWhateverTheDefaultIs) {
    const auto role = support::unique_name("repeats");
    schema.admin.execute(
        "CREATE ROLE " + role + " LOGIN SUPERUSER; ALTER ROLE " + role +
        " SET default_transaction_isolation = 'repeatable read'"
    );
    {
        auto where = test::shared_server();
        for (auto& [keyword, value] : where.parameters) {
            if (keyword == "user") value = role;
        }
        auto strict = open(where, stop);
        for (int i = 0; i < 4; ++i) {
            const std::vector both{
                reading("SELECT current_setting('transaction_isolation')"), insert(100 + i)};
            const auto done = strict.begin().commit_with(both);
            ASSERT_TRUE(done) << done.error().detail;
            EXPECT_EQ(done->front().text(0, 0), "read committed");
            const std::vector one{reading("SELECT current_setting('transaction_isolation')")};
            EXPECT_EQ(
                strict.begin(isolation::repeatable_read).commit_with(one)->front().text(0, 0),
                "repeatable read"
            );
        }
        EXPECT_EQ(count(), 4);
    }
    schema.admin.execute("DROP ROLE " + role);
}

TEST_F(PostgresConnection, IsDurableAlsoWhereTheServerIsNot) {
    const auto role = support::unique_name("lax");
    schema.admin.execute(
        "CREATE ROLE " + role + " LOGIN; ALTER ROLE " + role + " SET synchronous_commit = off"
    );
    {
        auto where = test::shared_server();
        for (auto& [keyword, value] : where.parameters) {
            if (keyword == "user") value = role;
        }
        auto lax = open(where, stop, {.commit = durability::durable});
        EXPECT_EQ(lax.run(reading("SELECT current_setting('synchronous_commit')"))->text(0, 0), "local");
        lax.set_limits({});
        EXPECT_EQ(lax.run(reading("SELECT current_setting('synchronous_commit')"))->text(0, 0), "off");
    }
    schema.admin.execute("DROP ROLE " + role);
}

TEST_F(PostgresConnection, LetsTheServerEndWhatTakesTooLong) {
    db.set_limits({.statement = 20ms});
    const auto refused = db.run(reading("SELECT pg_sleep(20)"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::unavailable);
    EXPECT_EQ(db.last_refusal(), "57014");
    EXPECT_TRUE(db.run(reading("SELECT 1")));
}

TEST_F(PostgresConnection, CancelsAndClosesWhenNoReplyComes) {
    db.set_limits({.statement = 0ms, .reply = 100ms});
    const auto mark = support::unique_name("overrun");
    const auto refused = db.run(writing("SELECT pg_sleep(60), '" + mark + "'"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::unavailable);
    EXPECT_TRUE(refused.error().in_doubt);
    EXPECT_FALSE(db.usable());
    EXPECT_TRUE(support::eventually(5s, [&] { return running(mark) == 0; }));
    EXPECT_EQ(db.run(reading("SELECT 1")).error().retry, retry_advice::now) << "a new one is to be made";
}

TEST_F(PostgresConnection, StopsAtOnceWhateverItWaitsFor) {
    const auto mark = support::unique_name("stopped");
    std::chrono::steady_clock::time_point stopped_at;
    std::thread stopper([&] {
        EXPECT_TRUE(support::eventually(20s, [&] { return running(mark) == 1; }));
        stopped_at = std::chrono::steady_clock::now();
        stop.set();
    });
    const auto refused = db.run(reading("SELECT pg_sleep(60), '" + mark + "'"));
    stopper.join();
    EXPECT_LT(std::chrono::steady_clock::now() - stopped_at, 2s);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::cancelled);
    EXPECT_EQ(connection::open(test::shared_server(), stop).error().code, errc::cancelled);
}

TEST_F(PostgresConnection, NamesWhoHoldsTheLock) {
    schema.admin.execute("INSERT INTO " + t + " VALUES (1)");
    schema.admin.execute("BEGIN");
    schema.admin.execute("UPDATE " + t + " SET v = 'x' WHERE id = 1");
    db.set_limits({.lock = 50ms});
    auto refused = db.run(writing("DELETE FROM " + t));
    ASSERT_FALSE(refused);
    EXPECT_EQ(db.last_refusal(), "55P03");
    const auto named = name_blocker(db, refused.error(), {schema.name, "t"});
    EXPECT_EQ(named.code, errc::unavailable);
    EXPECT_THAT(
        named.detail, HasSubstr("pid " + std::to_string(schema.admin.backend()) + " holds a lock on " + t)
    );
    EXPECT_THAT(named.detail, HasSubstr("idle in transaction"));
    EXPECT_THAT(named.detail, HasSubstr("latest statement began at 2"));
    schema.admin.execute("ROLLBACK");
    const auto other = db.run(reading("SELECT * FROM nothing_of_this_name"));
    EXPECT_EQ(name_blocker(db, other.error(), {schema.name, "t"}), other.error()) << "no lock was in the way";
}

TEST_F(PostgresConnection, FindsATableByTheSearchPath) {
    EXPECT_EQ(find_table(db, {schema.name, "t"}, "")->name, (table_name{schema.name, "t"}));
    EXPECT_EQ(find_table(db, {"", "pg_class"}, "")->name, (table_name{"pg_catalog", "pg_class"}));
    const auto missing = find_table(db, {schema.name, "T"}, "make it");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, errc::not_found);
    EXPECT_EQ(missing.error().retry, retry_advice::after_delay);
    EXPECT_THAT(missing.error().detail, HasSubstr("make it"));
}

TEST_F(PostgresConnection, ReadsWhileItSends) {
    const std::string large(2'000'000, 'x');
    std::vector<statement> batch;
    for (int i = 0; i < 20; ++i)
        batch.push_back(reading("SELECT $1").with(large));
    const auto echoed = db.run_together(batch);
    ASSERT_TRUE(echoed) << echoed.error().detail;
    for (const auto& one : *echoed)
        EXPECT_EQ(one.value(0, 0)->size(), large.size());
}

TEST_F(PostgresConnection, SeesThatTheServerHasClosedIt) {
    EXPECT_TRUE(db.still_open());
    schema.admin.query(
        "SELECT pg_terminate_backend($1::int, 5000)",
        {std::to_string(*db.run(reading("SELECT pg_backend_pid()"))->integer(0, 0))}
    );
    EXPECT_TRUE(support::eventually(5s, [&] { return !db.still_open(); }));
}

TEST_F(PostgresConnection, LeavesAWriteInDoubtWhoseReplyIsLost) {
    support::fault_proxy proxy(support::port_of(support::services().postgres));
    auto cut = open(test::shared_server_at(proxy.port()), stop);
    proxy.lose_reply("INSERT INTO");
    const auto lost = cut.run(insert(1));
    ASSERT_FALSE(lost);
    EXPECT_TRUE(lost.error().in_doubt);
    EXPECT_EQ(lost.error().code, errc::unavailable);
    EXPECT_FALSE(cut.usable());
    ASSERT_TRUE(proxy.lost_reply());
    EXPECT_TRUE(support::eventually(5s, [&] { return count() == 1; }));
}

TEST_F(PostgresConnection, LeavesNothingInDoubtThatCannotHaveBeenCommitted) {
    support::fault_proxy proxy(support::port_of(support::services().postgres));
    auto cut = open(test::shared_server_at(proxy.port()), stop);
    auto unfinished = cut.begin();
    ASSERT_TRUE(cut.run(insert(1)));
    proxy.lose_reply("INSERT INTO");
    EXPECT_FALSE(cut.run(insert(2)).error().in_doubt) << "no commit was sent";
    auto reader = open(test::shared_server_at(proxy.port()), stop);
    proxy.lose_reply("SELECT 77");
    EXPECT_FALSE(reader.run(reading("SELECT 77")).error().in_doubt) << "it only read";
}

TEST_F(PostgresConnection, LeavesALostCommitInDoubt) {
    support::fault_proxy proxy(support::port_of(support::services().postgres));
    auto cut = open(test::shared_server_at(proxy.port()), stop);
    auto ended = cut.begin();
    ASSERT_TRUE(cut.run(insert(1)));
    proxy.lose_reply("COMMIT");
    EXPECT_TRUE(ended.commit().error().in_doubt);
}

TEST_F(PostgresConnection, GoesOnToTheNextHostWhenOneSaysNothing) {
    support::fault_proxy silent(support::port_of(support::services().postgres));
    silent.hold();
    auto where = test::shared_server();
    for (auto& [keyword, value] : where.parameters) {
        if (keyword == "port") value = std::to_string(silent.port()) + "," + value;
        if (keyword == "host") value = value + "," + value;
        if (keyword == "connect_timeout") value = "2";
    }
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(connection::open(where, stop));
    EXPECT_GE(std::chrono::steady_clock::now() - began, 1'900ms);
}

TEST_F(PostgresConnection, SpeaksTlsWithTheServerThatItsAuthorityHasSigned) {
    support::private_postgres server;
    const auto& tls = support::services().tls;
    const auto key = server.folder() / "data" / "server.key";
    std::filesystem::copy_file(tls / "server.crt", server.folder() / "data" / "server.crt");
    std::filesystem::copy_file(tls / "server.key", key);
    struct stat of_data {};
    ASSERT_EQ(::stat((server.folder() / "data").c_str(), &of_data), 0);
    ASSERT_EQ(::chown(key.c_str(), of_data.st_uid, of_data.st_gid), 0);
    std::filesystem::permissions(key, std::filesystem::perms::owner_read);
    server.configure({"ssl=on"});
    server.restart();
    const auto trusting = [&](const char* authority) {
        return parse_server(server.url() + "?sslmode=verify-full&sslrootcert=" + (tls / authority).string());
    };
    auto safe = open(*trusting("ca.crt"), stop);
    const auto used = safe.run(reading("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"));
    ASSERT_TRUE(used) << used.error().detail;
    EXPECT_EQ(used->boolean(0, 0), true);
    const auto refused = connection::open(*trusting("other-ca.crt"), stop);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("certificate"));
}

TEST_F(PostgresConnection, SaysOfAReadOnlyServerWhatToDo) {
    auto standing_by = db.begin();
    ASSERT_TRUE(db.run(reading("SET TRANSACTION READ ONLY")));
    const auto refused = db.run(insert(1));
    EXPECT_EQ(refused.error().code, errc::unavailable);
    EXPECT_THAT(refused.error().detail, HasSubstr("name the primary, or promote it"));
}

TEST_F(PostgresConnection, RefusesAWrongDatabaseAndAnAbsentServer) {
    auto where = test::shared_server();
    for (auto& [keyword, value] : where.parameters) {
        if (keyword == "dbname") value = "no_such_database";
    }
    EXPECT_EQ(connection::open(where, stop).error().code, errc::not_found);
    support::fault_proxy nowhere;
    const auto absent = connection::open(test::shared_server_at(nowhere.port()), stop);
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().code, errc::unavailable);
    EXPECT_EQ(absent.error().retry, retry_advice::after_delay);
}

}  // namespace
}  // namespace millrace::postgres
