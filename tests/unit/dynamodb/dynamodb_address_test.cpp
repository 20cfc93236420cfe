#include "unit/runtime/refusal.hpp"

namespace millrace::test {
namespace {

TEST(Url, ADynamodbAddressIsOneOfAState) {
    const auto* const given = "dynamodb://eu-west-1/leases?endpoint=http://127.0.0.1:8000";
    const auto state = parse_url(given, url_role::state);
    ASSERT_TRUE(state) << state.error().detail;
    EXPECT_EQ(state->scheme, "dynamodb");
    EXPECT_EQ(state->path, given);
    EXPECT_EQ(state->given, given);
    for (const auto* bad :
         {"dynamodb:table",
          "dynamodb://eu-west-1",
          "dynamodb://eu-west-1/ab",
          "dynamodb://eu-west-1/a/b",
          "dynamodb://EU/leases",
          "dynamodb:///leases",
          "dynamodb://eu-west-1/leases?region=x",
          "dynamodb://eu-west-1/leases?endpoint=ftp://h",
          "dynamodb://eu-west-1/leases?endpoint=http://h/?x=1&y=2"}) {
        EXPECT_TRUE(contains(refusal(bad, url_role::state), "dynamodb://REGION/TABLE[?endpoint=URL]")) << bad;
    }
    EXPECT_TRUE(contains(refusal(given, url_role::sink), "of no use here"));
    const auto secret = refusal("dynamodb://eu-west-1/leases?endpoint=http://u:topsecret@h", url_role::state);
    EXPECT_FALSE(contains(secret, "topsecret")) << secret;
}

}  // namespace
}  // namespace millrace::test
