#include "cli_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/kafka_topics.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <millrace/consumer.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;
using support::services;
using testing::ElementsAre;
using testing::Not;

/// A schema and a topic of the test's own on the shared servers.
struct CliPostgresKafka : Cli {
    CliPostgresKafka() { sql.execute("CREATE SCHEMA " + schema); }
    ~CliPostgresKafka() override { sql.execute("DROP SCHEMA IF EXISTS " + schema + " CASCADE"); }

    [[nodiscard]] std::string outbox(const std::string& more = {}) const {
        return services().postgres + "?table=" + schema + ".outbox" + more;
    }
    [[nodiscard]] static std::string sink(const std::string& properties = {}) {
        return "kafka://" + services().kafka + properties;
    }
    void make_outbox() const { ok({"outbox", "init", "--outbox", outbox()}); }
    [[nodiscard]] words relay(words more = {"--once"}) const {
        words command{"relay", "--outbox", outbox(), "--sink", sink()};
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    void put(const std::string& key, const std::string& value) const {
        ok({"outbox", "put", "--outbox", outbox(), "--topic", topic, "--key", key, "--value", value});
    }
    [[nodiscard]] std::vector<std::string> delivered() const {
        std::vector<std::string> values;
        for (const auto& record : support::read_topic(services().kafka, topic))
            values.push_back(record.value.value_or("(null)"));
        return values;
    }
    [[nodiscard]] std::string admin_port() const {
        const std::string log = said("relay");
        const auto at = log.find("port=") + 5;
        return log.substr(at, log.find_first_of(" \n", at) - at);
    }
    [[nodiscard]] std::string page(const std::string& port, const std::string& path) const {
        return shell(
                   "exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET " + path +
                   " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3"
        )
            .output;
    }
    [[nodiscard]] std::string stats() const {
        return ok({"outbox", "stats", "--outbox", outbox(), "--json"});
    }

    std::string schema = support::unique_name("app");
    std::string topic = support::unique_name("app_orders");
    support::sql_connection sql{services().postgres};
    support::kafka_admin kafka{services().kafka};
};

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

TEST_F(CliPostgresKafka, AnAbsentBrokerAndADatabaseThatIsAwayAreToldAllTheTimeThatTheyLast) {
    make_outbox();
    put("k", "waits");
    const auto server = support::port_of(services().postgres);
    support::fault_proxy way(server);
    auto through = outbox();
    const auto at = through.find(":" + std::to_string(server));
    through.replace(at + 1, std::to_string(server).size(), std::to_string(way.port()));
    const words to_nobody{"relay", "--outbox", through, "--sink", "kafka://127.0.0.1:1", "--lease", "2s"};
    auto command = to_nobody;
    command.insert(command.end(), {"--admin", "127.0.0.1:0"});
    auto running = start(command, "relay");
    ASSERT_TRUE(says("relay", "admin.listening"));
    const auto get = [&, port = admin_port()](const std::string& path) { return page(port, path); };
    ASSERT_TRUE(says("relay", "relay.waits")) << said("relay");
    for (int i = 0; i < 24; ++i) {
        std::this_thread::sleep_for(500ms);
        ASSERT_THAT(get("/readyz"), AllOf(HasSubstr(" 503 "), HasSubstr("127.0.0.1:1"))) << said("relay");
    }
    EXPECT_THAT(said("relay"), Not(HasSubstr("relay.waits_no_more")));
    EXPECT_THAT(get("/status"), Not(HasSubstr("\"relay_last_error\":null")));

    const auto age = [&] {
        const auto text = get("/metrics");
        const std::string name = "\nmillrace_relay_oldest_age_seconds ";
        const auto found = text.find(name);
        return found == std::string::npos ? -1.0 : std::stod(text.substr(found + name.size()));
    };
    const auto before = age();
    EXPECT_GT(before, 10.0);
    way.refuse();
    way.cut();
    std::this_thread::sleep_for(8s);
    EXPECT_THAT(get("/metrics"), HasSubstr("millrace_relay_leading 0\n"));
    EXPECT_GT(age(), before + 6.0) << "what waits grows older also where nobody sees it";
    running.ask_to_end();
    ASSERT_TRUE(running.wait(10s));

    way.accept();
    auto once = to_nobody;
    once.insert(once.end(), {"--once", "--yield-after", "4s"});
    const auto gave_up = millrace(once);
    EXPECT_EQ(gave_up.status, 1);
    EXPECT_THAT(gave_up.errors, AllOf(HasSubstr("(id 1)"), HasSubstr("127.0.0.1:1")));
}

TEST_F(CliPostgresKafka, ABrokerThatIsLostUnderWayIsNamedAsSoonAsItsClientKnows) {
    make_outbox();
    support::private_kafka broker;
    support::kafka_admin(broker.bootstrap()).create_topic(topic, 1);
    auto running = start(
        {"relay", "--outbox", outbox(), "--sink", "kafka://" + broker.bootstrap(), "--admin", "127.0.0.1:0"},
        "relay"
    );
    const auto port = Cli::admin_port("relay");
    put("k", "before");
    ASSERT_TRUE(support::eventually(20s, [&] {
        return page(port, "/metrics").find("millrace_relay_deleted_total 1\n") != std::string::npos;
    })) << said("relay");
    broker.kill();
    put("k", "after");
    EXPECT_TRUE(support::eventually(3s, [&] {
        const auto status = page(port, "/status");
        const auto at = status.find("\"relay_last_error\":");
        return at != std::string::npos && status.find(broker.bootstrap(), at) != std::string::npos;
    })) << page(port, "/status");
    EXPECT_TRUE(support::eventually(10s, [&] {
        const auto ready = page(port, "/readyz");
        return ready.find(" 503 ") != std::string::npos &&
               ready.find(broker.bootstrap()) != std::string::npos;
    })) << page(port, "/readyz");
    broker.start();
    EXPECT_TRUE(support::eventually(30s, [&] {
        return page(port, "/status").find("\"relay_last_error\":null") != std::string::npos;
    })) << page(port, "/status");
    running.ask_to_end();
    ASSERT_TRUE(running.wait(10s));
}

TEST_F(CliPostgresKafka, ADatabaseThatDoesNotAnswerIsNamedByLeaderAndWaitingRelayAndWhatWaitsGrowsOlder) {
    make_outbox();
    put("k", "waits");
    ok({"outbox", "pause", "--outbox", outbox()});
    const auto server = support::port_of(services().postgres);
    support::fault_proxy way(server);
    const auto command = [&](const std::string& as) {
        auto through = outbox();
        const auto at = through.find(":" + std::to_string(server));
        through.replace(at + 1, std::to_string(server).size(), std::to_string(way.port()));
        return start({"relay", "--outbox", through, "--sink", sink(), "--admin", "127.0.0.1:0"}, as);
    };
    auto leader = command("leader");
    const auto led = Cli::admin_port("leader");
    ASSERT_TRUE(support::eventually(20s, [&] {
        const auto text = page(led, "/metrics");
        return text.find("millrace_relay_leading 1\n") != std::string::npos &&
               text.find("millrace_relay_backlog 1\n") != std::string::npos;
    })) << said("leader");
    auto waiting = command("waiting");
    const auto waits = Cli::admin_port("waiting");
    ASSERT_TRUE(support::eventually(20s, [&] {
        return page(waits, "/readyz").find(" 200 ") != std::string::npos;
    })) << said("waiting");

    way.hold();
    std::this_thread::sleep_for(7s);
    const auto age = [&] {
        const auto text = page(led, "/metrics");
        const std::string name = "\nmillrace_relay_oldest_age_seconds ";
        const auto found = text.find(name);
        return found == std::string::npos ? -1.0 : std::stod(text.substr(found + name.size()));
    };
    const auto before = age();
    EXPECT_GT(before, 7.0) << page(led, "/metrics");
    for (const auto& one : {led, waits}) {
        EXPECT_THAT(
            page(one, "/readyz"),
            AllOf(HasSubstr(" 503 "), HasSubstr("127.0.0.1:" + std::to_string(way.port())))
        );
        EXPECT_THAT(page(one, "/status"), Not(HasSubstr("\"relay_last_error\":null")));
    }
    std::this_thread::sleep_for(2s);
    EXPECT_GT(age(), before + 1.5) << "what waits grows older also where nobody sees it";
    way.release();
    for (const auto& one : {led, waits}) {
        EXPECT_TRUE(support::eventually(20s, [&] {
            return page(one, "/readyz").find(" 200 ") != std::string::npos;
        })) << page(one, "/readyz");
    }
    for (auto* const one : {&leader, &waiting}) {
        one->ask_to_end();
        ASSERT_TRUE(one->wait(15s));
    }
}

TEST_F(CliPostgresKafka, ALeaderByKafkaNamesADatabaseThatDoesNotAnswer) {
    make_outbox();
    const auto server = support::port_of(services().postgres);
    support::fault_proxy way(server);
    auto through = outbox();
    const auto at = through.find(":" + std::to_string(server));
    through.replace(at + 1, std::to_string(server).size(), std::to_string(way.port()));
    const auto group = support::unique_name("lead");
    auto relay = start(
        {"relay",
         "--outbox",
         through,
         "--sink",
         sink(),
         "--leader",
         "kafka",
         "--leader-group",
         group,
         "--admin",
         "127.0.0.1:0"},
        "leader"
    );
    const auto admin = Cli::admin_port("leader");
    const auto ready = [&] { return page(admin, "/readyz").find(" 200 ") != std::string::npos; };
    ASSERT_TRUE(support::eventually(30s, [&] {
        return ready() && page(admin, "/metrics").find("millrace_relay_leading 1\n") != std::string::npos;
    })) << said("leader");

    way.hold();
    const auto host = "127.0.0.1:" + std::to_string(way.port());
    EXPECT_TRUE(support::eventually(15s, [&] {
        const auto text = page(admin, "/readyz");
        return text.find(" 503 ") != std::string::npos && text.find(host) != std::string::npos;
    })) << page(admin, "/readyz");
    EXPECT_THAT(page(admin, "/status"), Not(HasSubstr("\"relay_last_error\":null")));
    EXPECT_THAT(said("leader"), HasSubstr("relay.waits"));
    way.release();
    EXPECT_TRUE(support::eventually(20s, ready)) << page(admin, "/readyz");
    relay.ask_to_end();
    ASSERT_TRUE(relay.wait(15s));
}

TEST_F(CliPostgresKafka, AStandbyIsNamedAsSuch) {
    support::private_postgres primary;
    ok({"outbox", "init", "--outbox", primary.url()});
    support::private_postgres standby(primary);
    const auto refused =
        millrace({"outbox", "put", "--outbox", standby.url(), "--topic", "t", "--value", "v"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, HasSubstr("standby"));
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
