#include "cli_postgres_kafka.hpp"

#include <millrace/consumer.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Not;

TEST_F(CliPostgresKafka, ANewcomersPathLeadsFromAnInsertToARecord) {
    kafka.create_topic(topic, 2);
    make_outbox();
    make_outbox();  // again, without harm
    sql.execute(
        "INSERT INTO " + schema + ".outbox (topic, key, value, header_names, header_values) VALUES ('" +
        topic + "', 'k1', 'first', ARRAY['trace'], ARRAY['abc'::bytea])"
    );
    put("k1", "second");
    ok({"outbox", "put", "--outbox", outbox(), "--topic", topic, "--key", "k1", "--null-value"});
    EXPECT_THAT(stats(), HasSubstr("\"backlog\":3"));
    EXPECT_THAT(ok(relay()), testing::StartsWith("delivered 3 events"));
    EXPECT_THAT(stats(), HasSubstr("\"backlog\":0,\"oldest_age_s\":null"));
    const auto records = support::read_topic(services().kafka, topic);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].value, "first");
    EXPECT_EQ(records[0].header("trace"), "abc");
    EXPECT_EQ(records[1].value, "second");
    EXPECT_EQ(records[2].value, std::nullopt);
    EXPECT_EQ(records[2].key, "k1");
}

TEST_F(CliPostgresKafka, TheOutboxOfTheSearchPathIsTakenWithoutATable) {
    kafka.create_topic(topic, 1);
    make_outbox();
    put("k", "v");
    words command = relay();
    command[2] = services().postgres + "?options=-csearch_path%3D" + schema;
    EXPECT_THAT(ok(command), testing::StartsWith("delivered 1 event"));
    EXPECT_THAT(delivered(), ElementsAre("v"));
}

TEST_F(CliPostgresKafka, APrintedSchemaIsOneThatCanBeRun) {
    const auto role = support::unique_name("app_role");
    sql.execute("CREATE ROLE " + role + "_w LOGIN; CREATE ROLE " + role + "_r LOGIN");
    sql.execute(
        ok({"outbox",
            "init",
            "--print",
            "--outbox",
            outbox(),
            "--writer-role",
            role + "_w",
            "--relay-role",
            role + "_r"})
    );
    kafka.create_topic(topic, 1);
    sql.execute(
        "SET ROLE " + role + "_w; INSERT INTO " + schema + ".outbox (topic, key, value) VALUES ('" + topic +
        "', 'k', 'v'); RESET ROLE"
    );
    const auto as_writer = outbox("&user=" + role + "_w");
    ok({"outbox", "put", "--outbox", as_writer, "--topic", topic, "--key", "k", "--value", "by the program"});
    const auto refused = millrace({"outbox", "stats", "--outbox", as_writer});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("permission denied"), HasSubstr("use the relay's role")));
    words command = relay();
    command[2] = outbox("&user=" + role + "_r");
    EXPECT_THAT(ok(command), testing::StartsWith("delivered 2 events"));
    EXPECT_THAT(ok({"outbox", "stats", "--outbox", command[2], "--json"}), HasSubstr("\"backlog\":0"));
    sql.execute("DROP OWNED BY " + role + "_w, " + role + "_r; DROP ROLE " + role + "_w, " + role + "_r");
}

