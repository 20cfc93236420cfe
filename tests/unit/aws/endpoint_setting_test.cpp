#include "endpoint_setting.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

result<std::string> with(
    const std::map<std::string, std::string>& set, std::string_view service = "kinesis"
) {
    return configured_endpoint(
        [set](const std::string& name) {
            const auto found = set.find(name);
            return found == set.end() ? std::string() : found->second;
        },
        service
    );
}

TEST(EndpointSetting, IsThatOfTheServiceThenThatOfAllThenAwsItself) {
    EXPECT_EQ(with({}), "");
    EXPECT_EQ(with({{"AWS_ENDPOINT_URL", "http://localhost:4566"}}), "http://localhost:4566");
    const std::map<std::string, std::string> both{
        {"AWS_ENDPOINT_URL", "http://localhost:4566"},
        {"AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:8000"}};
    EXPECT_EQ(with(both, "dynamodb"), "http://localhost:8000");
    EXPECT_EQ(with(both, "kinesis"), "http://localhost:4566");
}

TEST(EndpointSetting, CanBeIgnored) {
    EXPECT_EQ(with({{"AWS_ENDPOINT_URL", "http://h"}, {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True"}}), "");
    EXPECT_EQ(
        with({{"AWS_ENDPOINT_URL", "http://h"}, {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false"}}), "http://h"
    );
}

TEST(EndpointSetting, NamesTheVariableThatIsNoAddress) {
    const auto wrong = with({{"AWS_ENDPOINT_URL_KINESIS", "localhost:4566"}});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, errc::invalid_config);
    EXPECT_EQ(wrong.error().detail.find("AWS_ENDPOINT_URL_KINESIS is no address: "), 0U);
}

}  // namespace
}  // namespace millrace::aws
