// Outboxes in PostgreSQL as people set them up: other layouts, roles, poolers, restarts.

#include "integration/goharvest_tables.hpp"
#include "integration/postgres_relay.hpp"
#include "support/private_servers.hpp"

#include <millrace/outbox_postgres.hpp>

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PostgresOutbox, ServesATableInGoharvestsLayoutAsItIs) {
    outbox_place place(support::services().postgres, goharvest_table);
    place.run(
        "INSERT INTO {} (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, "
        "kafka_header_values) VALUES (now(), 'orders', 'k', 'v', '{{a,b}}', '{{1,2}}'), (now(), 'orders', "
        "'k', NULL, "
        "'{{}}', '{{}}'), (now(), 'orders', 'bad', 'v', '{{a,b}}', '{{1}}'), (now(), 'orders', 'worse', 'v', "
        "ARRAY[NULL], '{{1}}'), (now(), 'orders', 'k', 'last', '{{}}', '{{}}')"
    );
    postgres_relay relay(place);
    ASSERT_TRUE(relay.delivers(3)) << "rows with broken headers stop nothing";
    EXPECT_THAT(relay.sink.ids(), ElementsAre(1, 2, 5));
    EXPECT_THAT(relay.sink.log[0].headers, ElementsAre(testing::Pair("a", "1"), testing::Pair("b", "2")));
    EXPECT_TRUE(relay.settles());
    const auto dead = sure(place.admin().list_dead({}));
    ASSERT_EQ(dead.size(), 2u);
    EXPECT_THAT(dead[0].broken_headers, HasSubstr("as many header values"));
    EXPECT_EQ(dead[0].stored_headers, "names {a,b}, values {1}");

    place.run("ALTER TABLE {} ALTER COLUMN create_time SET DEFAULT now()");
    EXPECT_EQ(sure(place.admin().retry_dead({.ids = {row_id{3}}, .topic = {}, .key = {}})), 1u);
    EXPECT_TRUE(relay.until([&] { return sure(place.admin().list_dead({})).size() == 2; }))
        << "back, and dead again";
    EXPECT_EQ(
        sure(place.admin().put(std::vector<event>{{"orders", "k", "put", {{"n", "x"}}, std::nullopt}})),
        row_id{6}
    );
    EXPECT_TRUE(relay.delivers(4));
}

/// A database of its own, gone with the object.
class own_database {
public:
    explicit own_database(const std::string& how) {
        admin_.execute(fmt::format("CREATE DATABASE {} {}", name_, how));
    }
    own_database(const own_database&) = delete;
    own_database& operator=(const own_database&) = delete;
    ~own_database() {
        try {
            admin_.execute(fmt::format("DROP DATABASE {} WITH (FORCE)", name_));
        } catch (const support::sql_error& e) {
            ADD_FAILURE() << e.what();
        }
    }
    [[nodiscard]] std::string url() const {
        auto all = support::services().postgres;
        const auto query = std::min(all.find('?'), all.size());
        const auto slash = all.rfind('/', query);
        return all.substr(0, slash + 1) + name_ + all.substr(query);
    }

private:
    support::sql_connection admin_{support::services().postgres};
    std::string name_ = support::unique_name("pgoutbox_database");
};

