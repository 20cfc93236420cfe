#include "support/private_servers.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

TEST(PostgresServers, TheSharedOneAnswersAndFailuresAreThrown) {
    sql_connection sql{services().postgres};
    EXPECT_EQ(sql.number("SELECT $1::int + 1", {"1"}), 2);
    EXPECT_EQ(sql.query("SELECT NULL, '', 'a'"), (std::vector<sql_connection::row>{{std::nullopt, "", "a"}}));
    try {
        sql.query("SELECT nonsense");
        ADD_FAILURE() << "no error";
    } catch (const sql_error& error) {
        EXPECT_EQ(error.state(), "42703");
    }
    EXPECT_THROW(sql.value("SELECT NULL"), sql_error);
}

TEST(PostgresServers, APrivatePostgresSurvivesEveryKindOfEnd) {
    private_postgres server{{"max_connections=20"}};
    auto count = [&] {
        sql_connection sql{server.url()};
        sql.execute("CREATE TABLE IF NOT EXISTS t (id bigserial); INSERT INTO t DEFAULT VALUES");
        return sql.number("SELECT count(*) FROM t");
    };
    EXPECT_EQ(sql_connection{server.url()}.value("SHOW max_connections"), "20");
    EXPECT_EQ(count(), 1);
    server.restart();
    EXPECT_EQ(count(), 2);
    server.stop_immediately();
    EXPECT_FALSE(server.running());
    server.start();
    EXPECT_EQ(count(), 3);
    server.kill();
    EXPECT_THROW(sql_connection{server.url()}, sql_error);
    server.start();
    EXPECT_EQ(count(), 4);
    server.configure({"work_mem='5MB'"});
    EXPECT_TRUE(eventually(std::chrono::seconds{10}, [&] {
        return sql_connection{server.url()}.value("SHOW work_mem") == "5MB";
    }));
}

TEST(PostgresServers, AStandbyFollowsAndIsPromoted) {
    const private_postgres primary;
    sql_connection{primary.url()}.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
    private_postgres standby{primary};
    EXPECT_EQ(sql_connection{standby.url()}.value("SELECT pg_is_in_recovery()"), "t");
    sql_connection{primary.url()}.execute("INSERT INTO t VALUES (2)");
    EXPECT_TRUE(eventually(std::chrono::seconds{10}, [&] {
        return sql_connection{standby.url()}.number("SELECT count(*) FROM t") == 2;
    }));
    standby.promote();
    sql_connection{standby.url()}.execute("INSERT INTO t VALUES (3)");
}

TEST(PostgresServers, PgBouncerPoolsTransactions) {
    private_pgbouncer pool{port_of(services().postgres), {"default_pool_size=1"}};
    sql_connection one{pool.url()};
    sql_connection two{pool.url()};
    EXPECT_EQ(one.value("SELECT pg_backend_pid()"), two.value("SELECT pg_backend_pid()"));
    pool.restart();
    EXPECT_THROW(one.query("SELECT 1"), sql_error);
    EXPECT_EQ(sql_connection{pool.url()}.number("SELECT 1"), 1);
}

TEST(PostgresServers, APausedServerKeepsItsConnectionsAndDoesNotAnswer) {
    private_pgbouncer pool{port_of(services().postgres)};
    pool.pause();
    EXPECT_THROW(sql_connection{pool.url() + "?connect_timeout=2"}, sql_error);
    pool.resume();
    EXPECT_EQ(sql_connection{pool.url()}.number("SELECT 1"), 1);
}

}  // namespace
}  // namespace millrace::support
