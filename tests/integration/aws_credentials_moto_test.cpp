// The chain of credentials against moto, which is written after AWS's own services.

#include "credentials/key_chain.hpp"
#include "support/services.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;

struct AwsCredentialsMoto : testing::Test {
    AwsCredentialsMoto() {
        variables = {
            {"HOME", folder.path().string()},
            {"AWS_ENDPOINT_URL_STS", support::services().moto_endpoint},
            {"AWS_EC2_METADATA_SERVICE_ENDPOINT", support::services().moto_endpoint}};
        options.variables = [this](const std::string& name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
        };
        options.fetching.agent_timeout = 20s;  // a busy machine
        options.fetching.sts_timeout = 60s;
    }

    [[nodiscard]] result<aws_keys> get() const {
        key_chain chain(options);
        std::promise<result<aws_keys>> told;
        chain.get([&](result<aws_keys> keys) { told.set_value(std::move(keys)); });
        return told.get_future().get();
    }

    /// Temporary keys that begin to be old in about an hour or later.
    void expect_temporary() const {
        const auto keys = get();
        ASSERT_TRUE(keys) << keys.error().detail;
        EXPECT_FALSE(keys->session_token.empty());
        ASSERT_TRUE(keys->expires);
        EXPECT_GT(*keys->expires, std::chrono::system_clock::now() + 30min);
    }

    support::temporary_folder folder;
    std::map<std::string, std::string> variables;
    key_chain_options options;
};

TEST_F(AwsCredentialsMoto, ARoleIsTakenOn) {
    variables["AWS_PROFILE"] = "a";
    variables["AWS_CONFIG_FILE"] = folder.file("config");
    std::ofstream(folder.file("config")
    ) << "[profile a]\nrole_arn = arn:aws:iam::123456789012:role/a\nsource_profile = b\nexternal_id = x/y z\n"
         "[profile b]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = secret\n";
    expect_temporary();
}

TEST_F(AwsCredentialsMoto, ARoleIsTakenOnByAWebIdentity) {
    variables["AWS_ROLE_ARN"] = "arn:aws:iam::123456789012:role/pod";
    variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder.file("jwt");
    std::ofstream(folder.file("jwt")) << "head.body.signature\n";
    expect_temporary();
}

TEST_F(AwsCredentialsMoto, AnInstanceHasKeys) {
    expect_temporary();
}

}  // namespace
}  // namespace millrace::aws
