#include "kinesis_url.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(KinesisUrl, NamesAStreamByNameOrArnOrNone) {
    const auto by_name = parse_kinesis_url("kinesis://eu-west-1/orders").value();
    EXPECT_EQ(by_name, (kinesis_address{.region = "eu-west-1", .stream = "orders"}));
    EXPECT_EQ(by_name.wire_name().name, "orders");

    const auto by_arn =
        parse_kinesis_url("kinesis://eu-west-1/arn:aws:kinesis:eu-west-1:123456789012:stream/orders").value();
    EXPECT_EQ(by_arn.name(), "orders");
    EXPECT_EQ(by_arn.wire_name().arn, "arn:aws:kinesis:eu-west-1:123456789012:stream/orders");
    EXPECT_EQ(by_arn.wire_name().name, "");

    EXPECT_EQ(parse_kinesis_url("kinesis://eu-west-1").value(), (kinesis_address{.region = "eu-west-1"}));
}

TEST(KinesisUrl, TakesTheEndpointAsItStandsToTheEnd) {
    EXPECT_EQ(parse_kinesis_url("kinesis://r/s?endpoint=http://h:1/p&c")->endpoint, "http://h:1/p&c");
    EXPECT_EQ(parse_kinesis_url("kinesis://r?endpoint=https://[::1]:4567")->endpoint, "https://[::1]:4567");
}

TEST(KinesisUrl, TakesWhatASinkDoesWithLosses) {
    const auto address =
        parse_kinesis_url(
            "kinesis://r?headers=refuse&tombstones=empty&record_bytes_max=2048&endpoint=http://h"
        )
            .value();
    EXPECT_EQ(
        address.losses,
        (kinesis_losses{.drop_headers = false, .empty_tombstones = true, .record_bytes_max = 2'048})
    );
    EXPECT_EQ(address.endpoint, "http://h");
}

TEST(KinesisUrl, SaysWhatIsWrong) {
    const auto why = [](const std::string& url) {
        const auto read = parse_kinesis_url(url);
        EXPECT_FALSE(read) << url;
        return read ? "" : read.error().detail;
    };
    EXPECT_THAT(why("kinesis:orders"), HasSubstr("kinesis://"));
    EXPECT_THAT(why("kinesis://"), HasSubstr("region such as eu-west-1"));
    EXPECT_THAT(why("kinesis://EU/orders"), HasSubstr("region such as eu-west-1"));
    EXPECT_THAT(why("kinesis://r/"), HasSubstr("no stream"));
    EXPECT_THAT(why("kinesis://r/a/b"), HasSubstr("cannot exist"));
    EXPECT_THAT(why("kinesis://r/" + std::string(129, 'a')), HasSubstr("cannot exist"));
    EXPECT_THAT(why("kinesis://r/arn:aws:dynamodb:r:123456789012:table/x"), HasSubstr("ARN"));
    EXPECT_THAT(why("kinesis://r/arn:aws:kinesis:r:1234:stream/x"), HasSubstr("12 digits"));
    EXPECT_THAT(why("kinesis://r/arn:aws:kinesis:other:123456789012:stream/x"), HasSubstr("another region"));
    EXPECT_THAT(why("kinesis://r/s?x=1"), HasSubstr("headers=drop|refuse"));
    EXPECT_THAT(why("kinesis://r/s?headers=keep"), HasSubstr("headers=drop|refuse"));
    EXPECT_THAT(why("kinesis://r/s?record_bytes_max=1"), HasSubstr("1024 to 10485760"));
    EXPECT_THAT(why("kinesis://r/s?endpoint="), HasSubstr("endpoint"));
    EXPECT_THAT(why("kinesis://r/s?endpoint=ftp://h"), HasSubstr("endpoint"));
    EXPECT_THAT(why("kinesis://r/s?endpoint=http://"), HasSubstr("names no host"));
    EXPECT_THAT(why("kinesis://r/s?endpoint=http://h:port"), HasSubstr("no port"));
    EXPECT_THAT(why("kinesis://r/s?endpoint=http://h/?a=b"), HasSubstr("a query"));
    const auto secret = why("kinesis://r/s?endpoint=http://user:geheim@h");
    EXPECT_THAT(secret, HasSubstr("must not hold a user"));
    EXPECT_THAT(secret, Not(HasSubstr("geheim")));
}

}  // namespace
}  // namespace millrace
