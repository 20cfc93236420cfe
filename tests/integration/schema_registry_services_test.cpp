// Against a real registry, and real TLS.
#include "curl_http.hpp"
#include "integration/schema_registry_fixture.hpp"
#include "integration/tls_registry.hpp"
#include "support/private_servers.hpp"
#include "support/process.hpp"
#include "support/services.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <future>

#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using namespace std::chrono_literals;
using namespace test;
using millrace::test::loop_host;
using support::services;
using support::unique_name;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct SchemaRegistryServices : testing::Test {
    static registry_options at(const std::string& url) {
        registry_options options;
        options.urls = {url};
        return options;
    }
    static schema_cache_options quick() {
        schema_cache_options options;
        options.latest_time = 1'000ms;
        options.backoff_min = 20ms;
        options.backoff_max = 200ms;
        return options;
    }
    [[nodiscard]] registered_schema put(const std::string& under, std::shared_ptr<const schema_text> schema) {
        auto made = ask(home, *client, register_text{under, std::move(schema)});
        if (!made) throw std::runtime_error(made.error().why.detail);
        return std::move(*made);
    }
    void until_told(const wanted& what) {
        ASSERT_TRUE(soon(
            home, [&] { return what.is_told(); }, 60s
        ));
    }

    loop_host home;
    std::string subject = unique_name("orders") + "-value";
    std::unique_ptr<registry_client> client = connected(home, at(services().registry));
};

TEST_F(SchemaRegistryServices, RegistersAndFindsByVersionIdAndText) {
    const auto schema = record_of("A", {"x"});
    const auto id = put(subject, schema).id;
    EXPECT_EQ(put(subject, schema).id, id) << "registering twice has the effect of once";
    for (const question& what : std::initializer_list<question>{
             ask_version{subject, std::nullopt}, ask_version{subject, 1}, ask_text{subject, schema}}) {
        const auto found = ask(home, *client, what);
        ASSERT_TRUE(found) << found.error().why.detail;
        EXPECT_EQ(found->id, id);
        EXPECT_EQ(found->version, 1);
        EXPECT_EQ(*found->schema, *schema);
    }
    const auto found = ask(home, *client, ask_id{id});
    ASSERT_TRUE(found) << found.error().why.detail;
    EXPECT_EQ(*found->schema, *schema);
}

TEST_F(SchemaRegistryServices, KeepsSchemasOfEachType) {
    const auto proto =
        text_of("syntax = \"proto3\";\nmessage P {\n  int32 x = 1;\n}\n", schema_type::protobuf);
    const auto json = text_of(
        R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"T"})",
        schema_type::json
    );
    (void)put(subject + "p", proto);
    (void)put(subject + "j", json);
    EXPECT_EQ(*ask(home, *client, ask_version{subject + "p", 1}).value().schema, *proto);
    EXPECT_EQ(*ask(home, *client, ask_version{subject + "j", 1}).value().schema, *json);
}

TEST_F(SchemaRegistryServices, FindsASubjectOfAnyName) {
    const auto odd = subject + "/é %2F?&#+:";
    (void)put(odd, record_of("A", {"x"}));
    const auto found = ask(home, *client, ask_version{odd, std::nullopt});
    ASSERT_TRUE(found) << found.error().why.detail;
}

