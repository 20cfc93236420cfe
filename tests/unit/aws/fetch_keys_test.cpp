#include "credentials/fetch_keys.hpp"

#include "support/temporary_folder.hpp"
#include "text/moment.hpp"

#include <deque>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const auto now = *read_moment("2026-11-30T11:00:00Z");
const std::string good =
    R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"S3CR3T","Token":"T0K3N","Expiration":"2026-11-30T12:00:00Z"})";
const aws_keys good_keys{"A", "S3CR3T", "T0K3N", *read_moment("2026-11-30T12:00:00Z")};
const std::string good_xml =
    "<R><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S3CR3T</SecretAccessKey><SessionToken>T0K3N"
    "</SessionToken><Expiration>2026-11-30T12:00:00Z</Expiration></Credentials></R>";

/// Gives its replies one after the other, and remembers what was asked.
class scripted_http final : public http {
public:
    void send(http_request what, http_done done) override {
        asked.push_back(std::move(what));
        if (replies.empty()) {
            done(fail(errc::internal, "nothing more was expected"));
            return;
        }
        auto next = std::move(replies.front());
        replies.pop_front();
        done(std::move(next));
    }
    void reply(int status, std::string body = {}, std::string head = {}) {
        replies.emplace_back(http_reply{status, std::move(head), std::move(body)});
    }
    void silence(bool in_doubt) {
        replies.emplace_back(fail(errc::unavailable, "timed out", retry_advice::after_delay, in_doubt));
    }
    [[nodiscard]] std::vector<std::string> lines() const {
        std::vector<std::string> out;
        for (const auto& one : asked)
            out.push_back(one.method + " " + one.url);
        return out;
    }
    [[nodiscard]] std::string header(std::size_t request, std::string_view name) const {
        for (const auto& [key, value] : asked.at(request).headers)
            if (key == name) return value;
        return "none";
    }

    std::deque<result<http_reply>> replies;
    std::vector<http_request> asked;
};

struct FetchKeys : testing::Test {
    fetch_tools tools() {
        fetch_options options;
        options.asking.pause = milliseconds{0};
        return {http, options, [] { return now; }, {}};
    }
    result<aws_keys> fetch(key_origin origin, std::vector<role> roles = {}) {
        key_plan plan{"test", std::move(origin), std::move(roles), {"https://sts.test/", "eu-west-1"}};
        auto keys = fetch_keys(plan, tools());
        if (!keys) {
            EXPECT_THAT(keys.error().detail, AllOf(Not(HasSubstr("S3CR3T")), Not(HasSubstr("T0K3N"))));
            EXPECT_FALSE(keys.error().in_doubt);
        }
        return keys;
    }
    std::string why(key_origin origin, std::vector<role> roles = {}) {
        const auto keys = fetch(std::move(origin), std::move(roles));
        return keys ? "there are keys" : keys.error().detail;
    }
    std::string file(const std::string& name, const std::string& content) {
        std::ofstream(folder.file(name)) << content;
        return folder.file(name);
    }

    scripted_http http;
    support::temporary_folder folder;
};

using FetchFromContainer = FetchKeys;

TEST_F(FetchFromContainer, SendsTheTokenOfTheFileAsItIsNow) {
    const keys_from::container agent{"http://127.0.0.1/k", "", file("token", "one\n")};
    http.reply(200, good);
    EXPECT_EQ(fetch(agent), good_keys);
    file("token", "two");
    http.reply(200, good);
    EXPECT_TRUE(fetch(agent));
    EXPECT_EQ(http.header(0, "Authorization"), "one");
    EXPECT_EQ(http.header(1, "Authorization"), "two");
    EXPECT_FALSE(http.asked[0].proxy);
}

TEST_F(FetchFromContainer, SendsNoHeaderWithoutAToken) {
    http.reply(200, good);
    EXPECT_TRUE(fetch(keys_from::container{"http://127.0.0.1/k", "", ""}));
    EXPECT_EQ(http.header(0, "Authorization"), "none");
}

TEST_F(FetchFromContainer, NeverSendsATokenThatWouldAddHeaders) {
    EXPECT_THAT(
        why(keys_from::container{"http://127.0.0.1/k", "T0K3N\r\nX-Evil: 1", ""}),
        HasSubstr("more than one line")
    );
    EXPECT_THAT(http.lines(), ElementsAre());
}

TEST_F(FetchFromContainer, SaysWhichTokenFileIsMissing) {
    EXPECT_THAT(why(keys_from::container{"http://127.0.0.1/k", "", "/no/such"}), HasSubstr("/no/such"));
}

