// The database moves under the relay, or the relays share several: a fleet, a failover to a standby, a
// restore from a dump.

#include "postgres_kafka_shop.hpp"
#include "support/private_servers.hpp"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr auto patience = 30s;

TEST(PostgresKafkaMoves, AFleetSharesItsOutboxesAndTakesOverWhatAKilledRelayServed) {
    postgres_kafka_shop shop;
    const auto topic = shop.topic();
    shop.sql().execute("CREATE SCHEMA second");
    const auto second = shop.url() + "?table=second.outbox";
    ASSERT_EQ(support::run({MILLRACE_PROGRAM, "outbox", "init", "--outbox", second}).status, 0);
    const std::vector<std::string> options{
        "--outbox", second, "--fleet-state", shop.url(), "--fleet", "shop", "--lease", "2s"};
    std::optional<support::process> one(shop.start_relay(options));
    const auto other = shop.start_relay(options);
    const auto owners = [&]() -> long long {
        if (shop.sql().number("SELECT count(*) FROM pg_tables WHERE tablename = 'millrace_shard' AND "
                              "schemaname = 'millrace'") == 0) {
            return 0;
        }
        return shop.sql().number(
            "SELECT count(DISTINCT owner) FROM millrace.millrace_shard WHERE group_name = 'shop' AND owner "
            "<> ''"
        );
    };
    ASSERT_TRUE(support::eventually(patience, [&] { return owners() == 2; })) << shop.log();
    const auto delivers = [&] {
        shop.put(topic, "k", "first");
        shop.sql().query("INSERT INTO second.outbox (topic, value) VALUES ($1, 'second')", {topic});
        return support::eventually(patience, [&] {
            return shop.waiting() + shop.sql().number("SELECT count(*) FROM second.outbox") == 0;
        });
    };
    ASSERT_TRUE(delivers()) << shop.log();
    one->signal(SIGKILL);
    EXPECT_TRUE(delivers()) << shop.log();
    EXPECT_TRUE(support::eventually(patience, [&] { return owners() == 1; })) << shop.log();
    EXPECT_EQ(shop.records(topic).size(), 4U);
}

TEST(PostgresKafkaMoves, GoesOnBehindTheStandbyThatIsPromoted) {
    support::private_postgres primary;
    support::kafka_admin kafka(support::services().kafka);
    const auto topic = support::unique_name("moves");
    kafka.create_topic(topic, 1);
    ASSERT_EQ(support::run({MILLRACE_PROGRAM, "outbox", "init", "--outbox", primary.url()}).status, 0);
    support::private_postgres standby(primary);
    const auto hosts = fmt::format(
        "postgresql://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port(),
        standby.port()
    );
    support::temporary_folder folder;
    const auto log = [&] { return support::read_file(folder.file("relay.err")); };
    support::spawn_options to;
    to.output = folder.file("relay.out");
    to.errors = folder.file("relay.err");
    const std::string sink = "kafka://" + support::services().kafka;
    support::process relay(
        {MILLRACE_PROGRAM, "relay", "--outbox", hosts, "--sink", sink, "--lease", "2s"}, to
    );
    const auto put = [&](support::sql_connection& on, const std::string& value) {
        on.query("INSERT INTO outbox (topic, key, value) VALUES ($1, 'k', $2)", {topic, value});
    };
    const auto empty = [](support::sql_connection& on) {
        return support::eventually(patience, [&] { return on.number("SELECT count(*) FROM outbox") == 0; });
    };
    {
        support::sql_connection before(primary.url());
        put(before, "1");
        ASSERT_TRUE(empty(before)) << log();
        put(before, "2");
        ASSERT_TRUE(empty(before)) << log();
        support::sql_connection copy(standby.url());
        ASSERT_TRUE(support::eventually(patience, [&] {
            return copy.number("SELECT count(*) FROM outbox") == 0 &&
                   copy.number("SELECT last_value FROM outbox_id_seq") >= 2;
        }));
    }
    primary.kill();
    ASSERT_TRUE(support::eventually(patience, [&] { return log().find("relay.waits") != std::string::npos; }))
        << log();
    standby.promote();
    support::sql_connection after(standby.url());
    put(after, "3");
    ASSERT_TRUE(empty(after)) << log();
    EXPECT_TRUE(relay.running());
    std::vector<std::string> values;
    for (const auto& record : support::read_topic(support::services().kafka, topic)) {
        if (values.empty() || values.back() != record.value) values.push_back(record.value.value_or(""));
    }
    EXPECT_THAT(values, ElementsAre("1", "2", "3"));
    relay.ask_to_end();
    EXPECT_TRUE(relay.wait(10s));
}

TEST(PostgresKafkaMoves, GoesOnAfterARestoreFromADump) {
    postgres_kafka_shop shop;
    const auto topic = shop.topic();
    support::temporary_folder folder;
    auto relay = shop.start_relay({"--lease", "2s"});
    shop.put(topic, "k", "1");
    ASSERT_TRUE(shop.empties(patience)) << shop.log();
    shop.outbox({"pause"});
    shop.put(topic, "k", "2");
    shop.put(topic, "k", "3");
    const auto dump = folder.file("dump.sql");
    ASSERT_EQ(support::run({"/usr/bin/env", "pg_dump", "--dbname", shop.url(), "--file", dump}).status, 0);
    shop.outbox({"resume"});
    shop.put(topic, "k", "4");
    ASSERT_TRUE(shop.empties(patience)) << shop.log();

    // As it was at the time of the dump: 2 and 3 are back, 4 was never written, and all is paused.
    const auto restored = support::run(
        {"/usr/bin/env",
         "psql",
         shop.url(),
         "-qX1",
         "-v",
         "ON_ERROR_STOP=1",
         "-c",
         "DROP SCHEMA public CASCADE; CREATE SCHEMA public",
         "-f",
         dump}
    );
    ASSERT_EQ(restored.status, 0) << restored.errors;
    EXPECT_EQ(shop.waiting(), 2);
    shop.put(topic, "k", "5");
    shop.outbox({"resume"});
    ASSERT_TRUE(shop.empties(patience)) << shop.log();
    EXPECT_TRUE(relay.running());
    EXPECT_THAT(shop.values(topic, "k"), ElementsAre("1", "2", "3", "4", "2", "3", "5"));
}

}  // namespace
}  // namespace millrace::e2e
