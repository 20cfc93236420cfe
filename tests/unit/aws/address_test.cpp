#include "address.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

TEST(AwsAddress, HasARegionANameAndAnEndpoint) {
    EXPECT_EQ(parse_address("x://eu-west-1/leases"), (address{"eu-west-1", "leases", ""}));
    EXPECT_EQ(parse_address("x://eu-west-1"), (address{"eu-west-1", "", ""}));
    EXPECT_EQ(
        parse_address("x://us-gov-east-1/arn:aws:kinesis:r:1:stream/orders?endpoint=https://h:1/a&d"),
        (address{"us-gov-east-1", "arn:aws:kinesis:r:1:stream/orders", "https://h:1/a&d"})
    );
}

TEST(AwsAddress, SaysWhatIsWrong) {
    const auto expect = [](const char* given, const char* why) {
        const auto refused = parse_address(given);
        ASSERT_FALSE(refused) << given;
        EXPECT_EQ(refused.error().code, errc::invalid_argument);
        EXPECT_NE(refused.error().detail.find(why), std::string::npos) << refused.error().detail;
    };
    expect("x:orders", "no region");
    expect("x:///orders", "region");
    expect("x://EU/orders", "\"EU\"");
    expect("x://r/t?timeout=1", "\"timeout\"");
    expect("x://r/t?endpoint=", "endpoint");
    expect("x://r/t?endpoint=h:80", "endpoint");
    expect("x://r/t?endpoint=http://", "endpoint");
    expect("x://r/t?endpoint=http://u:p@h", "endpoint");
    expect("x://r/t?endpoint=http://h:port", "endpoint");
    expect("x://r/t?endpoint=http://h/?a=b", "endpoint");
}

}  // namespace
}  // namespace millrace::aws