TEST_F(FetchFromContainer, AsksAgainAFewTimes) {
    http.silence(true);
    http.reply(500);
    http.reply(200, good);
    EXPECT_EQ(fetch(keys_from::container{"http://127.0.0.1/k", "", ""}), good_keys);
    for (int i = 0; i < 3; ++i)
        http.silence(false);
    EXPECT_THAT(
        why(keys_from::container{"http://127.0.0.1/k", "", ""}),
        AllOf(HasSubstr("the container's agent"), HasSubstr("timed out"))
    );
    EXPECT_EQ(http.asked.size(), 6U);
}

TEST_F(FetchFromContainer, ARefusalIsToldByItsStatusAlone) {
    http.reply(403, "S3CR3T");
    EXPECT_THAT(why(keys_from::container{"http://127.0.0.1/k", "T0K3N", ""}), HasSubstr("status 403"));
    EXPECT_EQ(http.asked.size(), 1U);
}

using FetchFromInstance = FetchKeys;

const std::string roles_path = "http://i/latest/meta-data/iam/security-credentials/";

TEST_F(FetchFromInstance, AsksWithASessionToken) {
    http.reply(200, "PASS");
    http.reply(200, "my-role\n");
    http.reply(200, good);
    EXPECT_EQ(fetch(keys_from::instance{"http://i", true}), good_keys);
    EXPECT_THAT(
        http.lines(),
        ElementsAre("PUT http://i/latest/api/token", "GET " + roles_path, "GET " + roles_path + "my-role")
    );
    EXPECT_EQ(http.header(0, "X-aws-ec2-metadata-token-ttl-seconds"), "21600");
    EXPECT_EQ(http.header(1, "X-aws-ec2-metadata-token"), "PASS");
    EXPECT_EQ(http.header(2, "X-aws-ec2-metadata-token"), "PASS");
    EXPECT_FALSE(http.asked[0].proxy);
}

TEST_F(FetchFromInstance, FallsBackToVersion1OnlyWhereThereIsNoToken) {
    for (const int status : {403, 404, 405, 0}) {
        if (status == 0)
            http.silence(true);
        else
            http.reply(status);
        http.reply(200, "my-role");
        http.reply(200, good);
        EXPECT_EQ(fetch(keys_from::instance{"http://i", true}), good_keys) << status;
        EXPECT_EQ(http.header(http.asked.size() - 1, "X-aws-ec2-metadata-token"), "none");
    }
    http.reply(400);
    EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("status 400"));
    for (int i = 0; i < 4; ++i)
        http.reply(503);
    EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("status 503"));
    for (int i = 0; i < 4; ++i)
        http.silence(false);
    EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("timed out"));
}

TEST_F(FetchFromInstance, DoesNotFallBackWhereThatIsForbidden) {
    http.silence(true);
    EXPECT_THAT(
        why(keys_from::instance{"http://i", false}),
        AllOf(HasSubstr("AWS_EC2_METADATA_V1_DISABLED"), HasSubstr("hop limit"))
    );
    http.reply(404);
    EXPECT_THAT(why(keys_from::instance{"http://i", false}), HasSubstr("AWS_EC2_METADATA_V1_DISABLED"));
}

TEST_F(FetchFromInstance, NamesTheHopLimitWhereTheTokenIsLostAndNeeded) {
    http.silence(true);
    http.reply(401);
    EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("hop limit"));
}

TEST_F(FetchFromInstance, SaysWhenTheInstanceHasNoRole) {
    http.reply(200, "PASS");
    http.reply(404);
    EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("attach one"));
}

TEST_F(FetchFromInstance, PutsNoStrangeNameIntoAnAddress) {
    for (const auto* name : {"../x", "", "a b", "<html>", "a?b"}) {
        http.reply(200, "PASS");
        http.reply(200, name);
        EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("no role's name")) << name;
    }
    http.reply(200, "PA\r\nSS");
    EXPECT_THAT(why(keys_from::instance{"http://i", true}), HasSubstr("that is none"));
}

using FetchFromSts = FetchKeys;

const role pod{"arn:aws:iam::1:role/r", "me", "", std::chrono::seconds{3600}};

TEST_F(FetchFromSts, ByAWebIdentityIsUnsignedAndReadsTheTokenEachTime) {
    const keys_from::web_identity identity{pod, file("jwt", "a.b+c\n")};
    http.reply(200, good_xml);
    EXPECT_EQ(fetch(identity), good_keys);
    file("jwt", "later");
    http.reply(200, good_xml);
    EXPECT_TRUE(fetch(identity));
    EXPECT_EQ(
        http.asked[0].body,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
        "RoleSessionName=me&DurationSeconds=3600&WebIdentityToken=a.b%2Bc"
    );
    EXPECT_EQ(http.header(0, "Authorization"), "none");
    EXPECT_THAT(http.asked[1].body, HasSubstr("WebIdentityToken=later"));
    EXPECT_THAT(why(keys_from::web_identity{pod, "/no/such"}), HasSubstr("/no/such"));
}

