#include "client.hpp"
#include "curl_http.hpp"
#include "integration/aws_outcome.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include <gmock/gmock.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using api_outcome = tl::expected<api_reply, api_failure>;

std::shared_ptr<key_source> keys_of(std::string id, std::string secret) {
    return std::make_shared<fixed_keys>(aws_keys{std::move(id), std::move(secret), "", std::nullopt});
}

api_request list(const std::string& operation) {
    return {.operation = operation, .content_type = "application/x-amz-json-1.1", .body = "{}"};
}

api_outcome ask(api& by, api_request what) {
    test::outcomes<api_outcome> all;
    by.send(std::move(what), all.callback());
    return all.next();
}

/// moto that checks signatures, with a user who may do everything.
class AwsSignedMoto : public testing::Test {
protected:
    void SetUp() override {
        iam("Action=CreateUser&UserName=someone");
        iam("Action=PutUserPolicy&UserName=someone&PolicyName=all&PolicyDocument="
            "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22"
            "Action%22%3A%22%2A%22%2C%22Resource%22%3A%22%2A%22%7D%5D%7D");
        const auto made = iam("Action=CreateAccessKey&UserName=someone");
        id = element(made, "AccessKeyId");
        secret = element(made, "SecretAccessKey");
        post(moto.endpoint() + "/moto-api/reset-auth", "0", {{"Content-Type", "text/plain"}});
    }

    std::string post(
        const std::string& url, std::string body, std::vector<std::pair<std::string, std::string>> headers
    ) {
        test::outcomes<result<http_reply>> all;
        http.send(
            {.method = "POST", .url = url, .headers = std::move(headers), .body = std::move(body)},
            all.callback()
        );
        auto came = all.next();
        if (!came || came->status != 200) throw std::runtime_error("moto refuses what a test sets up");
        return came->body;
    }
    std::string iam(const std::string& form) {
        return post(
            moto.endpoint(),
            form + "&Version=2010-05-08",
            {{"Content-Type", "application/x-www-form-urlencoded"},
             {"Authorization",
              "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, "
              "Signature=0"}}
        );
    }
    static std::string element(const std::string& xml, const std::string& name) {
        const auto begin = xml.find("<" + name + ">") + name.size() + 2;
        return xml.substr(begin, xml.find("</" + name + ">") - begin);
    }
    [[nodiscard]] client_options options() const {
        return {.service = "dynamodb", .region = "us-east-1", .endpoint = moto.endpoint()};
    }

    support::private_moto moto;
    curl_http http;
    std::string id;
    std::string secret;
};

TEST_F(AwsSignedMoto, TakesWhatIsSignedWithTheRightSecret) {
    client sut(options(), keys_of(id, secret));
    const auto came = ask(sut, list("DynamoDB_20120810.ListTables"));
    ASSERT_TRUE(came) << came.error().why.detail;
    EXPECT_THAT(came->body, HasSubstr("TableNames"));
}

TEST_F(AwsSignedMoto, RefusesAWrongSecretAndTheFailureSaysWhatToCheck) {
    client sut(options(), keys_of(id, "a-wrong-secret"));
    const auto came = ask(sut, list("DynamoDB_20120810.ListTables"));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::permission_denied) << came.error().why.detail;
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_THAT(came.error().why.detail, HasSubstr("check the secret access key"));
    EXPECT_THAT(came.error().why.detail, Not(HasSubstr("a-wrong-secret")));
}

TEST_F(AwsSignedMoto, RefusesAnUnknownKeyAndTheFailureSaysWhatToCheck) {
    client sut(options(), keys_of("AKIAIOSFODNN7EXAMPLE", secret));
    const auto came = ask(sut, list("DynamoDB_20120810.ListTables"));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::permission_denied) << came.error().why.detail;
    EXPECT_THAT(came.error().why.detail, HasSubstr("check the access key"));
}

/// kinesis-local by TLS, which offers HTTP/2.
class AwsTls : public testing::Test {
protected:
    [[nodiscard]] client_options options(const std::string& endpoint) const {
        return {
            .service = "kinesis",
            .region = "us-east-1",
            .endpoint = endpoint,
            .ca_file = services.kinesis_ca.string()};
    }
    static client_options trusting(client_options options, std::string ca_file) {
        options.ca_file = std::move(ca_file);
        return options;
    }

    const support::shared_services& services = support::services();
    std::shared_ptr<key_source> keys = keys_of("any", "any");
};

TEST_F(AwsTls, SharesOneConnectionAmongManyRequestsByHttp2) {
    support::fault_proxy proxy(support::port_of(services.kinesis_tls_endpoint));
    client sut(options("https://localhost:" + std::to_string(proxy.port())), keys);
    test::outcomes<api_outcome> all;
    auto what = list("Kinesis_20131202.ListStreams");
    what.timeout = 25s;  // the first replies of kinesis-local on a loaded machine
    for (int i = 0; i < 40; ++i)
        sut.send(what, all.callback());
    for (const auto& came : all.take(40)) {
        ASSERT_TRUE(came) << came.error().why.detail;
        EXPECT_THAT(came->body, HasSubstr("StreamNames"));
    }
    EXPECT_EQ(proxy.connections(), 1U);
}

TEST_F(AwsTls, RefusesACertificateWhoseAuthorityItDoesNotTrust) {
    client sut(trusting(options(services.kinesis_tls_endpoint), {}), keys);
    auto what = list("Kinesis_20131202.ListStreams");
    what.repeatable = false;
    const auto came = ask(sut, std::move(what));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::permission_denied) << came.error().why.detail;
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_THAT(came.error().why.detail, HasSubstr("AWS_CA_BUNDLE"));
}

TEST_F(AwsTls, RefusesACertificateOfAnotherHost) {
    const auto port = std::to_string(support::port_of(services.kinesis_tls_endpoint));
    client sut(options("https://127.0.0.2:" + port), keys);
    const auto came = ask(sut, list("Kinesis_20131202.ListStreams"));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::permission_denied) << came.error().why.detail;
}

TEST_F(AwsTls, TrustsTheAuthoritiesOfTheEnvironment) {
    ::setenv("AWS_CA_BUNDLE", services.kinesis_ca.c_str(), 1);
    client sut(trusting(options(services.kinesis_tls_endpoint), {}), keys);
    ::unsetenv("AWS_CA_BUNDLE");
    const auto came = ask(sut, list("Kinesis_20131202.ListStreams"));
    EXPECT_TRUE(came) << came.error().why.detail;
}

TEST_F(AwsTls, SaysThatItsFileOfAuthoritiesCannotBeRead) {
    client sut(trusting(options(services.kinesis_tls_endpoint), "/nowhere/ca.crt"), keys);
    const auto came = ask(sut, list("Kinesis_20131202.ListStreams"));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::invalid_config) << came.error().why.detail;
    EXPECT_THAT(came.error().why.detail, HasSubstr("/nowhere/ca.crt"));
}

}  // namespace
}  // namespace millrace::aws