TEST(PostgresOutbox, DeliversTextOfNoEncodingByteByByte) {
    const own_database database("ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    outbox_place place(database.url(), goharvest_table);
    postgres_relay relay(place);
    relay.sink.refuses_value = "bad";
    place.run(
        "INSERT INTO {} (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, "
        "kafka_header_values) VALUES (now(), 't', convert_from('\\xff6b', 'SQL_ASCII'), "
        "convert_from('\\xe476', 'SQL_ASCII'), ARRAY[convert_from('\\xfc', 'SQL_ASCII')], "
        "ARRAY[convert_from('\\xf6', 'SQL_ASCII')]), (now(), 't', 'k', 'v', '{{}}', '{{}}'), (now(), 't', "
        "convert_from('\\xff', 'SQL_ASCII'), 'bad', '{{}}', '{{}}')"
    );
    ASSERT_TRUE(relay.delivers(2)) << "one such row stops nothing";
    EXPECT_EQ(relay.sink.log[0].key, "\xffk");
    EXPECT_EQ(relay.sink.log[0].value, "\xe4v");
    EXPECT_THAT(relay.sink.log[0].headers, ElementsAre(testing::Pair("\xfc", "\xf6")));
    ASSERT_TRUE(relay.settles());
    const auto dead = sure(place.admin().list_dead({}));
    ASSERT_EQ(dead.size(), 1u);
    EXPECT_EQ(dead[0].event.key, "\xff");
    relay.sink.refuses_value.reset();
    EXPECT_EQ(sure(place.admin().retry_dead({})), 1u);
    ASSERT_TRUE(relay.delivers(3));
    EXPECT_EQ(relay.sink.log[2].key, "\xff");
}

TEST(PostgresOutbox, ParksListsAndGivesBackRowsWhoseTopicIsTextOfNoEncoding) {
    const own_database database("ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    outbox_place place(database.url(), goharvest_table);
    postgres_relay relay(place);
    relay.sink.refuses_value = "bad";
    const auto put = [&](const char* value) {
        place.run(fmt::format(
            "INSERT INTO {{}} (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, "
            "kafka_header_values) VALUES (now(), convert_from('\\xff74', 'SQL_ASCII'), "
            "convert_from('\\xe46b', "
            "'SQL_ASCII'), '{}', '{{{{}}}}', '{{{{}}}}'), (now(), 't', 'k', 'v', '{{{{}}}}', '{{{{}}}}')",
            value
        ));
    };
    put("bad");
    ASSERT_TRUE(relay.delivers(1)) << "the other row goes out";
    ASSERT_TRUE(relay.settles()) << "and such a topic is no reason to wait";
    relay.restart();  // which reads what is parked
    put("follows");
    ASSERT_TRUE(relay.delivers(2));
    ASSERT_TRUE(relay.settles());
    const auto dead = sure(place.admin().list_dead({}));
    ASSERT_EQ(dead.size(), 2u) << "the key is parked";
    EXPECT_EQ(dead[0].event.topic, "\xfft");
    relay.sink.refuses_value.reset();
    EXPECT_EQ(sure(place.admin().retry_dead({.ids = {}, .topic = "\xfft", .key = {}})), 2u);
    ASSERT_TRUE(relay.delivers(4));
    EXPECT_EQ(relay.sink.log[2].topic, "\xfft");
    EXPECT_EQ(sure(place.admin().pause("\xfft")), true);
    put("waits");
    ASSERT_TRUE(relay.delivers(5));
    EXPECT_THAT(sure(place.admin().stats()).paused_topics, ElementsAre("\xfft"));
    EXPECT_EQ(sure(place.admin().resume("\xfft")), true);
    ASSERT_TRUE(relay.delivers(6));
    EXPECT_TRUE(relay.settles());
}

TEST(PostgresOutbox, ServesGoharvestsLayoutWithBytesAndPartitions) {
    outbox_place place(support::services().postgres, salemove_table);
    place.run(
        "INSERT INTO {} (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, "
        "kafka_header_values, kafka_partition) VALUES (now(), 't', 'k', '\\x00ff', '{{}}', '{{}}', 3), "
        "(now(), 't', "
        "'k', '\\x', '{{}}', '{{}}', -1)"
    );
    postgres_relay relay(place);
    ASSERT_TRUE(relay.delivers(2));
    EXPECT_EQ(relay.sink.log[0].value, std::string("\0\xff", 2));
    EXPECT_EQ(relay.sink.log[0].partition, 3);
    EXPECT_EQ(relay.sink.log[1].partition, std::nullopt);
}

TEST(PostgresOutbox, GoesOnWhenAColumnChangesItsTypeUnderARelay) {
    outbox_place place(support::services().postgres, goharvest_table);
    const auto put = [&](const char* value) {
        return place.sql.number(place.on(
            "INSERT INTO {} (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, "
            "kafka_header_values) VALUES (now(), 'orders', 'k', '" +
            std::string(value) + "', '{{}}', '{{}}') RETURNING id"
        ));
    };
    postgres_relay relay(place);
    put("text");
    ASSERT_TRUE(relay.settles());
    relay.home.run_for(milliseconds{100});  // plans are kept by now
    place.run("ALTER TABLE {} ALTER COLUMN kafka_value TYPE bytea USING convert_to(kafka_value, 'UTF8')");
    put("\\x00ff");
    ASSERT_TRUE(relay.delivers(2));
    EXPECT_EQ(relay.sink.log.back().value, std::string("\0\xff", 2));
    place.run("ALTER TABLE {} ALTER COLUMN kafka_key TYPE bytea USING convert_to(kafka_key, 'UTF8')");
    put("\\x01");
    ASSERT_TRUE(relay.delivers(3));
    EXPECT_EQ(relay.sink.log.back().key, "k");
    EXPECT_TRUE(relay.settles());
}

TEST(PostgresOutbox, UpgradesATableThatLacksWhatCameLater) {
    outbox_place place(
        support::services().postgres,
        "CREATE TABLE {0} (id bigserial PRIMARY KEY, topic text NOT NULL, key bytea, value bytea)"
    );
    place.run("SELECT {}_put('orders', 'k', 'v', partition => 4, \"timestamp\" => '1970-01-01 00:00:01Z')");
    postgres_relay relay(place);
    ASSERT_TRUE(relay.delivers(1));
    EXPECT_EQ(relay.sink.log[0].partition, 4);
    EXPECT_EQ(relay.sink.log[0].timestamp, wall_time{std::chrono::seconds{1}});
}

TEST(PostgresOutbox, RefusesATableOfAnotherProgramAndSaysWhatItLacks) {
    outbox_place place;
    place.sql.execute(fmt::format("CREATE TABLE {}.other (id text, topic text)", place.schema));
    const auto refused = postgres_outbox_admin::init(
        sure(postgres::parse_server(support::services().postgres + "?table=" + place.schema + ".other"))
    );
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_config);
    EXPECT_THAT(refused.error().detail, HasSubstr("key, value"));
}

TEST(PostgresOutbox, TheTableRefusesRowsThatAreNotWellFormed) {
    outbox_place place;
    for (const auto* const row :
         {"('', 'k', NULL, NULL, NULL)",
          "('t', 'k', '{{a}}', NULL, NULL)",
          "('t', 'k', '{{a,b}}', '{{x}}', NULL)",
          "('t', 'k', '{{NULL}}', '{{x}}', NULL)",
          "('t', 'k', NULL, NULL, -1)"}) {
        const auto sql =
            std::string("INSERT INTO {} (topic, key, header_names, header_values, partition) VALUES ") + row;
        EXPECT_THROW(place.run(sql), support::sql_error) << row;
    }
}

TEST(PostgresOutbox, ThePrintedScriptGivesWriterAndRelayWhatTheyNeed) {
    const auto schema = support::unique_name("pgoutbox_roles");
    const auto writer = schema + "_writer";
    const auto relay_role = schema + "_relay";
    const auto base = support::services().postgres;
    support::sql_connection sql(base);
    sql.execute(fmt::format("CREATE ROLE {} LOGIN; CREATE ROLE {} LOGIN", writer, relay_role));
    {
        outbox_place place;
        const auto as = [&](const std::string& role) {
            auto url = base;
            return url.replace(url.find("postgres@"), 8, role);
        };
        const auto server = sure(postgres::parse_server(base + "?table=" + schema + ".outbox"));
        sql.execute(sure(postgres_outbox_admin::script(server, writer, relay_role)));
        support::sql_connection writing(as(writer));
        EXPECT_EQ(writing.number(fmt::format("SELECT {}.outbox_put('orders', 'k', 'v')", schema)), 1);
        EXPECT_EQ(
            writing.number(
                fmt::format("INSERT INTO {}.outbox (topic, key) VALUES ('orders', 'k') RETURNING id", schema)
            ),
            2
        );
        EXPECT_THROW(writing.query(fmt::format("DELETE FROM {}.outbox", schema)), support::sql_error);
        auto admin = sure(postgres_outbox_admin::open(
            sure(postgres::parse_server(as(relay_role) + "?table=" + schema + ".outbox"))
        ));
        EXPECT_EQ(sure(admin.stats()).backlog, 2u);
        EXPECT_TRUE(sure(admin.pause("orders")));
        EXPECT_TRUE(sure(admin.resume("orders")));
    }
    sql.execute(
        fmt::format("DROP SCHEMA {0} CASCADE; DROP ROLE {1}; DROP ROLE {2}", schema, writer, relay_role)
    );
}

TEST(PostgresOutbox, SaysFirstWhichCommandPrintsTheSqlThatItMayNotRun) {
    outbox_place place;
    const auto role = place.schema + "_poor";
    place.sql.execute(fmt::format(
        "CREATE ROLE {1} LOGIN; GRANT USAGE ON SCHEMA {0} TO {1}; GRANT SELECT, DELETE ON {0}.outbox TO {1}; "
        "DROP "
        "TABLE {0}.millrace_dead",
        place.schema,
        role
    ));
    auto url = support::services().postgres;
    url.replace(url.find("postgres@"), 8, role);
    const auto refused = postgres_outbox_admin::open(place.server_at(url));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::permission_denied);
    // What a log shows of it.
    EXPECT_THAT(
        refused.error().detail.substr(0, 300),
        testing::ContainsRegex(fmt::format(
            "`millrace outbox init --outbox 'postgresql://{1}@.*[?]table={0}.outbox' --print --relay-role "
            "'{1}'`",
            place.schema,
            role
        ))
    );
    EXPECT_THAT(refused.error().detail, testing::Not(HasSubstr("CREATE TABLE")));
    place.sql.execute(sure(postgres_outbox_admin::script(place.server_at(url), "postgres", role)));
    EXPECT_TRUE(postgres_outbox_admin::open(place.server_at(url)));
    place.sql.execute(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role));
}

