#include "client/classify.hpp"

#include <gmock/gmock.h>

namespace millrace::aws {
namespace {

using testing::HasSubstr;
using testing::Not;

failure_class kind_of(int status, std::string_view type, std::string_view message = {}) {
    return classify(status, type, message).kind;
}

TEST(Classify, TakesEachNameOfThrottlingForThrottlingWithoutEffect) {
    for (const std::string_view type :
         {"ProvisionedThroughputExceededException",
          "Throttling",
          "ThrottlingException",
          "ThrottledException",
          "RequestThrottled",
          "RequestThrottledException",
          "TooManyRequestsException",
          "RequestLimitExceeded",
          "BandwidthLimitExceeded",
          "LimitExceededException",
          "PriorRequestNotComplete",
          "TransactionInProgressException",
          "SlowDown",
          "KMSThrottlingException"}) {
        for (const int status : {400, 503}) {
            const auto means = classify(status, type, {});
            EXPECT_EQ(means.kind, failure_class::throttled) << type;
            EXPECT_EQ(means.code, errc::throttled) << type;
            EXPECT_FALSE(means.effect_possible) << type;
        }
    }
    EXPECT_EQ(kind_of(429, ""), failure_class::throttled);
    EXPECT_EQ(kind_of(429, "SomethingNew"), failure_class::throttled);
}

TEST(Classify, TakesFaultsOfTheServiceForTransientWithAPossibleEffect) {
    for (const int status : {500, 502, 503, 504}) {
        for (const std::string_view type : {"", "InternalFailure", "SomethingNewException"}) {
            const auto means = classify(status, type, {});
            EXPECT_EQ(means.kind, failure_class::transient) << status << type;
            EXPECT_EQ(means.code, errc::unavailable);
            EXPECT_EQ(means.retry, retry_advice::after_delay);
            EXPECT_TRUE(means.effect_possible) << status << type;
        }
    }
    EXPECT_TRUE(classify(400, "InternalServerError", {}).effect_possible);
}

TEST(Classify, KnowsConflictsThatLeaveNothingBehind) {
    for (const auto& means :
         {classify(400, "TransactionConflictException", {}),
          classify(400, "ReplicatedWriteConflictException", {}),
          classify(408, "", {})}) {
        EXPECT_EQ(means.kind, failure_class::transient);
        EXPECT_FALSE(means.effect_possible);
    }
}

TEST(Classify, TellsAWrongClockFromExpiredKeys) {
    for (const std::string_view type :
         {"RequestExpired",
          "InvalidSignatureException",
          "SignatureDoesNotMatch",
          "RequestTimeTooSkewed",
          "RequestInTheFuture",
          "AuthFailure"}) {
        EXPECT_EQ(kind_of(403, type), failure_class::clock_skew) << type;
    }
    for (const std::string_view type :
         {"ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidClientTokenId"}) {
        EXPECT_EQ(kind_of(400, type), failure_class::expired_keys) << type;
    }
}

TEST(Classify, NamesTheClockWhereTheServiceNamesATime) {
    const auto advice = [](std::string_view message) {
        return std::string(classify(403, "InvalidSignatureException", message).advice);
    };
    EXPECT_THAT(advice("Signature expired: 20261130T160000Z is now earlier than"), Not(HasSubstr("secret")));
    EXPECT_THAT(advice("Signature not yet current: 20261130T170000Z"), HasSubstr("clock"));
    EXPECT_THAT(advice("The request signature we calculated does not match"), HasSubstr("secret access key"));
}

TEST(Classify, GivesFinalRefusalsTheCodeThatAdaptersActOn) {
    const auto is = [](std::string_view type, errc code, retry_advice retry) {
        const auto means = classify(400, type, {});
        EXPECT_EQ(means.kind, failure_class::final) << type;
        EXPECT_EQ(means.code, code) << type;
        EXPECT_EQ(means.retry, retry) << type;
        EXPECT_FALSE(means.effect_possible) << type;
        EXPECT_FALSE(means.advice.empty()) << type;
    };
    is("ConditionalCheckFailedException", errc::conflict, retry_advice::never);
    is("ResourceNotFoundException", errc::not_found, retry_advice::after_delay);
    is("ResourceInUseException", errc::unavailable, retry_advice::after_delay);
    is("ExpiredIteratorException", errc::expired_cursor, retry_advice::now);
    is("ExpiredNextTokenException", errc::expired_cursor, retry_advice::now);
    is("AccessDeniedException", errc::permission_denied, retry_advice::after_delay);
    is("MissingAuthenticationToken", errc::permission_denied, retry_advice::after_delay);
    is("KMSAccessDeniedException", errc::permission_denied, retry_advice::after_delay);
    is("KMSDisabledException", errc::permission_denied, retry_advice::after_delay);
    is("KMSInvalidStateException", errc::permission_denied, retry_advice::after_delay);
    is("ValidationException", errc::invalid_argument, retry_advice::never);
    is("InvalidArgumentException", errc::invalid_argument, retry_advice::never);
    is("SomethingNewException", errc::invalid_argument, retry_advice::after_delay);
}

TEST(Classify, TakesRepliesWithoutATypeForThoseOfSomethingBetween) {
    for (const int status : {301, 302, 307, 400, 405}) {
        const auto means = classify(status, "", {});
        EXPECT_EQ(means.kind, failure_class::final) << status;
        EXPECT_EQ(means.code, errc::unavailable) << status;
        EXPECT_EQ(means.retry, retry_advice::after_delay) << status;
        EXPECT_THAT(std::string(means.advice), HasSubstr("endpoint")) << status;
        EXPECT_FALSE(means.effect_possible) << status;
    }
    EXPECT_EQ(classify(403, "", {}).code, errc::permission_denied);
    EXPECT_EQ(classify(404, "", {}).code, errc::invalid_config) << "at the start this is said, not awaited";
    EXPECT_THAT(std::string(classify(407, "", {}).advice), HasSubstr("proxy"));
    EXPECT_EQ(classify(413, "", {}).code, errc::invalid_argument);
}

TEST(Classify, FindsTheTypeBetweenNamespaceAndTail) {
    EXPECT_EQ(bare_type("FooError"), "FooError");
    EXPECT_EQ(bare_type("com.amazonaws.dynamodb.v20120810#FooError"), "FooError");
    EXPECT_EQ(bare_type("FooError:http://internal.amazon.com/coral/com.amazon.coral/#x"), "FooError");
    EXPECT_EQ(bare_type("aws.protocols#FooError:http://internal.amazon.com/coral/"), "FooError");
    EXPECT_EQ(bare_type(""), "");
    EXPECT_EQ(bare_type("#"), "");
}

TEST(Classify, ShowsNoValuesAndNoSecondLineOfAMessage) {
    EXPECT_EQ(
        shown_message("1 validation error detected: Value 'se' at 'cret' at 'partitionKey' failed"),
        "1 validation error detected: Value '...' at 'partitionKey' failed"
    );
    EXPECT_EQ(shown_message("does not match\n\nThe Canonical String should have been x"), "does not match");
    EXPECT_EQ(shown_message("Value 'open"), "Value 'open");
    EXPECT_EQ(shown_message("' at 'Value '"), "' at 'Value '");
    EXPECT_EQ(shown_message(std::string(299, 'a') + "\xc3\xa4\xc3\xa4"), std::string(299, 'a'));
    EXPECT_EQ(shown_message("a\tb"), "a b");
}

}  // namespace
}  // namespace millrace::aws
