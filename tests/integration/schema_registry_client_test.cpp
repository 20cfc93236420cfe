// The client against servers that answer as no registry should.
#include "integration/schema_registry_fixture.hpp"
#include "record/bytes_text.hpp"
#include "support/raw_http_server.hpp"

#include <atomic>

#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using namespace std::chrono_literals;
using namespace test;
using millrace::test::loop_host;
using support::http_answer;
using support::raw_answer;
using support::raw_http_server;
using support::seen_request;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const question latest = ask_version{"a-value", std::nullopt};
constexpr std::string_view good = R"({"subject":"a-value","version":2,"id":7,"schema":"\"int\""})";

raw_answer well(const seen_request&) {
    return {http_answer(200, good)};
}
raw_answer no_such_subject(const seen_request&) {
    return {http_answer(404, R"({"error_code":40401,"message":"Subject not found."})")};
}

struct SchemaRegistryClient : testing::Test {
    answer ask_at(std::vector<std::string> urls, registry_options options = {}) {
        options.urls = std::move(urls);
        const auto client = connected(home, options);
        return ask(home, *client, latest);
    }
    /// The same of one server that gives one answer.
    answer answered_by(const raw_answer& with, const registry_options& options = {}) {
        raw_http_server server([&](const seen_request&) { return with; });
        return ask_at({server.url()}, options);
    }
    loop_host home;
};

TEST_F(SchemaRegistryClient, AsksBehindThePathOfTheUrlAndForTheRightTypes) {
    seen_request seen;
    raw_http_server server([&](const seen_request& request) {
        seen = request;
        return well(request);
    });
    ASSERT_TRUE(ask_at({server.url() + "/apis/ccompat/v7/"}));
    EXPECT_EQ(seen.method, "GET");
    EXPECT_EQ(seen.target, "/apis/ccompat/v7/subjects/a-value/versions/latest");
    EXPECT_EQ(seen.header("accept"), accepted_types);
    EXPECT_FALSE(seen.headers.contains("authorization"));
    EXPECT_FALSE(seen.headers.contains("content-type"));

    registry_options options;
    options.urls = {server.url()};
    const auto client = connected(home, options);
    (void)ask(home, *client, register_text{"s/1", text_of("\"int\"")});
    EXPECT_EQ(seen.method, "POST");
    EXPECT_EQ(seen.target, "/subjects/s%2F1/versions");
    EXPECT_EQ(seen.header("content-type"), content_type);
    EXPECT_EQ(seen.body, R"({"schema":"\"int\""})");
}

TEST_F(SchemaRegistryClient, ShowsWhoItIs) {
    std::string authorization;
    raw_http_server server([&](const seen_request& request) {
        authorization = request.header("authorization");
        return well(request);
    });
    registry_options basic;
    basic.user = "anna";
    basic.password = "s3cret:ü";
    ASSERT_TRUE(ask_at({server.url()}, basic));
    EXPECT_EQ(authorization, "Basic " + to_base64("anna:s3cret:ü"));
    registry_options bearer;
    bearer.token = "t0ken";
    ASSERT_TRUE(ask_at({server.url()}, bearer));
    EXPECT_EQ(authorization, "Bearer t0ken");
}

TEST_F(SchemaRegistryClient, NeverShowsASecretThatAServerRepeats) {
    registry_options options;
    options.user = "anna";
    options.password = "s3cret";
    const auto words =
        R"({"error_code":40101,"message":"not s3cret, nor )" + to_base64("anna:s3cret") + R"("})";
    const auto came = answered_by({http_answer(401, words)}, options);
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().kind, failure_kind::unauthorized);
    EXPECT_THAT(
        came.error().why.detail,
        AllOf(HasSubstr("\"not ***, nor ***\""), HasSubstr("correct the user and password"))
    );
}

