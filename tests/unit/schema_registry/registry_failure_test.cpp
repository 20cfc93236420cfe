#include "registry_failure.hpp"

#include <string>

#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view base = "http://registry:8081/api";
const question latest = ask_version{"a-value", std::nullopt};

http_reply reply(int status, std::string body, std::string head = "Content-Type: application/json\r\n") {
    return {status, std::move(head), std::move(body)};
}
registry_failure judged(int status, const std::string& body) {
    return judge(latest, reply(status, body), base);
}
std::string said(std::int64_t code, const std::string& words = "own words") {
    return R"({"error_code":)" + std::to_string(code) + R"(,"message":")" + words + R"("})";
}

TEST(RegistryFailure, TellsTheKindsApart) {
    struct {
        int status;
        std::string body;
        failure_kind kind;
        errc code;
    } const all[] = {
        {401, "", failure_kind::unauthorized, errc::permission_denied},
        {401, said(40101), failure_kind::unauthorized, errc::permission_denied},
        {403, said(40301), failure_kind::forbidden, errc::permission_denied},
        {404, said(40401), failure_kind::no_such_subject, errc::not_found},
        {404, said(40402), failure_kind::no_such_version, errc::not_found},
        {404, said(40403), failure_kind::no_such_schema, errc::not_found},
        {404, said(40404), failure_kind::no_such_subject, errc::not_found},
        {404, said(404), failure_kind::not_a_registry, errc::corrupt},
        {404, "", failure_kind::not_a_registry, errc::corrupt},
        {404, "<html>", failure_kind::not_a_registry, errc::corrupt},
        {405, "", failure_kind::not_a_registry, errc::corrupt},
        {409, said(409), failure_kind::incompatible, errc::conflict},
        {422, said(42201), failure_kind::invalid_schema, errc::invalid_argument},
        {422, said(42202), failure_kind::no_such_version, errc::not_found},
        {400, said(40001), failure_kind::refused, errc::invalid_argument},
        {400, "<html>", failure_kind::not_a_registry, errc::corrupt},
        {429, "", failure_kind::throttled, errc::throttled},
        {500, said(50001), failure_kind::out_of_order, errc::unavailable},
        {503, "", failure_kind::out_of_order, errc::unavailable},
        {204, "", failure_kind::not_a_registry, errc::corrupt},
        {302, "", failure_kind::not_a_registry, errc::corrupt}};
    for (const auto& each : all) {
        const auto failure = judged(each.status, each.body);
        EXPECT_EQ(failure.kind, each.kind) << each.status << each.body;
        EXPECT_EQ(failure.why.code, each.code) << each.status << each.body;
    }
}

TEST(RegistryFailure, SaysWhatWhereWhyAndWhatToDo) {
    EXPECT_EQ(
        judged(404, said(40401, "Subject 'a-value' not found.")).why.detail,
        "the schema registry at http://registry:8081/api answered 404 (40401) to the latest version of the "
        "subject "
        "\"a-value\": \"Subject 'a-value' not found.\"; register its schema, or correct the rule that "
        "chooses the "
        "subject"
    );
    EXPECT_THAT(judged(302, "").why.detail, HasSubstr("answered 302 to"));
    EXPECT_THAT(judged(302, "").why.detail, HasSubstr("a redirect, which is not followed"));
}

TEST(RegistryFailure, ShowsTheRegistrysOwnWordsOfAnIncompatibleSchema) {
    const auto failure = judge(
        register_text{"a-value", std::make_shared<const schema_text>()},
        reply(409, said(409, "READER_FIELD_MISSING_DEFAULT_VALUE")),
        base
    );
    EXPECT_EQ(failure.kind, failure_kind::incompatible);
    EXPECT_EQ(failure.why.retry, retry_advice::never);
    EXPECT_THAT(
        failure.why.detail,
        AllOf(HasSubstr("\"READER_FIELD_MISSING_DEFAULT_VALUE\""), HasSubstr("compatibility"))
    );
}

TEST(RegistryFailure, NeverShowsABody) {
    const auto failure =
        judge(latest, reply(502, "<html>inner.host.example</html>", "Content-Type: text/html\r\n"), base);
    EXPECT_THAT(failure.why.detail, AllOf(HasSubstr("31 bytes of text/html"), Not(HasSubstr("inner"))));
}

TEST(RegistryFailure, TakesThePauseThatTheRegistryAsksFor) {
    const auto pause = [](int status, const std::string& head) {
        return judge(latest, reply(status, "", head), base).retry_after;
    };
    EXPECT_EQ(pause(429, "Retry-After: 7\r\n"), milliseconds{7'000});
    EXPECT_EQ(pause(503, "retry-after: 1\r\n"), milliseconds{1'000});
    EXPECT_EQ(pause(500, "Retry-After: 7\r\n"), milliseconds{0});
    EXPECT_EQ(pause(429, ""), milliseconds{0});
    EXPECT_EQ(pause(429, "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n"), milliseconds{0});
    EXPECT_EQ(pause(429, "Retry-After: -7\r\n"), milliseconds{0});
    EXPECT_EQ(pause(429, "Retry-After: 99999999999999999999\r\n"), milliseconds{0});
}

TEST(RegistryFailure, OfARequestWithoutAReplyIsNeverInDoubt) {
    const auto lost = judge(latest, error{errc::unavailable, retry_advice::after_delay, true, "lost"});
    EXPECT_EQ(lost.kind, failure_kind::unreachable);
    EXPECT_FALSE(lost.why.in_doubt);
    EXPECT_THAT(lost.why.detail, AllOf(HasSubstr("\"a-value\""), HasSubstr("lost")));
    EXPECT_EQ(judge(latest, error{errc::corrupt, {}, true, "too long"}).kind, failure_kind::not_a_registry);
    EXPECT_EQ(
        judge(latest, error{errc::permission_denied, {}, false, "no trust"}).kind, failure_kind::unreachable
    );
    EXPECT_EQ(judge(latest, error{errc::cancelled, {}, false, "ends"}).kind, failure_kind::cancelled);
}

TEST(RegistryFailure, IsTroubleOrAnAnswer) {
    EXPECT_TRUE(is_trouble(failure_kind::unauthorized));
    EXPECT_TRUE(is_trouble(failure_kind::not_a_registry));
    EXPECT_FALSE(is_trouble(failure_kind::no_such_subject));
    EXPECT_FALSE(is_trouble(failure_kind::cache_full));
    EXPECT_TRUE(another_may_answer(failure_kind::out_of_order));
    EXPECT_FALSE(another_may_answer(failure_kind::throttled));
    EXPECT_FALSE(another_may_answer(failure_kind::unauthorized));
}

}  // namespace
}  // namespace millrace::registry