TEST_F(SchemaRegistryServices, TellsWhatIsNotThereByItsKind) {
    const auto kind = [&](question what) { return ask(home, *client, std::move(what)).error().kind; };
    EXPECT_EQ(kind(ask_version{subject, std::nullopt}), failure_kind::no_such_subject);
    EXPECT_EQ(kind(ask_text{subject, record_of("A", {"x"})}), failure_kind::no_such_subject);
    (void)put(subject, record_of("A", {"x"}));
    EXPECT_EQ(kind(ask_version{subject, 7}), failure_kind::no_such_version);
    EXPECT_EQ(kind(ask_id{2'000'000'000}), failure_kind::no_such_schema);
    EXPECT_EQ(kind(ask_text{subject, record_of("A", {"y"})}), failure_kind::no_such_schema);
    EXPECT_EQ(kind(register_text{subject, text_of("{\"type\":")}), failure_kind::invalid_schema);
    auto elsewhere = connected(home, at(services().registry + "x"));
    EXPECT_EQ(ask(home, *elsewhere, ask_version{subject, 1}).error().kind, failure_kind::not_a_registry);
}

TEST_F(SchemaRegistryServices, ShowsTheRegistrysOwnWordsOfAnIncompatibleSchema) {
    (void)put(subject, record_of("A", {"x"}));
    curl_http http;
    std::promise<result<http_reply>> set;
    http.send(
        {.method = "PUT",
         .url = services().registry + "/config/" + subject,
         .headers = {{"Content-Type", "application/json"}},
         .body = R"({"compatibility":"BACKWARD"})"},
        [&](result<http_reply> came) { set.set_value(std::move(came)); }
    );
    ASSERT_EQ(set.get_future().get().value().status, 200);
    const auto refused = ask(home, *client, register_text{subject, record_of("A", {"x", "y"})});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, failure_kind::incompatible);
    EXPECT_EQ(refused.error().why.code, errc::conflict);
    EXPECT_EQ(refused.error().why.retry, retry_advice::never);
    EXPECT_THAT(
        refused.error().why.detail,
        AllOf(
            HasSubstr("y at /fields/"), HasSubstr("registration of a schema under the subject \"" + subject)
        )
    );
}

TEST_F(SchemaRegistryServices, ResolvesReferences) {
    const auto a = unique_name("a");
    const auto b = unique_name("b");
    (void)put(a, record_of("A", {"x"}));
    (void)put(
        b,
        text_of(
            R"({"type":"record","name":"B","fields":[{"name":"a","type":"A"}]})",
            schema_type::avro,
            {{"A", a, 1}}
        )
    );
    (void)put(
        subject,
        text_of(
            R"({"type":"record","name":"C","fields":[{"name":"b","type":"B"},{"name":"a","type":"A"}]})",
            schema_type::avro,
            {{"B", b, 1}, {"A", a, 1}}
        )
    );
    schema_source source(home, connected(home, at(services().registry)), quick());
    const wanted c(source, subject);
    until_told(c);
    ASSERT_TRUE(c.outcome()) << c.outcome().error().why.detail;
    std::vector<std::string> order;
    for (const auto& each : c.outcome().value()->references)
        order.push_back(each->subject);
    EXPECT_THAT(order, ElementsAre(a, b));
    EXPECT_EQ(source.counters().requests, 3U);
}

TEST_F(SchemaRegistryServices, TakesANewLatestVersionWithinItsTime) {
    (void)put(subject, record_of("A", {"x"}));
    schema_source source(home, connected(home, at(services().registry)), quick());
    until_told(wanted(source, subject));
    const auto id = put(subject, record_of("A", {"x", "y"})).id;
    EXPECT_TRUE(soon(home, [&] {
        const auto found = source.find(subject, {});
        return found.schema && found.schema->self->id == id;
    }));
    EXPECT_EQ(source.find(subject, schema_choice::latest()).schema->self->version, 2);
}

TEST_F(SchemaRegistryServices, RegistersAGivenSchemaOnlyWhereItMay) {
    schema_source source(home, connected(home, at(services().registry)), quick());
    const auto schema = record_of("A", {"x"});
    const auto looked_up = source.given(*schema, false);
    const wanted before(source, subject, looked_up);
    until_told(before);
    EXPECT_EQ(before.outcome().error().kind, failure_kind::no_such_subject);
    EXPECT_EQ(ask(home, *client, ask_version{subject, 1}).error().kind, failure_kind::no_such_subject);

    const wanted made(source, subject, source.given(*schema, true));
    until_told(made);
    ASSERT_TRUE(made.outcome()) << made.outcome().error().why.detail;
    const wanted after(source, subject, looked_up);
    until_told(after);
    EXPECT_EQ(after.outcome().value()->self->id, made.outcome().value()->self->id);
}

TEST_F(SchemaRegistryServices, GoesOnThroughAKillAndARestart) {
    support::private_registry registry;
    auto its = connected(home, at(registry.url()));
    ASSERT_TRUE(ask(home, *its, register_text{subject, record_of("A", {"x"})}));
    ASSERT_TRUE(ask(home, *its, register_text{"other", record_of("B", {"x"})}));
    schema_source source(home, connected(home, at(registry.url())), quick());
    until_told(wanted(source, subject));

    registry.kill();
    EXPECT_TRUE(soon(home, [&] { return source.find(subject, {}).stale; }));
    EXPECT_NE(source.trouble(), nullptr);
    const wanted other(source, "other");
    home.run_for(300ms);
    EXPECT_FALSE(other.is_told()) << "trouble is waited out";

    registry.start();
    until_told(other);
    ASSERT_TRUE(other.outcome()) << other.outcome().error().why.detail;
    EXPECT_EQ(other.outcome().value()->self->schema->text, record_of("B", {"x"})->text);
    EXPECT_TRUE(soon(home, [&] {
        const auto found = source.find(subject, {});
        return found.schema && !found.stale;
    }));
    EXPECT_EQ(source.trouble(), nullptr);
}

TEST_F(SchemaRegistryServices, GoesOnThroughARegistryThatStandsStill) {
    support::private_registry registry;
    auto options = at(registry.url());
    options.request_timeout = 500ms;
    auto its = connected(home, at(registry.url()));
    ASSERT_TRUE(ask(home, *its, register_text{subject, record_of("A", {"x"})}));
    schema_source source(home, connected(home, options), quick());
    registry.pause();
    const wanted one(source, subject);
    EXPECT_TRUE(soon(
        home, [&] { return source.trouble() != nullptr; }, 30s
    ));
    EXPECT_EQ(source.trouble()->kind, failure_kind::unreachable);
    registry.resume();
    until_told(one);
    EXPECT_TRUE(one.outcome());
}

TEST_F(SchemaRegistryServices, VerifiesCertificatesAndShowsItsOwn) {
    const tls_registry server;
    const auto tls = services().tls;
    const auto asked = [&](const std::filesystem::path& ca, bool with_certificate) {
        auto options = at(server.url());
        options.ca_file = ca.string();
        if (with_certificate) {
            options.client_certificate_file = (tls / "client.crt").string();
            options.client_key_file = (tls / "client.key").string();
        }
        return ask(home, *connected(home, options), ask_version{"a", std::nullopt});
    };
    const auto fine = asked(tls / "ca.crt", true);
    ASSERT_TRUE(fine) << fine.error().why.detail;
    EXPECT_EQ(fine->id, 7U);

    const auto strange = asked(tls / "other-ca.crt", true);
    ASSERT_FALSE(strange);
    EXPECT_EQ(strange.error().kind, failure_kind::unreachable);
    EXPECT_THAT(
        strange.error().why.detail, AllOf(HasSubstr("the schema registry's ca_file"), Not(HasSubstr("AWS")))
    );
    EXPECT_FALSE(asked({}, true)) << "the system does not trust it either";
    EXPECT_FALSE(asked(tls / "ca.crt", false));
}

}  // namespace
}  // namespace millrace::registry