TEST_F(SchemaRegistryClient, TellsNonsenseFromAnAnswer) {
    const std::string all[] = {
        http_answer(200, ""),
        http_answer(200, "<html>login</html>", "Content-Type: text/html\r\n"),
        http_answer(200, good.substr(0, 30)),
        http_answer(200, R"({"subject":"b-value","version":2,"id":7,"schema":"\"int\""})"),
        http_answer(302, "", "Location: http://127.0.0.1:1/\r\n"),
        http_answer(404, "<html>login</html>", "Content-Type: text/html\r\n")};
    for (const auto& bytes : all) {
        const auto came = answered_by({bytes});
        ASSERT_FALSE(came) << bytes;
        EXPECT_EQ(came.error().kind, failure_kind::not_a_registry) << bytes;
        EXPECT_EQ(came.error().why.retry, retry_advice::after_delay);
        EXPECT_THAT(came.error().why.detail, AllOf(HasSubstr("check the URL"), Not(HasSubstr("login"))));
    }
}

TEST_F(SchemaRegistryClient, ReadsNoMoreThanItsLimit) {
    registry_options options;
    options.reply_bytes_max = 1'024;
    const auto came = answered_by({http_answer(200, std::string(2'000, ' ') + std::string(good))}, options);
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().kind, failure_kind::not_a_registry);
    EXPECT_THAT(came.error().why.detail, HasSubstr("longer than 1024 bytes"));
}

TEST_F(SchemaRegistryClient, GivesUpOnASlowRegistry) {
    registry_options options;
    options.request_timeout = 200ms;
    const auto began = std::chrono::steady_clock::now();
    const auto came = answered_by({http_answer(200, good), 30s}, options);
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().kind, failure_kind::unreachable);
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
}

TEST_F(SchemaRegistryClient, GoesOnToTheNextAddressByTheKindOfFailure) {
    raw_http_server broken([](const seen_request&) { return raw_answer{http_answer(500, "")}; });
    raw_http_server page([](const seen_request&) { return raw_answer{http_answer(200, "<html>")}; });
    raw_http_server registry(well);
    registry_options options;
    options.urls = {"http://127.0.0.1:1", broken.url(), page.url(), registry.url()};
    const auto client = connected(home, options);
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(ask(home, *client, latest));
    EXPECT_EQ(broken.requests(), 1U) << "what worked is remembered";
    EXPECT_EQ(page.requests(), 1U);
    EXPECT_EQ(registry.requests(), 3U);
}

TEST_F(SchemaRegistryClient, TakesAnAnswerForWhatItIsWhateverOtherAddressesMaySay) {
    raw_http_server registry(well);
    for (const int status : {401, 403, 409, 422, 429}) {
        raw_http_server refuses([&](const seen_request&) {
            return raw_answer{http_answer(status, R"({"error_code":1})")};
        });
        EXPECT_FALSE(ask_at({refuses.url(), registry.url()})) << status;
    }
    raw_http_server knows_not(no_such_subject);
    const auto came = ask_at({knows_not.url(), registry.url()});
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().kind, failure_kind::no_such_subject);
    EXPECT_EQ(registry.requests(), 0U);
}

TEST_F(SchemaRegistryClient, ReportsTheFailureThatTellsMostWhenNoAddressAnswers) {
    raw_http_server broken([](const seen_request&) {
        return raw_answer{http_answer(503, R"({"error_code":50301,"message":"no leader"})")};
    });
    const auto came = ask_at({"http://127.0.0.1:1", broken.url(), "http://127.0.0.1:1"});
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().kind, failure_kind::out_of_order);
    EXPECT_THAT(
        came.error().why.detail,
        AllOf(HasSubstr("no leader"), HasSubstr("none of the 3 addresses did better"))
    );
    EXPECT_EQ(ask_at({"http://127.0.0.1:1"}).error().kind, failure_kind::unreachable);
}

TEST_F(SchemaRegistryClient, RefusesWhatCannotBeAskedWithoutAsking) {
    raw_http_server registry(well);
    registry_options options;
    options.urls = {registry.url()};
    const auto client = connected(home, options);
    const auto came = ask(home, *client, ask_version{"..", std::nullopt});
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().kind, failure_kind::refused);
    EXPECT_EQ(registry.requests(), 0U);
}

