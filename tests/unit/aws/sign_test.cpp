#include "signing/sign.hpp"

#include <chrono>

#include <gmock/gmock.h>

namespace millrace::aws {
namespace {

using testing::HasSubstr;

const header_list host{{"Host", "h"}};

std::string canonical(std::string_view path, std::string_view query, const header_list& headers = host) {
    const auto text = canonical_request({"GET", path, query, headers, ""});
    return text.substr(4);  // behind "GET\n"
}

TEST(Sign, SortsParametersByNameThenValueAfterEncoding) {
    EXPECT_THAT(canonical("/", "b=2&a=2&a=1&a-b=0&%61=0"), HasSubstr("/\na=0&a=1&a=2&a-b=0&b=2\nhost:h"));
    EXPECT_THAT(canonical("/", "flag&a=x%2fy+z"), HasSubstr("/\na=x%2Fy%2Bz&flag=\nhost:h"));
    EXPECT_THAT(canonical("/", "a=%zz&b=%4"), HasSubstr("/\na=%25zz&b=%254\nhost:h"));
}

TEST(Sign, EncodesAPathOnceMoreThanItIsOnTheWire) {
    EXPECT_THAT(canonical("/a%20b", ""), HasSubstr("/a%2520b\n\nhost:h"));
    EXPECT_THAT(canonical("", ""), HasSubstr("/\n\nhost:h"));
    EXPECT_THAT(canonical("/a/../../b/.", ""), HasSubstr("/b/\n\nhost:h"));
}

TEST(Sign, GivesASignatureThatEachPartOfTheRequestChanges) {
    const aws_keys keys{"id", "secret", "", std::nullopt};
    const wall_time time{std::chrono::seconds{1'000'000'000}};
    const auto signature = [&](signable what, const aws_keys& with, const signing_scope& scope, wall_time now
                           ) { return sign(what, with, scope, now).back().second; };
    const signable what{"POST", "/", "", host, "body"};
    const signing_scope scope{"r", "s"};
    const auto first = signature(what, keys, scope, time);
    EXPECT_EQ(signature(what, keys, scope, time), first);
    EXPECT_NE(signature({"PUT", "/", "", host, "body"}, keys, scope, time), first);
    EXPECT_NE(signature({"POST", "/", "", host, "Body"}, keys, scope, time), first);
    EXPECT_NE(signature({"POST", "/", "", header_list{{"Host", "i"}}, "body"}, keys, scope, time), first);
    EXPECT_NE(signature(what, {"id", "other", "", std::nullopt}, scope, time), first);
    EXPECT_NE(signature(what, keys, {"r2", "s"}, time), first);
    EXPECT_NE(signature(what, keys, scope, time + std::chrono::seconds{1}), first);
}

TEST(Sign, NeverShowsTheSecret) {
    const aws_keys keys{"id", "the-secret", "the-token", std::nullopt};
    const auto added = sign({"POST", "/", "", host, ""}, keys, {"r", "s"}, wall_time{});
    ASSERT_EQ(added.size(), 3U);
    EXPECT_EQ(added[0], (std::pair<std::string, std::string>("X-Amz-Date", "19700101T000000Z")));
    EXPECT_EQ(added[1].second, "the-token");
    EXPECT_THAT(added[2].second, testing::Not(HasSubstr("the-secret")));
    EXPECT_THAT(added[2].second, HasSubstr("Credential=id/19700101/r/s/aws4_request, "));
    EXPECT_THAT(added[2].second, HasSubstr("SignedHeaders=host;x-amz-date;x-amz-security-token, "));
}

TEST(Sign, KeepsItsKeyOnlyForTheDayAndTheSecretThatItWasMadeOf) {
    const aws_keys keys{"id", "secret", "", std::nullopt};
    const aws_keys others{"id", "other", "", std::nullopt};
    const signable what{"POST", "/", "", host, "body"};
    const wall_time evening{std::chrono::hours{23}};
    signer signs("r", "s");
    for (const auto& [by, at] :
         {std::pair{keys, evening},
          std::pair{keys, evening + std::chrono::minutes{59}},
          std::pair{keys, evening + std::chrono::hours{1}},
          std::pair{others, evening + std::chrono::hours{1}},
          std::pair{keys, evening}})
        EXPECT_EQ(signs.sign(what, by, at), sign(what, by, {"r", "s"}, at));
}

}  // namespace
}  // namespace millrace::aws