TEST_F(CliPostgresKafka, WhatIsPrintedForATableOfGoharvestLeavesTheTableAlone) {
    const auto role = support::unique_name("app_role");
    sql.execute(
        "CREATE ROLE " + role + " LOGIN; CREATE TABLE " + schema +
        ".outbox (id BIGSERIAL PRIMARY KEY, create_time TIMESTAMPTZ NOT NULL, kafka_topic VARCHAR(249) NOT "
        "NULL, "
        "kafka_key VARCHAR(100) NOT NULL, kafka_value VARCHAR(10000), kafka_header_keys TEXT[] NOT NULL, "
        "kafka_header_values TEXT[] NOT NULL, leader_id UUID)"
    );
    const words print{"outbox", "init", "--print", "--relay-role", role, "--outbox", outbox()};
    const auto script = ok(print);
    const auto table = "ALTER TABLE \"" + schema + "\".\"outbox\"";
    EXPECT_THAT(script, AllOf(Not(HasSubstr("outbox_put")), Not(HasSubstr(table))));
    sql.execute(script);
    sql.execute(ok(print));  // again, without harm
    kafka.create_topic(topic, 1);
    sql.execute(
        "INSERT INTO " + schema +
        ".outbox (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values) "
        "VALUES (now(), '" +
        topic + "', 'k', 'v', '{}', '{}')"
    );
    words command = relay();
    command[2] = outbox("&user=" + role);
    EXPECT_THAT(ok(command), testing::StartsWith("delivered 1 event"));
    EXPECT_THAT(delivered(), ElementsAre("v"));
    sql.execute("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(CliPostgresKafka, WithoutAServerThePrintedSchemaIsThatOfANewTable) {
    const auto printed = ok({"outbox", "init", "--print", "--outbox", "postgresql://u@127.0.0.1:1/shop"});
    EXPECT_THAT(
        printed, AllOf(testing::StartsWith("-- The server could not be asked"), HasSubstr("outbox_put"))
    );
}

TEST_F(CliPostgresKafka, KeyAndValueThatAreNoLiteralsGoInAsTheDocumentationCastsThem) {
    make_outbox();
    sql.execute(
        "INSERT INTO " + schema +
        ".outbox (topic, key, value) SELECT 't', convert_to(k, 'UTF8'), "
        "convert_to(json_build_object('id', i)::text, 'UTF8') FROM (VALUES ('k1'::text, 7)) o (k, i)"
    );
    EXPECT_EQ(sql.value("SELECT encode(value, 'escape') FROM " + schema + ".outbox"), "{\"id\" : 7}");
}

TEST_F(CliPostgresKafka, ARoleWithoutRightsIsToldTheSqlThatItLacks) {
    const auto role = support::unique_name("app_role");
    make_outbox();
    sql.execute("CREATE ROLE " + role + " LOGIN");
    const auto refused = millrace({"outbox", "stats", "--outbox", outbox("&user=" + role)});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("permission denied"), HasSubstr(schema)));
    sql.execute("DROP ROLE " + role);
}

TEST_F(CliPostgresKafka, WhatIsMissingIsNamedByOneRun) {
    const auto no_table = millrace(relay({"--once", "--yield-after", "1s"}));
    EXPECT_EQ(no_table.status, 1);
    EXPECT_THAT(no_table.errors, AllOf(HasSubstr(schema), HasSubstr("outbox init")));

    const auto no_database = millrace(
        {"outbox",
         "stats",
         "--outbox",
         "postgresql://postgres@127.0.0.1:" + std::to_string(support::port_of(services().postgres)) +
             "/no_such_database"}
    );
    EXPECT_EQ(no_database.status, 1);
    EXPECT_THAT(no_database.errors, HasSubstr("no_such_database"));

    const auto no_host =
        millrace({"outbox", "stats", "--outbox", "postgresql://u:secret@127.0.0.1:1/shop?connect_timeout=2"});
    EXPECT_EQ(no_host.status, 1);
    EXPECT_THAT(no_host.errors, AllOf(HasSubstr("127.0.0.1"), Not(HasSubstr("secret"))));
}

TEST_F(CliPostgresKafka, FaultsOfAddressesAreNamedBeforeAnythingIsOpened) {
    const auto wrong = [&](const std::string& property) {
        words command = relay();
        command[4] = sink("?" + property);
        const auto refused = millrace(command);
        EXPECT_EQ(refused.status, 2) << property;
        return refused.errors;
    };
    EXPECT_THAT(wrong("linger.mss=5"), AllOf(HasSubstr("linger.mss"), HasSubstr("linger.ms")));
    EXPECT_THAT(wrong("enable.idempotence=false"), HasSubstr("order and safety"));
    EXPECT_THAT(wrong("sasl.password=hidden&acks=1"), AllOf(HasSubstr("acks"), Not(HasSubstr("hidden"))));
    words command = relay();
    command[2] = "postgresql://u:secret@h/shop?sslmod=require";
    const auto refused = millrace(command);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("sslmod"), Not(HasSubstr("secret"))));
    command[2] = "postgresql://u:top@secret@127.0.0.1:1/shop";
    const auto cut_short = millrace(command);
    EXPECT_EQ(cut_short.status, 2);
    EXPECT_THAT(cut_short.errors, AllOf(HasSubstr("%40"), Not(HasSubstr("secret"))));
    for (const auto* const never :
         {"postgresql://h/shop?sslmode=requir", "postgresql://u@127.0.0.1:notaport/shop"}) {
        command[2] = never;
        EXPECT_EQ(millrace(command).status, 2) << never;
    }
}

TEST_F(CliPostgresKafka, AWrongPasswordIsNamedWithoutIt) {
    support::private_postgres server({"password_encryption=scram-sha-256"});
    support::sql_connection(server.url()).execute("CREATE ROLE app LOGIN PASSWORD 'right'");
    std::ofstream(server.folder() / "data" / "pg_hba.conf")
        << "host all postgres all trust\nhost all all all scram-sha-256\n";
    support::sql_connection(server.url()).execute("SELECT pg_reload_conf()");
    const auto with_password = [&](const std::string& password) {
        return "postgresql://app:" + password + "@127.0.0.1:" + std::to_string(server.port()) + "/postgres";
    };
    ASSERT_TRUE(support::eventually(10s, [&] {
        return millrace({"outbox", "init", "--outbox", with_password("wr0ng-0ne")}).status == 1;
    }));
    const auto refused = millrace({"outbox", "init", "--outbox", with_password("wr0ng-0ne")});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("password"), Not(HasSubstr("wr0ng-0ne"))));
}

