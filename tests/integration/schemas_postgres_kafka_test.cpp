// Schemas from an outbox in PostgreSQL into Kafka, with a real registry: each mode, and each fault of
// goharvest's fork (F1 to F7 of its list) as a test.
#include "integration/tls_registry.hpp"
#include "schemas_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/raw_http_server.hpp"

#include <gmock/gmock.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;
using registry::schema_type;
using support::port_of;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string order =
    R"({"type":"record","name":"Order","namespace":"acme","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]})";
const std::string order_1{"\x02\x00", 2};

/// What a registry answers whose subjects all have the schema 7, a string.
support::raw_answer string_schema(const support::seen_request& seen) {
    constexpr std::string_view before = "/subjects/";
    const auto begin = seen.target.find(before) + before.size();
    const auto subject = seen.target.substr(begin, seen.target.find('/', begin) - begin);
    return {
        .bytes = support::http_answer(
            200, R"({"subject":")" + subject + R"(","version":1,"id":7,"schema":"\"string\""})"
        ),
        .pause = {},
        .close = false};
}

TEST_F(SchemasPostgresKafka, EachModeDoesWhatItSays) {
    const auto avro = make_topic("avro", 1);
    const auto frame = make_topic("frame", 1);
    const auto json = make_topic("json", 1);
    const auto plain = make_topic("plain", 1);
    const auto avro_id = put_schema(avro + "-value", order);
    const auto key_id = put_schema(avro + "-key", R"("string")");
    const auto frame_id = put_schema(
        frame + "-value", "syntax = \"proto3\";\nmessage P {\n  int32 x = 1;\n}\n", schema_type::protobuf
    );
    const auto json_id = put_schema(
        json + "-value",
        R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["a"]})",
        schema_type::json
    );
    configure(fmt::format(
        "{{topic: {}, value: avro, key: avro}}\n{{topic: {}, value: {{mode: frame, format: protobuf}}}}\n"
        "{{topic: {}, value: json}}\n{{topic: '*', value: none}}",
        avro,
        frame,
        json
    ));
    put(avro, "\"k\"", R"({"id":1,"note":{"string":"hi"}})");
    put(avro, "\"k\"", R"({"id":1})");
    put_tombstone(avro, "\"k\"");
    put(frame, "k", "\x08\x01");
    put_tombstone(frame, "k");
    put(json, "k", R"({"a":1})");
    put(json, "bad", R"({"b":1})");
    put(plain, "k", "as it is");
    const auto done = once();
    EXPECT_EQ(done.status, 1) << "one row was parked";
    EXPECT_THAT(
        values(avro),
        ElementsAre(framed(avro_id, std::string("\x02\x02\x04hi", 5)), framed(avro_id, order_1), "(null)")
    );
    for (const auto& record : support::read_topic(services().kafka, avro))
        EXPECT_EQ(record.key, framed(key_id, "\x02k"));
    EXPECT_THAT(values(frame), ElementsAre(framed(frame_id, std::string("\x00\x08\x01", 3)), "(null)"));
    EXPECT_THAT(values(json), ElementsAre(framed(json_id, R"({"a":1})")));
    EXPECT_THAT(values(plain), ElementsAre("as it is"));
    EXPECT_THAT(
        dead_letters(),
        AllOf(
            HasSubstr("refused_record"),
            HasSubstr("the value does not fit its JSON Schema at $"),
            HasSubstr("bad")
        )
    );
}

TEST_F(SchemasPostgresKafka, ASchemaOfSeveralSubjectsIsResolved) {
    const auto topic = make_topic();
    const auto other = unique_name("address");
    (void)put_schema(other, R"({"type":"record","name":"A","fields":[{"name":"zip","type":"int"}]})");
    const auto made = registry::test::ask(
        home,
        *client,
        registry::register_text{
            topic + "-value",
            registry::test::text_of(
                R"({"type":"record","name":"O","fields":[{"name":"to","type":"A"}]})",
                schema_type::avro,
                {{"A", other, 1}}
            )}
    );
    ASSERT_TRUE(made) << made.error().why.detail;
    configure("{topic: " + topic + ", value: avro}");
    put(topic, "k", R"({"to":{"zip":1}})");
    EXPECT_EQ(once().status, 0);
    EXPECT_THAT(values(topic), ElementsAre(framed(made->id, "\x02")));
}

