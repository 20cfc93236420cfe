#include "client/endpoint.hpp"

#include <gmock/gmock.h>

namespace millrace::aws {
namespace {

TEST(Endpoint, IsAwssOwnByServiceAndRegion) {
    EXPECT_EQ(endpoint_of("kinesis", "eu-west-1"), "https://kinesis.eu-west-1.amazonaws.com");
    EXPECT_EQ(endpoint_of("dynamodb", "cn-north-1"), "https://dynamodb.cn-north-1.amazonaws.com.cn");
    EXPECT_EQ(endpoint_of("dynamodb", "us-iso-east-1"), "https://dynamodb.us-iso-east-1.c2s.ic.gov");
    EXPECT_EQ(endpoint_of("dynamodb", "us-isob-east-1"), "https://dynamodb.us-isob-east-1.sc2s.sgov.gov");
}

TEST(Endpoint, GivesTheHostAsTheHeaderHasIt) {
    const auto is = [](std::string_view url, const char* made, const char* host, const char* path) {
        const auto read = parse_endpoint(url);
        ASSERT_TRUE(read) << url;
        EXPECT_EQ(*read, (endpoint{made, host, path}));
    };
    is("http://127.0.0.1:4567", "http://127.0.0.1:4567/", "127.0.0.1:4567", "/");
    is("https://a.example/", "https://a.example/", "a.example", "/");
    is("https://a.example:443/b", "https://a.example:443/b", "a.example", "/b");
    is("http://a.example:80", "http://a.example:80/", "a.example", "/");
    is("http://a.example:443", "http://a.example:443/", "a.example:443", "/");
    is("http://[::1]:80/", "http://[::1]:80/", "[::1]", "/");
    is("http://[::1]:81/", "http://[::1]:81/", "[::1]:81", "/");
    is("http://[::1]", "http://[::1]/", "[::1]", "/");
}

TEST(Endpoint, RefusesWhatCannotBeCalledAndNeverShowsAPassword) {
    for (const std::string_view url :
         {"",
          "127.0.0.1:4567",
          "ftp://a",
          "http://",
          "http:///path",
          "http://a b",
          "http://a:0",
          "http://a:65536",
          "http://a:port",
          "http://a:",
          "http://[::1",
          "http://[]",
          "http://user:s3cret@a",
          "http://a/?q",
          "http://a/#f",
          "http://a/\x7f"}) {
        const auto read = parse_endpoint(url);
        ASSERT_FALSE(read) << url;
        EXPECT_EQ(read.error().code, errc::invalid_config);
        EXPECT_THAT(read.error().detail, testing::Not(testing::HasSubstr("s3cret")));
    }
}

}  // namespace
}  // namespace millrace::aws