TEST_F(SchemaRegistryClient, MayEndWhileItIsBeingAnswered) {
    raw_http_server slow([](const seen_request&) { return raw_answer{http_answer(200, good), 30s}; });
    registry_options options;
    options.urls = {slow.url()};
    auto client = connected(home, options);
    bool told = false;
    client->ask(latest, [&](const answer&) { told = true; });
    ASSERT_TRUE(soon(home, [&] { return slow.requests() == 1; }));
    client.reset();
    home.run_for(50ms);
    EXPECT_FALSE(told);
}

TEST_F(SchemaRegistryClient, CarriesASourceThroughTroubleOfEachKind) {
    std::atomic<int> number{0};
    raw_http_server server([&](const seen_request& request) -> raw_answer {
        switch (number++) {
            case 0:
                return {"", 0ms, true};
            case 1:
                return {http_answer(401, "")};
            case 2:
                return {http_answer(429, "", "Retry-After: 0\r\n")};
            case 3:
                return {http_answer(500, "")};
            case 4:
                return {http_answer(200, "nonsense")};
            default:
                return well(request);
        }
    });
    registry_options options;
    options.urls = {server.url()};
    schema_cache_options cache;
    cache.backoff_min = 1ms;
    cache.backoff_max = 50ms;
    schema_source source(home, connected(home, options), cache);
    const wanted all[] = {wanted(source, "a-value"), wanted(source, "a-value")};
    ASSERT_TRUE(home.run_until([&] { return all[0].is_told() && all[1].is_told(); }, 30s));
    EXPECT_EQ(all[0].outcome().value()->self->id, 7U);
    EXPECT_EQ(source.find("a-value", {}).schema, all[1].outcome().value());
    EXPECT_EQ(source.counters().troubles, 5U);
    EXPECT_EQ(server.requests(), source.counters().requests);
    EXPECT_EQ(source.trouble(), nullptr);
}

TEST(SchemaRegistryOptions, SayWhatIsWrongWithoutShowingSecrets) {
    const auto why = [](auto change) {
        registry_options options;
        options.urls = {"http://registry:8081"};
        change(options);
        const auto checked = options.validate();
        return checked ? "nothing" : checked.error().detail;
    };
    EXPECT_EQ(why([](auto&) {}), "nothing");
    EXPECT_THAT(why([](auto& of) { of.urls.clear(); }), HasSubstr("urls are 0; name 1 to 16"));
    EXPECT_THAT(
        why([](auto& of) { of.urls.push_back("registry:8081"); }), HasSubstr("urls[1] begins with neither")
    );
    EXPECT_THAT(
        why([](auto& of) { of.urls = {"http://anna:s3cret@registry"}; }),
        AllOf(HasSubstr("urls[0] must not hold a user"), Not(HasSubstr("s3cret")))
    );
    EXPECT_THAT(why([](auto& of) { of.password = "s3cret"; }), HasSubstr("password has no user"));
    EXPECT_THAT(why([](auto& of) { of.user = "a:b"; }), HasSubstr("user holds a colon"));
    EXPECT_THAT(
        why([](auto& of) { of.token = "t\r\nX: y"; }),
        AllOf(HasSubstr("token holds control"), Not(HasSubstr("X: y")))
    );
    EXPECT_THAT(
        why([](auto& of) {
            of.user = "a";
            of.token = "t";
        }),
        HasSubstr("token stands beside")
    );
    EXPECT_THAT(why([](auto& of) { of.client_key_file = "k"; }), HasSubstr("belong together"));
    EXPECT_THAT(why([](auto& of) { of.request_timeout = 0ms; }), HasSubstr("request_timeout is 0 ms"));
    EXPECT_THAT(why([](auto& of) { of.connections_max = 0; }), HasSubstr("connections_max is 0"));
    EXPECT_THAT(why([](auto& of) { of.reply_bytes_max = 1; }), HasSubstr("reply_bytes_max is 1"));

    loop_host home;
    registry_options options;
    options.urls = {"http://registry:8081"};
    options.ca_file = "/nowhere/ca.crt";
    const auto made = connect_registry(home, options);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().detail, HasSubstr("ca_file \"/nowhere/ca.crt\" is not there"));
}

}  // namespace
}  // namespace millrace::registry