TEST(PostgresOutbox, SendsNoRowAtAnotherTimeThanItsWriterChose) {
    outbox_place place;
    postgres_relay relay(place);
    place.run(
        "INSERT INTO {} (topic, key, \"timestamp\") VALUES ('t', 'a', 'infinity'), ('t', 'b', '-infinity'), "
        "('t', 'c', 'epoch'), ('t', 'd', '1969-12-31Z'), ('t', 'e', '2026-01-01Z')"
    );
    ASSERT_TRUE(relay.until([&] { return sure(place.admin().list_dead({})).size() == 4; }));
    EXPECT_THAT(relay.sink.ids(), ElementsAre(5));
    EXPECT_THAT(sure(place.admin().list_dead({})).front().error, HasSubstr("timestamp"));
}

TEST(PostgresOutbox, TellsAWaitingRelayWhetherItCouldBeReadWhateverIsParked) {
    outbox_place place;
    loop_host home;
    postgres_outbox source(home, {.server = place.server()});
    const auto check = [&] { return home.await<void>([&](auto done) { source.check(done); }); };
    EXPECT_TRUE(check());
    // Keys that cannot be read: who waits has no use for them.
    place.sql.execute(fmt::format("ALTER TABLE {}.millrace_parked RENAME COLUMN key TO other", place.schema));
    EXPECT_TRUE(check());
    place.run("DROP TABLE {}");
    const auto gone = check();
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, errc::not_found);
}

