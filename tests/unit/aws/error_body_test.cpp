#include "client/error_body.hpp"

#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using namespace std::string_literals;

constexpr auto json = "application/x-amz-json-1.1";
constexpr auto cbor = "application/x-amz-cbor-1.1";

TEST(ErrorBody, ReadsTypeAndMessageOfJsonInEachSpelling) {
    const service_error expected{"FooException", "because"};
    EXPECT_EQ(read_error(json, "", R"({"__type":"FooException","message":"because"})"), expected);
    EXPECT_EQ(
        read_error(json, "", R"({"__type":"com.amazonaws.x#FooException","Message":"because"})"), expected
    );
    EXPECT_EQ(read_error("", "", R"( {"message":"because","code":"FooException"})"), expected);
    EXPECT_EQ(read_error(json, "", R"({"code":"x","__type":"FooException","message":"because"})"), expected);
}

TEST(ErrorBody, PrefersTheHeaderToTheBody) {
    EXPECT_EQ(
        read_error(json, "FooException:http://internal/", R"({"__type":"Bar","message":"m"})"),
        (service_error{"FooException", "m"})
    );
    EXPECT_EQ(read_error(json, "FooException", ""), (service_error{"FooException", ""}));
}

TEST(ErrorBody, ReadsCborMapsOfGivenAndOfOpenLength) {
    const service_error expected{"FooException", "because"};
    const auto type =
        "\x66__type\x6c"
        "FooException"s;
    const auto message =
        "\x67message\x67"
        "because"s;
    EXPECT_EQ(read_error(cbor, "", "\xa2" + type + message), expected);
    EXPECT_EQ(read_error(cbor, "", "\xbf" + type + message + "\xff"), expected);
    EXPECT_EQ(read_error(cbor, "", "\xd9\xd9\xf7\xa2" + message + type), expected);  // behind a tag
}

TEST(ErrorBody, SkipsWhateverElseIsInACborMap) {
    const auto type =
        "\x66__type\x6c"
        "FooException"s;
    const auto nested =
        "\x64Item\xa1\x66__type\x63"
        "Bar"s;                                          // a map with a type of its own
    const auto list = "\x61l\x83\x01\x9f\x02\xff\xf6"s;  // [1, [_ 2], null]
    const auto chunks =
        "\x61"
        "c\x7f\x66__type\x63"
        "Bar\xff"s;                             // a text in two pieces
    const auto number = "\x66__type\x18\x2a"s;  // no text
    const auto bytes =
        "\x66__type\x43"
        "Bar"s;
    for (const auto& other : {nested, list, chunks, number, bytes}) {
        EXPECT_EQ(read_error(cbor, "", "\xa2" + other + type), (service_error{"FooException", ""}));
        EXPECT_EQ(read_error(cbor, "", "\xa2" + type + other), (service_error{"FooException", ""}));
    }
}

TEST(ErrorBody, FindsNothingInMalformedCbor) {
    const service_error nothing;
    EXPECT_EQ(read_error(cbor, "", ""), nothing);
    EXPECT_EQ(read_error(cbor, "", "\x66__type"), nothing);  // no map
    EXPECT_EQ(
        read_error(
            cbor,
            "",
            "\xa1\x66__type\x6c"
            "Foo"
        ),
        nothing
    );  // ends early
    EXPECT_EQ(read_error(cbor, "", "\xff"), nothing);
    EXPECT_EQ(read_error(cbor, "", "\xa1\xff"), nothing);
    EXPECT_EQ(read_error(cbor, "", "\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x01"), nothing);
    EXPECT_EQ(read_error(cbor, "", std::string(100'000, '\x81')), nothing);  // deep
    EXPECT_EQ(
        read_error(
            cbor,
            "",
            "\xa1\x61"
            "a" +
                std::string(100'000, '\x81')
        ),
        nothing
    );
}

TEST(ErrorBody, FindsNothingInMalformedJson) {
    const service_error nothing;
    EXPECT_EQ(read_error(json, "", ""), nothing);
    EXPECT_EQ(read_error(json, "", R"({"__type":"Foo)"), nothing);
    EXPECT_EQ(read_error(json, "", R"(["__type"])"), nothing);
    EXPECT_EQ(read_error(json, "", R"({"__type":7,"message":{}})"), nothing);
    EXPECT_EQ(read_error(json, "", std::string(100'000, '[')), nothing);
    EXPECT_EQ(read_error(json, "", R"({"__type":"not a name\u0000"})"), nothing);
}

TEST(ErrorBody, ReadsXmlAndTakesAWebPageForNothing) {
    EXPECT_EQ(
        read_error(
            "text/xml",
            "",
            "<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>no such token</Message></Error>"
        ),
        (service_error{"InvalidClientTokenId", "no such token"})
    );
    EXPECT_EQ(read_error("text/html", "", "<html><body>502 Bad Gateway</body></html>"), service_error{});
    EXPECT_EQ(read_error("text/html", "", "<Code>unfinished"), service_error{});
}

}  // namespace
}  // namespace millrace::aws