TEST_F(SchemasPostgresKafka, AHeaderWithTheGuidIsRefusedAtTheStartWhereTheRegistryGivesNone) {
    const auto topic = make_topic("orders", 1);
    (void)put_schema(topic + "-value", order);
    configure("{topic: " + topic + ", value: {mode: frame, id: header}}");
    const auto done = millrace(relay());
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("gives no GUID for the schema of the subject"));
}

TEST_F(SchemasPostgresKafka, OutboxCheckNamesWhatWouldBeParkedAndChangesNothing) {
    const auto topic = make_topic("orders", 1);
    (void)put_schema(topic + "-value", order);
    write("order.avsc", order);
    configure(fmt::format(
        "{{topic: {0}, value: avro}}\n{{topic: new, value: {{mode: avro, auto_register: true, schema_file: "
        "{1}}}}}\n"
        "{{topic: {0}-missing, value: avro}}",
        topic,
        path("order.avsc")
    ));
    const words check{"outbox", "check", "--outbox", outbox_url(), "--config", path("m.yaml"), "--json"};
    put(topic, "a", R"({"id":1})");
    put("new", "a", R"({"id":1})");
    put("plain", "a", "anything");
    put_tombstone(topic, "b");
    EXPECT_THAT(ok(check), HasSubstr(R"({"rows":4,"fit":3,"parked":0,"waiting":0,"stopping":0,"first":[]})"));
    put(topic, "b", R"({"id":"secret"})");
    put(topic, "b", R"({"id":2})");
    put("new", "a", R"({"nothing":2})");
    put(topic + "-missing", "a", R"({"id":1})");
    const auto found = millrace(check);
    EXPECT_EQ(found.status, 1);
    EXPECT_THAT(found.output, HasSubstr(R"({"rows":8,"fit":3,"parked":3,"waiting":1)"));
    EXPECT_THAT(
        found.output,
        AllOf(
            HasSubstr(R"("id":5)"),
            HasSubstr("$.id: expected long, found a string of 6 characters"),
            HasSubstr(R"("reason":"lane_is_parked")"),
            HasSubstr(R"("fate":"waits","reason":"refused_topic")"),
            HasSubstr(topic + "-missing-value"),
            Not(HasSubstr("secret"))
        )
    );
    EXPECT_EQ(backlog(), 8);
    EXPECT_FALSE(registry::test::ask(home, *client, registry::ask_version{"new-value", std::nullopt}));
    auto rows = check;
    rows.insert(rows.end(), {"--on-poison", "park-row"});
    EXPECT_THAT(millrace(rows).output, HasSubstr(R"("fit":4,"parked":2,"waiting":1)"));
    const auto nothing =
        millrace({"outbox", "check", "--outbox", outbox_url(), "--config", path("none.yaml")});
    EXPECT_EQ(nothing.status, 1);
    EXPECT_THAT(nothing.errors, HasSubstr("none.yaml"));
}

TEST_F(SchemasPostgresKafka, OutboxCheckReadsAnOutboxInSqliteAndSaysWhatItCouldNotAsk) {
    const auto topic = unique_name("orders");
    (void)put_schema(topic + "-value", order);
    make_outbox();
    ok({"outbox", "put", "--outbox", outbox()},
       R"({"topic":")" + topic + R"(","key":"a","value":{"id":1}})" + "\n" + R"({"topic":")" + topic +
           R"(","key":"a","value":{"id":1.5}})" + "\n");
    const auto rules = "schemas:\n  registry: {}\n  rules: [{{topic: '*', value: avro}}]\n";
    write("m.yaml", fmt::format(fmt::runtime(rules), services().registry));
    const words check{"outbox", "check", "--outbox", outbox(), "--config", path("m.yaml"), "--wait", "1s"};
    const auto found = millrace(check);
    EXPECT_EQ(found.status, 1);
    EXPECT_THAT(
        found.output,
        AllOf(HasSubstr("looked at 2 rows: 1 fit the rules, 1 would be parked"), HasSubstr("expected long"))
    );
    write("m.yaml", fmt::format(fmt::runtime(rules), "http://127.0.0.1:1"));
    const auto blind = millrace(check);
    EXPECT_EQ(blind.status, 1);
    EXPECT_THAT(blind.output, AllOf(HasSubstr("2 would wait"), HasSubstr("127.0.0.1:1")));
    write("m.yaml", "relay:\n  lease: 3s\n");
    EXPECT_THAT(millrace(check).errors, HasSubstr("no section \"schemas\""));
}