TEST_F(CliPostgresKafka, ARelayWaitsForWhatIsMissingAndSaysSo) {
    auto running = start(relay({"--admin", "127.0.0.1:0"}), "relay");
    ASSERT_TRUE(says("relay", "admin.listening"));
    ASSERT_TRUE(says("relay", schema)) << said("relay");
    EXPECT_TRUE(running.running()) << "a missing table ends no relay";
    kafka.create_topic(topic, 1);
    make_outbox();
    put("k", "v");
    EXPECT_TRUE(support::eventually(20s, [&] { return !delivered().empty(); })) << said("relay");
    running.ask_to_end();
    const auto ended = running.wait(10s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0) << said("relay");
}

TEST_F(CliPostgresKafka, OnceNamesWhatItParkedAndDeadLettersGoRoundAndBack) {
    kafka.create_topic(topic, 1, {{"max.message.bytes", "2000"}});
    make_outbox();
    const std::string large(5'000, 'x');
    put("k", large);
    put("k", "behind");
    put("other", "free");
    const auto relayed = millrace(relay());
    EXPECT_EQ(relayed.status, 1) << relayed.output;
    EXPECT_THAT(
        relayed.errors, AllOf(HasSubstr("parked"), HasSubstr("dead list --outbox '" + outbox() + "'"))
    );
    EXPECT_THAT(delivered(), ElementsAre("free")) << "nothing overtakes in the lane, and the others go on";

    const auto listed = ok({"outbox", "dead", "list", "--outbox", outbox(), "--json"});
    EXPECT_THAT(
        listed,
        testing::ContainsRegex(
            R"(^\[\{"id":1,"topic":")" + topic +
            R"(","key":"k","reason":"refused_record","error":"topic .*","attempts":1,"first":"[-0-9T:.]+Z","last":"[-0-9T:.]+Z"\},)"
        )
    );
    EXPECT_THAT(listed, Not(HasSubstr("xxxx"))) << "no payload";
    EXPECT_THAT(
        ok({"outbox", "dead", "show", "--outbox", outbox(), "--id", "1"}), HasSubstr("\"value\":\"xxxx")
    );
    kafka.configure_topic(topic, {});
    EXPECT_THAT(
        ok({"outbox", "dead", "retry", "--outbox", outbox(), "--id", "1"}), HasSubstr("put back 2 events")
    ) << "of a parked lane all come back";
    EXPECT_THAT(ok(relay()), testing::StartsWith("delivered 2 events"));
    EXPECT_THAT(delivered(), ElementsAre("free", large, "behind"));
    EXPECT_THAT(ok({"outbox", "dead", "list", "--outbox", outbox(), "--json"}), testing::Eq("[]\n"));
}

TEST_F(CliPostgresKafka, AnUnknownTopicHoldsUpItsOwnRowsAlone) {
    kafka.create_topic(topic, 1);
    make_outbox();
    ok({"outbox",
        "put",
        "--outbox",
        outbox(),
        "--topic",
        topic + "_missing",
        "--key",
        "k",
        "--value",
        "lost?"});
    put("k", "goes");
    auto running = start(relay({}), "relay");
    EXPECT_TRUE(support::eventually(20s, [&] { return !delivered().empty(); })) << said("relay");
    kafka.create_topic(topic + "_missing", 1);
    EXPECT_TRUE(support::eventually(40s, [&] { return stats().find("\"backlog\":0") != std::string::npos; }))
        << said("relay");
    running.ask_to_end();
    ASSERT_TRUE(running.wait(10s));
    EXPECT_EQ(support::read_topic(services().kafka, topic + "_missing").size(), 1u);
    EXPECT_THAT(said("relay"), Not(HasSubstr("lost?"))) << "no payload in a log";
}