const keys_from::values base{{"BASE", "S3CR3T", "", std::nullopt}};

TEST_F(FetchFromSts, ByRolesIsSignedByTheKeysOfTheOneBefore) {
    auto second = pod;
    second.external_id = "x/y";
    http.reply(200, good_xml);
    http.reply(200, good_xml);
    EXPECT_EQ(fetch(base, {pod, second}), good_keys);
    EXPECT_THAT(
        http.header(0, "Authorization"), HasSubstr("Credential=BASE/20261130/eu-west-1/sts/aws4_request")
    );
    EXPECT_THAT(http.header(1, "Authorization"), HasSubstr("Credential=A/20261130/"));
    EXPECT_EQ(http.header(1, "X-Amz-Security-Token"), "T0K3N");
    EXPECT_THAT(http.asked[1].body, HasSubstr("&ExternalId=x%2Fy"));
    EXPECT_EQ(http.asked[0].url, "https://sts.test/");
}

TEST_F(FetchFromSts, ASecondSignatureGoesByTheClockOfSts) {
    http.reply(
        403,
        "<E><Error><Code>SignatureDoesNotMatch</Code></Error></E>",
        "Date: Mon, 30 Nov 2026 11:20:00 GMT\r\n"
    );
    http.reply(200, good_xml);
    EXPECT_EQ(fetch(base, {pod}), good_keys);
    EXPECT_EQ(http.header(0, "X-Amz-Date"), "20261130T110000Z");
    EXPECT_EQ(http.header(1, "X-Amz-Date"), "20261130T112000Z");
}

// Else good keys of an hour were over already on a machine that is 80 minutes ahead.
TEST_F(FetchFromSts, TheEndOfTheKeysIsToldByTheClockOfThisMachine) {
    const keys_from::web_identity identity{pod, file("jwt", "a.b+c\n")};
    for (const auto& [date, off] :
         {std::pair("09:40:00", std::chrono::minutes{80}),
          std::pair("12:20:00", std::chrono::minutes{-80}),
          std::pair("11:00:20", std::chrono::minutes{0})}) {
        for (const bool by_role : {false, true}) {
            http.reply(200, good_xml, "Date: Mon, 30 Nov 2026 " + std::string(date) + " GMT\r\n");
            const auto keys = by_role ? fetch(base, {pod}) : fetch(identity);
            ASSERT_TRUE(keys);
            EXPECT_EQ(*keys->expires - *good_keys.expires, off) << date << by_role;
        }
    }
}

TEST_F(FetchFromSts, ARefusalSaysWhatStsSaidAndIsNotRepeated) {
    http.reply(
        403,
        "<E><Error><Code>AccessDenied</Code><Message>not authorized</Message></Error></E>",
        "Date: Mon, 30 Nov 2026 11:00:10 GMT\r\n"
    );
    const auto keys = fetch(base, {pod});
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().code, errc::permission_denied);
    EXPECT_THAT(
        keys.error().detail,
        AllOf(HasSubstr("role arn:aws:iam::1:role/r"), HasSubstr("AccessDenied: not authorized"))
    );
    EXPECT_EQ(http.asked.size(), 1U);
    http.reply(200, "<html>S3CR3T</html>");
    EXPECT_THAT(why(base, {pod}), HasSubstr("is the address that of STS?"));
}

TEST_F(FetchFromSts, WhatPassesIsAskedAgain) {
    http.silence(true);
    http.reply(503, "<E><Error><Code>ServiceUnavailable</Code></Error></E>");
    http.reply(200, good_xml);
    EXPECT_EQ(fetch(base, {pod}), good_keys);
    http.reply(400, "<E><Error><Code>IDPCommunicationError</Code></Error></E>");
    const auto keys = fetch(base, {pod});
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().code, errc::unavailable);
}

TEST_F(FetchFromSts, ARoleIsNotAskedForWithoutTheKeysBeforeIt) {
    http.reply(404);
    http.reply(403, "", "");
    EXPECT_THAT(why(keys_from::container{"http://127.0.0.1/k", "", ""}, {pod}), HasSubstr("status 404"));
    EXPECT_EQ(http.asked.size(), 1U);
}

}  // namespace
}  // namespace millrace::aws