TEST(PostgresOutbox, HoldsBackAPausedTopicAndGoesBackForItsRows) {
    outbox_place place;
    EXPECT_TRUE(sure(place.admin().pause("orders")));
    EXPECT_FALSE(sure(place.admin().pause("orders"))) << "it was so before";
    postgres_relay relay(place);
    const auto held = place.put("k");
    place.run("INSERT INTO {} (topic, key) VALUES ('other', 'k')");
    ASSERT_TRUE(relay.delivers(1));
    EXPECT_EQ(relay.sink.log[0].topic, "other");
    EXPECT_TRUE(sure(place.admin().pause(std::nullopt)));
    EXPECT_TRUE(sure(place.admin().resume("orders")));
    relay.home.run_for(milliseconds{100});
    EXPECT_EQ(relay.sink.log.size(), 1u) << "all of it is paused";
    EXPECT_EQ(sure(place.admin().stats()).paused, true);
    EXPECT_TRUE(sure(place.admin().resume(std::nullopt)));
    ASSERT_TRUE(relay.delivers(2));
    EXPECT_EQ(relay.sink.log[1].id, held);
}

TEST(PostgresOutbox, DeliversALateRowBehindMoreRowsOfAPausedTopicThanOneLookTakes) {
    outbox_place place;
    (void)sure(place.admin().pause("held"));
    postgres_relay relay(place);
    place.run("INSERT INTO {} (topic, key) SELECT 'held', 'k' FROM generate_series(1, 5000)");
    auto late = place.session();
    late.execute("BEGIN");
    late.execute(place.on("INSERT INTO {} (topic, key) VALUES ('other', 'late')"));
    place.run("INSERT INTO {} (topic, key) VALUES ('other', 'early')");
    ASSERT_TRUE(relay.delivers(1));
    late.execute("COMMIT");
    ASSERT_TRUE(relay.delivers(2));
    EXPECT_THAT(relay.sink.ids(), ElementsAre(5002, 5001));
}