// F1: any error of the registry ended the harvester, and a restart met the same row.
TEST_F(SchemasPostgresKafka, F1AnyErrorOfTheRegistryNeitherEndsTheRelayNorParksARow) {
    const auto topic = make_topic("orders", 1);
    const auto other = make_topic("plain", 1);
    std::atomic<int> answer{500};
    support::raw_http_server registry([&](const support::seen_request& seen) -> support::raw_answer {
        constexpr auto page = "<html>this is no registry</html>";
        switch (answer) {
            case 0:
                return {.bytes = support::http_answer(200, page), .pause = {}, .close = false};
            case 1:
                return {.bytes = "nonsense\r\n\r\n", .pause = {}, .close = true};
            case 200:
                return string_schema(seen);
            default:
                return {
                    .bytes = support::http_answer(
                        answer, R"({"error_code":)" + std::to_string(answer * 100 + 1) + R"(,"message":"no"})"
                    ),
                    .pause = {},
                    .close = false};
        }
    });
    configure("{topic: " + topic + ", value: avro}", {}, registry.url());
    auto running = start(relay(), "relay");
    long long id = 0;
    for (const int kind : {500, 503, 401, 403, 404, 409, 429, 422, 0, 1}) {
        answer = kind;
        put(topic, "k", "\"v" + std::to_string(id++) + "\"");
        put(other, "k", std::to_string(kind));
        EXPECT_TRUE(support::eventually(30s, [&] { return backlog() == id; })) << kind;
        std::this_thread::sleep_for(300ms);
        EXPECT_TRUE(running.running()) << kind;
    }
    EXPECT_THAT(values(topic), IsEmpty());
    EXPECT_THAT(values(other), SizeIs(10));
    answer = 200;
    EXPECT_TRUE(empties());
    std::vector<std::string> all;
    for (int i = 0; i < 10; ++i)
        all.push_back(framed(7, "\x04v" + std::to_string(i)));
    EXPECT_EQ(values(topic), all) << "none lost, none unframed, in order";
    EXPECT_EQ(dead_letters(), "[]\n");
    EXPECT_EQ(end(running), 0);
}

// F2: the schema that was registered was always "bytes".
TEST_F(SchemasPostgresKafka, F2ValuesAreEncodedByTheSchemaOfTheRecord) {
    const auto topic = make_topic("orders", 1);
    const auto id = put_schema(topic + "-value", order);
    configure("{topic: " + topic + ", value: avro}");
    put(topic, "k", R"({"id":1})");
    put(topic, "l", "no JSON at all");
    EXPECT_EQ(once().status, 1);
    EXPECT_THAT(values(topic), ElementsAre(framed(id, order_1)));
    EXPECT_THAT(dead_letters(), HasSubstr("refused_record"));
    const auto latest =
        registry::test::ask(home, *client, registry::ask_version{topic + "-value", std::nullopt});
    ASSERT_TRUE(latest);
    EXPECT_EQ(latest->version, 1);
}

// F3: tombstones became messages of six bytes.
TEST_F(SchemasPostgresKafka, F3ATombstoneStaysNullInEveryMode) {
    configure("{topic: 'a*', value: avro}\n{topic: 'f*', value: frame}\n{topic: 'j*', value: json}");
    for (const auto* name : {"a", "f", "j"}) {
        const auto topic = make_topic(name, 1);
        put_tombstone(topic, "k");
        EXPECT_EQ(once().status, 0) << "and needs no schema";
        EXPECT_THAT(values(topic), ElementsAre("(null)"));
    }
}

