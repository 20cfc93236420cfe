#include "client/judge.hpp"

#include <gmock/gmock.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const wall_time received{std::chrono::seconds{1'796'000'000}};  // Mon, 30 Nov 2026 00:53:20 GMT
constexpr auto date = "Date: Mon, 30 Nov 2026 00:53:20 GMT\r\n";
constexpr auto five_minutes_later = "Date: Mon, 30 Nov 2026 00:58:20 GMT\r\n";
constexpr auto json = "Content-Type: application/x-amz-json-1.0\r\n";

http_reply reply(int status, std::string head, std::string body) {
    return {status, std::move(head), std::move(body)};
}

tl::expected<api_reply, failed_attempt> judged(result<http_reply> came, milliseconds offset = 0ms) {
    return judge(
        std::move(came),
        {.operation = "DynamoDB_20120810.GetItem", .host = "h:1", .received = received, .offset = offset}
    );
}

TEST(Judge, GivesAGoodReplyWithItsDate) {
    const auto good = judged(reply(200, std::string(five_minutes_later) + json, "{}"));
    ASSERT_TRUE(good);
    EXPECT_EQ(good->body, "{}");
    EXPECT_EQ(good->content_type, "application/x-amz-json-1.0");
    EXPECT_EQ(good->date, received + 5min);
}

TEST(Judge, TakesTheTimeFromThisMachineWhereTheServiceGivesNone) {
    for (const auto* const head : {"", "Date: yesterday\r\n", "Date:\r\n"}) {
        const auto good = judged(reply(200, head, "{}"), 2s);
        ASSERT_TRUE(good);
        EXPECT_EQ(good->date, received + 2s);
    }
}

TEST(Judge, TakesAWrongChecksumForALostReply) {
    EXPECT_TRUE(judged(reply(200, "x-amz-crc32: 3421780262\r\n", "123456789")));
    EXPECT_TRUE(judged(reply(200, "X-Amz-Crc32:0\r\n", "")));
    for (const auto* const head :
         {"x-amz-crc32: 3421780263\r\n",
          "x-amz-crc32: 0\r\n",
          "x-amz-crc32: 3421780262x\r\n",
          "x-amz-crc32: 99999999999\r\n"}) {
        const auto bad = judged(reply(200, head, "123456789"));
        ASSERT_FALSE(bad) << head;
        EXPECT_EQ(bad.error().what, (attempt_failure{failure_class::transient, true, false}));
        EXPECT_EQ(bad.error().failure.why.code, errc::unavailable);
        EXPECT_THAT(bad.error().failure.why.detail, HasSubstr("checksum"));
    }
    // Also of an error, which then is not believed.
    const auto bad = judged(reply(400, "x-amz-crc32: 1\r\n", R"({"__type":"ValidationException"})"));
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().what.kind, failure_class::transient);
    EXPECT_TRUE(bad.error().what.effect_possible);
}

TEST(Judge, TellsWhatTheServiceSaid) {
    const std::string body = R"({"__type":"ns#ConditionalCheckFailedException","message":"no","Item":{}})";
    const auto bad = judged(reply(400, json, body));
    ASSERT_FALSE(bad);
    const auto& failure = bad.error().failure;
    EXPECT_EQ(failure.type, "ConditionalCheckFailedException");
    EXPECT_EQ(failure.message, "no");
    EXPECT_EQ(failure.body, body);
    EXPECT_EQ(failure.status, 400);
    EXPECT_EQ(failure.why.code, errc::conflict);
    EXPECT_EQ(
        failure.why.detail, "GetItem at h:1: ConditionalCheckFailedException: no; read it again, then decide"
    );
    EXPECT_EQ(bad.error().what, (attempt_failure{failure_class::final, false, false}));
}

TEST(Judge, PrefersTheErrorTypeOfTheHeader) {
    const auto bad = judged(reply(400, "x-amzn-ErrorType: ThrottlingException:http://x/\r\n", ""));
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().failure.type, "ThrottlingException");
    EXPECT_EQ(bad.error().what.kind, failure_class::throttled);
}