TEST(PostgresOutbox, TheWriterPutsEventsIntoTheApplicationsTransaction) {
    outbox_place place;
    auto session = place.session();
    auto writer = sure(postgres_outbox_writer::open(
        session.handle(), {.table = place.name, .event_bytes_max = 1'000, .serialise_keys = true}
    ));
    session.execute("BEGIN");
    ASSERT_TRUE(writer.add({"orders", "k", "gone", {}, std::nullopt}));
    session.execute("ROLLBACK");
    session.execute("BEGIN");
    const auto id =
        writer.add({"orders", std::string("\0k", 2), std::nullopt, {{"h", "v"}, {"n", std::nullopt}}, 2});
    ASSERT_TRUE(id) << id.error().detail;
    EXPECT_EQ(
        place.sql.number(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = " +
            std::to_string(session.backend())
        ),
        1
    );
    session.execute("COMMIT");
    EXPECT_EQ(writer.add({"", "k", "v", {}, std::nullopt}).error().code, errc::invalid_argument);
    EXPECT_EQ(
        writer.add({"t", "k", std::string(2'000, 'v'), {}, std::nullopt}).error().code, errc::invalid_argument
    );
    postgres_relay relay(place);
    ASSERT_TRUE(relay.delivers(1));
    EXPECT_EQ(relay.sink.log[0].id, id->value());
    EXPECT_EQ(relay.sink.log[0].key, std::string("\0k", 2));
    EXPECT_EQ(relay.sink.log[0].partition, 2);
    EXPECT_THAT(
        relay.sink.log[0].headers, ElementsAre(testing::Pair("h", "v"), testing::Pair("n", std::nullopt))
    );
    EXPECT_EQ(
        postgres_outbox_writer::open(session.handle(), {.table = "no_such_table"}).error().code,
        errc::not_found
    );
}

TEST(PostgresOutbox, SaysWhoMayStillFillAGap) {
    outbox_place place;
    auto writer = place.session();
    writer.execute(place.on("BEGIN; INSERT INTO {} (topic) VALUES ('orders')"));
    place.put("k");
    loop_host home;
    postgres_outbox source(home, {.server = place.server()});
    const auto seen = sure(home.await<outbox_look>([&](auto done) { source.look(std::move(done)); }));
    EXPECT_EQ(seen.backlog, 1u);
    EXPECT_TRUE(seen.oldest_age);
    ASSERT_EQ(seen.holders.size(), 1u);
    EXPECT_EQ(seen.holders[0].pid, writer.backend());
    EXPECT_TRUE(seen.holders[0].transaction_age);
}

TEST(PostgresOutbox, PreparedTransactionsAreToldAsOneWithTheAgeOfTheOldest) {
    outbox_place place;
    auto writer = place.session();
    const auto name = [&](int n) { return fmt::format("'holder-{}-{}'", writer.backend(), n); };
    for (const int n : {1, 2}) {
        writer.execute(place.on("BEGIN; INSERT INTO {} (topic) VALUES ('orders')"));
        writer.execute("PREPARE TRANSACTION " + name(n));
    }
    loop_host home;
    postgres_outbox source(home, {.server = place.server()});
    const auto seen = sure(home.await<outbox_look>([&](auto done) { source.look(std::move(done)); }));
    for (const int n : {1, 2})
        writer.execute("ROLLBACK PREPARED " + name(n));
    ASSERT_EQ(seen.holders.size(), 1u) << "one series of a name and its labels";
    EXPECT_EQ(seen.holders[0].pid, 0);
    EXPECT_TRUE(seen.holders[0].transaction_age);
}

TEST(PostgresOutbox, WhoLooksAfterItWaitsForALockNoLongerThanAsked) {
    outbox_place place;
    auto admin = sure(postgres_outbox_admin::open(place.server(), milliseconds{200}));
    auto other = place.session();
    other.execute(place.on("BEGIN; LOCK TABLE {} IN ACCESS EXCLUSIVE MODE"));
    const auto began = std::chrono::steady_clock::now();
    const auto refused = admin.put(std::vector<event>{{"orders", "k", "v", {}, std::nullopt}});
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{5});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("55P03"));
}

TEST(PostgresOutbox, WorksThroughAPoolerOfTransactions) {
    outbox_place place;
    support::private_pgbouncer pooler(
        support::port_of(support::services().postgres), {"default_pool_size=3"}
    );
    postgres_relay relay(place, postgres_relay::quick(), place.server_at(pooler.url()));
    auto writer = place.session();
    writer.execute(place.on("BEGIN; INSERT INTO {} (topic, key) VALUES ('orders', 'open')"));
    for (int i = 0; i < 50; ++i)
        place.put("k");
    ASSERT_TRUE(relay.delivers(50));
    writer.execute("COMMIT");
    ASSERT_TRUE(relay.delivers(51));
    EXPECT_TRUE(relay.settles());
    pooler.restart();
    place.put("k");
    EXPECT_TRUE(relay.delivers(52));
}

TEST(PostgresOutbox, DeliversAPreparedTransactionThatIsCommittedAfterARestartOfTheServer) {
    support::private_postgres server({"max_prepared_transactions=5"});
    outbox_place place(server.url());
    postgres_relay relay(place);
    auto writer = place.session();
    const auto low = writer.number(
        place.on("WITH b AS (SELECT 1) INSERT INTO {} (topic, key) SELECT 'orders', 'k' FROM b RETURNING id")
    );
    ASSERT_TRUE(relay.delivers(1));
    writer.execute("BEGIN");
    const auto prepared =
        writer.number(place.on("INSERT INTO {} (topic, key) VALUES ('orders', 'k') RETURNING id"));
    place.put("other");
    ASSERT_TRUE(relay.delivers(2));
    writer.execute("PREPARE TRANSACTION 'millrace'");
    relay.home.run_for(milliseconds{100});
    EXPECT_EQ(relay.driver().counters().gaps, 1u) << "it may still be committed";
    server.restart();
    auto again = place.session();
    const auto last =
        again.number(place.on("INSERT INTO {} (topic, key) VALUES ('orders', 'k') RETURNING id"));
    ASSERT_TRUE(relay.until([&] { return relay.sink.log.back().id == last; }));
    relay.home.run_for(milliseconds{100});
    EXPECT_GE(relay.driver().counters().gaps, 1u);
    again.execute("COMMIT PREPARED 'millrace'");
    EXPECT_TRUE(relay.until([&] { return relay.sink.log.back().id == prepared; }));
    EXPECT_GT(prepared, low);
    place.sql = support::sql_connection(server.url());
}

TEST(PostgresOutbox, WaitsOnAStandbyForItsPromotion) {
    support::private_postgres primary;
    outbox_place place(primary.url());
    const auto before = place.put("k");
    support::private_postgres standby(primary);
    postgres_relay relay(place, postgres_relay::quick(), place.server_at(standby.url()));
    EXPECT_TRUE(relay.until([&] {
        const auto trouble = relay.driver().last_error();
        return trouble && trouble->detail.find("promote it") != std::string::npos;
    }));
    EXPECT_THAT(relay.sink.log, IsEmpty());
    ASSERT_TRUE(relay.until([&] {
        return support::sql_connection(standby.url()).number(place.on("SELECT count(*) FROM {}")) == 1;
    }));
    standby.promote();
    EXPECT_TRUE(relay.delivers(1));
    EXPECT_EQ(relay.sink.ids(), std::vector<std::int64_t>{before});
}

}  // namespace
}  // namespace millrace::test