// F4: schemas were registered whatever the configuration said.
TEST_F(SchemasPostgresKafka, F4NothingIsRegisteredUnlessTheRuleSaysSo) {
    const auto topic = make_topic("orders", 1);
    write("order.avsc", order);
    const auto subject_exists = [&](const std::string& subject) {
        return registry::test::ask(home, *client, registry::ask_version{subject, std::nullopt}).has_value();
    };
    configure(fmt::format(
        "{{topic: {}, value: {{mode: avro, subject: topic_and_record, schema_file: {}}}}}",
        topic,
        path("order.avsc")
    ));
    put(topic, "k", R"({"id":1})");
    auto running = start(relay(), "relay");
    EXPECT_TRUE(says("relay", "relay.row_retried")) << said("relay");
    EXPECT_TRUE(says("relay", topic + "-acme.Order"));
    EXPECT_EQ(end(running), 0);
    EXPECT_FALSE(subject_exists(topic + "-acme.Order"));
    configure(fmt::format(
        "{{topic: {}, value: {{mode: avro, subject: topic_and_record, auto_register: true, schema_file: "
        "{}}}}}",
        topic,
        path("order.avsc")
    ));
    EXPECT_EQ(once().status, 0);
    EXPECT_TRUE(subject_exists(topic + "-acme.Order"));
    EXPECT_THAT(values(topic), SizeIs(1));
}

// F5: a configuration without credentials ended in a panic, and one without schemas too.
TEST_F(SchemasPostgresKafka, F5CredentialsAreOptionalAndSoAreSchemas) {
    const auto topic = make_topic("orders", 1);
    const auto id = put_schema(topic + "-value", order);
    configure("{topic: " + topic + ", value: avro}");
    put(topic, "k", R"({"id":1})");
    EXPECT_EQ(once().status, 0);
    put(topic, "k", "as it is");
    EXPECT_EQ(
        millrace({"relay", "--outbox", outbox_url(), "--sink", "kafka://" + services().kafka, "--once"})
            .status,
        0
    );
    EXPECT_THAT(values(topic), ElementsAre(framed(id, order_1), "as it is"));

    std::string authorization;
    support::raw_http_server registry([&](const support::seen_request& seen) -> support::raw_answer {
        authorization = seen.header("authorization");
        return string_schema(seen);
    });
    configure(
        "{topic: " + topic + ", value: avro}", "user: relay\n  password: ${ENV:SECRET}", registry.url()
    );
    put(topic, "k", "\"x\"");
    const auto done = shell("SECRET=hush \"$M\" relay --config m.yaml --once --log-level trace");
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_EQ(authorization, "Basic cmVsYXk6aHVzaA==");
    EXPECT_THAT(done.errors + done.output, Not(HasSubstr("hush")));
    const auto shown = shell("SECRET=hush \"$M\" config explain m.yaml");
    EXPECT_THAT(shown.output, AllOf(HasSubstr("${ENV:SECRET}"), Not(HasSubstr("hush"))));
}

// F6: without time-outs a registry that hung blocked a cell, the shutdown and the hand-over.
TEST_F(SchemasPostgresKafka, F6ARegistryThatHangsBlocksNothingElse) {
    const auto topic = make_topic("orders", 1);
    const auto other = make_topic("known", 1);
    const auto id = put_schema(topic + "-value", order);
    const auto known = put_schema(other + "-value", order);
    support::fault_proxy proxy(port_of(services().registry));
    auto through = services().registry;
    const auto port = std::to_string(port_of(services().registry));
    through.replace(through.find(port), port.size(), std::to_string(proxy.port()));
    configure("{topic: '*', value: avro}", "request_timeout: 1s", through);
    auto running = start(relay({"--admin", "127.0.0.1:0"}), "relay");
    put(other, "k", R"({"id":1})");
    ASSERT_TRUE(empties());
    proxy.hold();
    put(topic, "k", R"({"id":1})");
    for (int i = 0; i < 10; ++i)
        put(other, "k", R"({"id":1})");
    EXPECT_TRUE(support::eventually(20s, [&] { return backlog() == 1; })) << "the other topic goes on";
    const auto admin = admin_port("relay");
    EXPECT_TRUE(support::eventually(20s, [&] {
        return get(admin, "/readyz").find("schema registry") != std::string::npos;
    })) << get(admin, "/readyz");
    EXPECT_THAT(get(admin, "/metrics"), HasSubstr("millrace_relay_awaiting 1"));
    EXPECT_THAT(get(admin, "/metrics"), HasSubstr("millrace_schema_trouble 1"));
    const auto asked = std::chrono::steady_clock::now();
    EXPECT_EQ(end(running), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - asked, 4s);
    proxy.release();
    EXPECT_EQ(once().status, 0);
    EXPECT_THAT(values(topic), ElementsAre(framed(id, order_1)));
    EXPECT_THAT(values(other), SizeIs(11));
    EXPECT_THAT(values(other), Each(framed(known, order_1)));
}

