#include "support/kinesis_fake/signature_check.hpp"

#include <gtest/gtest.h>

namespace millrace::kinesis_fake {
namespace {

// 30 Aug 2015, 12:36:00 UTC.
constexpr wall_time signed_at{std::chrono::seconds{1'440'938'160}};

/// The signature was worked out with Python's hmac and hashlib.
signed_request proper() {
    return {
        {{"host", "127.0.0.1:4567"},
         {"x-amz-date", "20150830T123600Z"},
         {"x-amz-target", "Kinesis_20131202.ListShards"},
         {"content-type", "application/x-amz-json-1.1"},
         {"authorization",
          "AWS4-HMAC-SHA256 Credential=AKID/20150830/us-east-1/kinesis/aws4_request, "
          "SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
          "Signature=15ebbf8584f264e6df3e8c7467fe6197481df3d7fffca56b27ef02c3fbfd52d3"}},
        "{\"StreamName\":\"orders\"}"};
}

std::string refused(const signed_request& what, wall_time now = signed_at) {
    const auto why = check_signature(what, "secret", now);
    return why ? why->type : "";
}

TEST(KinesisFakeSignature, PassesARequestThatIsSigned) {
    EXPECT_EQ(refused(proper()), "");
    EXPECT_EQ(refused(proper(), signed_at + 5min), "");
    EXPECT_EQ(refused(proper(), signed_at - 5min), "");
}

TEST(KinesisFakeSignature, RefusesARequestOfAnotherTime) {
    const auto late = check_signature(proper(), "secret", signed_at + 5min + 1s);
    ASSERT_TRUE(late);
    EXPECT_EQ(
        late->message,
        "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z (20150830T124101Z - 5 min.)"
    );
    const auto early = check_signature(proper(), "secret", signed_at - 5min - 1s);
    ASSERT_TRUE(early);
    EXPECT_TRUE(early->message.starts_with("Signature not yet current: ")) << early->message;
}

TEST(KinesisFakeSignature, RefusesMissingHeadersAndWhatIsNotSigned) {
    for (const char* missing : {"authorization", "x-amz-date"}) {
        auto what = proper();
        what.headers.erase(missing);
        EXPECT_EQ(refused(what), "MissingAuthenticationTokenException") << missing;
    }
    auto extra = proper();
    extra.headers["x-amz-security-token"] = "token";
    EXPECT_EQ(refused(extra), "InvalidSignatureException");
}

TEST(KinesisFakeSignature, RefusesABodyOrAHeaderOrAKeyThatWasNotSigned) {
    auto body = proper();
    body.body += " ";
    EXPECT_EQ(refused(body), "InvalidSignatureException");
    auto header = proper();
    header.headers["x-amz-target"] = "Kinesis_20131202.DeleteStream";
    EXPECT_EQ(refused(header), "InvalidSignatureException");
    EXPECT_TRUE(check_signature(proper(), "another", signed_at));
    EXPECT_FALSE(check_signature(body, "", signed_at)) << "without a secret only the form is checked";
}

}  // namespace
}  // namespace millrace::kinesis_fake