TEST_F(CliPostgresKafka, APausedTopicWaitsUntilResumed) {
    kafka.create_topic(topic, 1);
    make_outbox();
    ok({"outbox", "pause", "--outbox", outbox(), "--topic", topic});
    put("k", "1");
    put("k", "2");
    const auto held_back = millrace(relay());
    EXPECT_EQ(held_back.status, 1);
    EXPECT_THAT(
        held_back.errors,
        AllOf(HasSubstr("millrace: 2 rows of "), HasSubstr(" wait, because topic " + topic + " is paused"))
    );
    EXPECT_THAT(delivered(), ElementsAre());
    EXPECT_THAT(
        stats(), AllOf(HasSubstr("\"backlog\":2"), HasSubstr("\"paused_topics\":[\"" + topic + "\"]"))
    );
    EXPECT_THAT(
        ok({"outbox", "pause", "--outbox", outbox(), "--topic", topic}), HasSubstr("was paused already")
    );
    ok({"outbox", "resume", "--outbox", outbox(), "--topic", topic});
    ok(relay());
    EXPECT_THAT(delivered(), ElementsAre("1", "2"));
}

TEST_F(CliPostgresKafka, ASecondRelayWaitsAndTakesOver) {
    kafka.create_topic(topic, 1);
    make_outbox();
    auto first = start(relay({"--worker", "r1"}), "first");
    put("k", "1");
    ASSERT_TRUE(support::eventually(20s, [&] { return delivered().size() == 1; })) << said("first");
    auto second = start(relay({"--worker", "r2"}), "second");
    first.ask_to_end();
    ASSERT_TRUE(first.wait(10s));
    put("k", "2");
    EXPECT_TRUE(support::eventually(10s, [&] { return delivered().size() == 2; })) << said("second");
    second.ask_to_end();
    ASSERT_TRUE(second.wait(10s));
    EXPECT_THAT(delivered(), ElementsAre("1", "2"));
}

TEST_F(CliPostgresKafka, TheAdminPortTellsOfBacklogAgeAndHolders) {
    kafka.create_topic(topic, 1);
    make_outbox();
    auto running = start(relay({"--admin", "127.0.0.1:0"}), "relay");
    ASSERT_TRUE(says("relay", "admin.listening"));
    const auto get = [&, port = admin_port()](const std::string& path) { return page(port, path); };
    EXPECT_TRUE(support::eventually(20s, [&] { return get("/readyz").find("200 OK") != std::string::npos; }));
    // A transaction that has drawn an id and stays open.
    support::sql_connection other(services().postgres);
    other.execute("BEGIN");
    other.execute(
        "INSERT INTO " + schema + ".outbox (topic, key, value) VALUES ('" + topic + "', 'k', 'late')"
    );
    put("k", "early");
    EXPECT_TRUE(support::eventually(20s, [&] {
        return get("/status").find("\"pid\":" + std::to_string(other.backend())) != std::string::npos;
    })) << get("/status");
    EXPECT_THAT(
        get("/metrics"),
        AllOf(
            HasSubstr("millrace_relay_leading 1\n"),
            HasSubstr("millrace_relay_backlog "),
            HasSubstr("millrace_relay_oldest_age_seconds "),
            HasSubstr(
                "millrace_relay_low_water_holder_seconds{pid=\"" + std::to_string(other.backend()) + "\"}"
            )
        )
    );
    other.execute("COMMIT");
    EXPECT_TRUE(support::eventually(20s, [&] { return delivered().size() == 2; }));
    running.ask_to_end();
    ASSERT_TRUE(running.wait(10s));
}

/// Fails on every record.
struct failing_handler final : record_handler {
    result<handled> handle(const std::shared_ptr<const record_batch>&, const delivery&) override {
        return fail(errc::handler_failed, "no such customer");
    }
};

TEST_F(CliPostgresKafka, RecordsThatAGroupGivesUpGoToATopicOrAnOutbox) {
    Cli::make_stream();
    ok({"stream", "put", "--stream", stream(), "--key", "k", "--value", "v", "--header", "a=b"});
    kafka.create_topic(topic, 1);
    make_outbox();
    failing_handler failing;
    for (const auto& [group, letters] : {std::pair{"a", sink() + "/" + topic}, std::pair{"b", outbox()}}) {
        consumer_settings settings;
        settings.stream = stream();
        settings.group = group;
        settings.state = state();
        settings.reading.on_failure = failure_policy::dead_letter;
        settings.reading.dead_letter_after = 1;
        settings.dead_letters = letters;
        settings.idle_exit = 0s;
        const auto outcome = consumer(settings, failing).run();
        ASSERT_TRUE(outcome) << outcome.error().detail;
        EXPECT_EQ(outcome->records_dead_lettered, 1u);
    }
    const auto records = support::read_topic(services().kafka, topic);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].value, "v");
    EXPECT_EQ(records[0].header("a"), "b");
    EXPECT_EQ(records[0].header("millrace-error"), "handler_failed: no such customer");
    EXPECT_EQ(
        sql.value("SELECT topic || ' ' || encode(value, 'escape') FROM " + schema + ".outbox"), "orders v"
    );
}

}  // namespace
}  // namespace millrace::cli