TEST(Judge, TakesAWebPageForAFaultBetweenWhateverItsStatus) {
    const std::string page = "<html>please log in</html>";
    const auto with_200 = judged(reply(200, "Content-Type: text/html; charset=utf-8\r\n", page));
    ASSERT_FALSE(with_200);
    EXPECT_EQ(with_200.error().failure.why.code, errc::unavailable);
    EXPECT_TRUE(with_200.error().what.effect_possible);
    EXPECT_THAT(with_200.error().failure.why.detail, Not(HasSubstr("log in")));
    const auto with_503 = judged(reply(503, "Content-Type: text/html\r\n", page));
    ASSERT_FALSE(with_503);
    EXPECT_EQ(with_503.error().what, (attempt_failure{failure_class::transient, true, false}));
    EXPECT_THAT(with_503.error().failure.why.detail, HasSubstr("HTTP status 503"));
}

TEST(Judge, LearnsTheClocksOffsetFromTheDateOfARefusedSignature) {
    const std::string body = R"({"__type":"InvalidSignatureException","message":"Signature expired: x"})";
    const auto skewed = judged(reply(403, five_minutes_later, body));
    ASSERT_FALSE(skewed);
    EXPECT_EQ(skewed.error().offset, std::optional<milliseconds>(5min));
    EXPECT_EQ(skewed.error().what, (attempt_failure{failure_class::clock_skew, false, true}));

    const auto known = judged(reply(403, five_minutes_later, body), 5min);
    ASSERT_FALSE(known);
    EXPECT_FALSE(known.error().what.clock_was_wrong);

    const auto behind = judged(reply(403, date, body), 5min);
    ASSERT_FALSE(behind);
    EXPECT_TRUE(behind.error().what.clock_was_wrong);
    EXPECT_EQ(behind.error().offset, std::optional<milliseconds>(0ms));

    for (const auto* const head : {date, ""}) {
        const auto wrong_secret = judged(reply(403, head, body));
        ASSERT_FALSE(wrong_secret);
        EXPECT_FALSE(wrong_secret.error().what.clock_was_wrong);
    }
}

TEST(Judge, TakesNoOffsetFromOtherFailures) {
    const auto bad = judged(reply(400, five_minutes_later, R"({"__type":"ValidationException"})"));
    ASSERT_FALSE(bad);
    EXPECT_FALSE(bad.error().offset);
}

TEST(Judge, GoesOnAfterALostConnectionButNotAfterOtherFaultsOfTheTransport) {
    const auto of = [](errc code, bool in_doubt) {
        return judged(fail(code, "cannot", retry_advice::after_delay, in_doubt)).error();
    };
    EXPECT_EQ(of(errc::unavailable, true).what, (attempt_failure{failure_class::transient, true, false}));
    EXPECT_EQ(of(errc::unavailable, false).what, (attempt_failure{failure_class::transient, false, false}));
    EXPECT_EQ(of(errc::permission_denied, false).what, (attempt_failure{failure_class::final, false, false}));
    EXPECT_EQ(of(errc::cancelled, true).what, (attempt_failure{failure_class::final, true, false}));
    EXPECT_EQ(of(errc::unavailable, true).failure.why.detail, "GetItem: cannot");
    EXPECT_EQ(of(errc::unavailable, true).failure.status, 0);
}

TEST(HttpReply, FindsAHeaderInAnyCase) {
    const http_reply some{200, "A: 1\r\nDate:  x y \r\nno colon\r\nEmpty:\r\na: 2\n\r\n", ""};
    EXPECT_EQ(some.header("a"), "1");
    EXPECT_EQ(some.header("DATE"), "x y");
    EXPECT_EQ(some.header("Empty"), "");
    EXPECT_EQ(some.header("Dat"), "");
    EXPECT_EQ(some.header(""), "");
}

}  // namespace
}  // namespace millrace::aws
