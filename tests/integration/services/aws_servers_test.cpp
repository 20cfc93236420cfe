#include "support/private_servers.hpp"
#include "support/services.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

bool answers(const std::string& endpoint, const std::string& path) {
    return http_answers(port_of(endpoint), path);
}

TEST(AwsServers, TheSharedOnesAnswer) {
    const auto& shared = services();
    EXPECT_TRUE(answers(shared.kinesis_endpoint, "/healthcheck"));
    EXPECT_FALSE(answers(shared.kinesis_tls_endpoint, "/healthcheck")) << "it speaks without TLS";
    EXPECT_TRUE(std::filesystem::exists(shared.kinesis_ca));
    EXPECT_TRUE(answers(shared.dynamodb_endpoint, "/"));
    EXPECT_TRUE(answers(shared.moto_endpoint, "/moto-api/"));
}

TEST(AwsServers, PrivateOnesAreKilledAndStartedAgainOnTheSamePorts) {
    private_kinesis kinesis({"SHARD_LIMIT=3"});
    private_dynamodb dynamodb({"--createTableMs", "500"});
    private_moto moto;
    const std::vector<std::pair<private_server*, std::string>> all{
        {&kinesis, kinesis.endpoint()}, {&dynamodb, dynamodb.endpoint()}, {&moto, moto.endpoint()}};
    for (const auto& [server, endpoint] : all) {
        server->kill();
        EXPECT_FALSE(answers(endpoint, "/"));
        server->start();
        EXPECT_TRUE(server->running());
    }
    EXPECT_TRUE(answers(kinesis.endpoint(), "/healthcheck"));
    EXPECT_TRUE(answers(dynamodb.endpoint(), "/"));
    EXPECT_TRUE(answers(moto.endpoint(), "/moto-api/"));
}

}  // namespace
}  // namespace millrace::support