// F7: TLS was unusable, and the cache of schemas was lost with every battery.
TEST_F(SchemasPostgresKafka, F7TheCacheOutlivesTheLeadershipAndTheProducer) {
    const auto topic = make_topic("orders", 1);
    std::atomic<int> requests{0};
    support::raw_http_server registry([&](const support::seen_request& seen) -> support::raw_answer {
        ++requests;
        return string_schema(seen);
    });
    configure("{topic: " + topic + ", value: avro}", "latest_ttl: 1h", registry.url());
    auto running = start(relay(), "relay");
    put(topic, "k", "\"a\"");
    ASSERT_TRUE(empties());
    for (int i = 0; i < 3; ++i) {
        put(topic, "bad" + std::to_string(i), "no JSON");  // stops the channel
        ASSERT_TRUE(empties());
    }
    running.signal(SIGSTOP);  // until the lease is lost
    std::this_thread::sleep_for(3s);
    running.signal(SIGCONT);
    put(topic, "k", "\"b\"");
    ASSERT_TRUE(empties());
    EXPECT_THAT(
        values(topic),
        ElementsAre(
            framed(
                7,
                "\x02"
                "a"
            ),
            framed(
                7,
                "\x02"
                "b"
            )
        )
    );
    EXPECT_EQ(requests, 1);
    EXPECT_EQ(end(running), 0);
}

TEST_F(SchemasPostgresKafka, F7TlsVerifiesTheRegistryAndShowsThisSidesCertificate) {
    const auto topic = make_topic("orders", 1);
    const registry::test::tls_registry registry;
    const auto tls = services().tls.string();
    const auto rules = "{topic: " + topic + ", value: {mode: avro, subject: given, subject_name: a}}";
    const auto keys = [&](const std::string& authority) {
        return fmt::format(
            "ca_file: {0}/{1}\n  client_certificate_file: {0}/client.crt\n  client_key_file: {0}/client.key",
            tls,
            authority
        );
    };
    configure(rules, keys("other-ca.crt"), registry.url());
    put(topic, "k", "1");
    auto running = start(relay(), "relay");
    EXPECT_TRUE(says("relay", "schema_registry.trouble kind=unreachable")) << said("relay");
    EXPECT_EQ(end(running), 0);
    EXPECT_THAT(values(topic), IsEmpty());
    configure(rules, keys("ca.crt"), registry.url());
    const auto done = once();
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_THAT(values(topic), ElementsAre(framed(7, "\x02")));
}

TEST_F(SchemasPostgresKafka, ASchemaThatEvolvesWhileRowsWaitIsUsedByThem) {
    const auto topic = make_topic("orders", 1);
    (void)put_schema(topic + "-value", order);
    support::fault_proxy proxy(port_of(services().registry));
    proxy.hold();
    auto through = services().registry;
    const auto port = std::to_string(port_of(services().registry));
    through.replace(through.find(port), port.size(), std::to_string(proxy.port()));
    configure("{topic: " + topic + ", value: avro}", "latest_ttl: 1s", through);
    auto running = start(relay(), "relay");
    for (int i = 0; i < 50; ++i)
        put(topic, "k" + std::to_string(i % 5), R"({"id":1})");
    ASSERT_TRUE(says("relay", "lease.taken"));
    std::this_thread::sleep_for(500ms);
    const auto second = put_schema(
        topic + "-value",
        R"({"type":"record","name":"Order","namespace":"acme","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":1}]})"
    );
    proxy.release();
    ASSERT_TRUE(empties());
    put(topic, "k", R"({"id":1})");
    std::this_thread::sleep_for(2s);
    put(topic, "k", R"({"id":1})");
    ASSERT_TRUE(empties());
    const auto all = values(topic);
    ASSERT_THAT(all, SizeIs(52));
    EXPECT_EQ(all.back(), framed(second, "\x02\x02"));
    EXPECT_EQ(end(running), 0);
}

}  // namespace
}  // namespace millrace::cli
