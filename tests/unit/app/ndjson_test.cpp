#include "ndjson.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

namespace millrace::app {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::string why(std::string_view line, std::string_view topic = {}) {
    const auto parsed = parse_event(line, topic);
    return parsed ? "" : parsed.error().detail;
}

TEST(Ndjson, AnEventHasTopicKeyValueAndHeaders) {
    const auto parsed = parse_event(
        R"({"topic":"orders","key":"42","value":"v","headers":[["a","1"],["b",null],["c",{"base64":"AP8="}]]})"
    );
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(parsed->topic, "orders");
    EXPECT_EQ(parsed->key, "42");
    EXPECT_EQ(parsed->value, "v");
    const std::vector<header> headers{{"a", "1"}, {"b", std::nullopt}, {"c", std::string("\0\xff", 2)}};
    EXPECT_EQ(parsed->headers, headers);
}

TEST(Ndjson, BytesComeAsBase64) {
    const auto parsed = parse_event(R"({"topic":"t","key_base64":"","value_base64":"AAE="})");
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(parsed->key, "");
    EXPECT_EQ(parsed->value, std::string("\0\x01", 2));
}

TEST(Ndjson, NullIsATombstoneAndAMissingKeyIsNone) {
    const auto parsed = parse_event(R"({"topic":"t","value":null})");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->value, std::nullopt);
    EXPECT_EQ(parsed->key, std::nullopt);
}

TEST(Ndjson, AValueThatIsNoStringKeepsItsSourceText) {
    const auto value = [](std::string_view line) { return parse_event(line).value().value; };
    EXPECT_EQ(
        value(R"({"topic":"t","value": {"a":1.10, "b":["}\"",{}]} ,"key":"k"})"),
        R"({"a":1.10, "b":["}\"",{}]})"
    );
    EXPECT_EQ(value(R"({"value":12345678901234567890123,"topic":"t"})"), "12345678901234567890123");
    EXPECT_EQ(value(R"({"topic":"t","value":true})"), "true");
    EXPECT_EQ(value(R"({"topic":"value","key":"\"value\":1","value":[1, 2]})"), "[1, 2]");
}

TEST(Ndjson, WhatIsNoTextIsSaidToBeNone) {
    EXPECT_EQ(
        why("{\"topic\":\"t\",\"value\":\"a\xff\"}"),
        "not valid JSON at column 24: a byte that is not UTF-8; give bytes as key_base64 or value_base64"
    );
    for (const char* half :
         {R"("\ud800")", R"("\ud800x")", R"("\ud800\n")", R"("\ud800\u0041")", R"("\udc00")"}) {
        EXPECT_THAT(
            why(std::string(R"({"topic":"t","value":)") + half + "}"),
            HasSubstr("half of a surrogate pair, which is no character")
        ) << half;
    }
}

TEST(Ndjson, WhatIsNestedTooDeepIsToldTheLimitAndTheWayOut) {
    const auto nested = [](std::size_t depth) {
        return R"({"topic":"t","value":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    EXPECT_TRUE(parse_event(nested(31)));
    EXPECT_THAT(
        why(nested(40)),
        HasSubstr("too deep: lists and objects nest at most 32; give the value as a string or as value_base64"
        )
    );
}

TEST(Ndjson, AFieldIsFoundAsItStands) {
    const std::string_view line = R"({"topic":"t","value":{"headers":1.10}, "headers" : [["a","b"]] })";
    EXPECT_EQ(field_text(line, "headers"), R"([["a","b"]])");
    EXPECT_EQ(field_text(line, "value"), R"({"headers":1.10})");
    EXPECT_EQ(field_text(line, "key"), "");
}

TEST(Ndjson, FaultsAreNamed) {
    EXPECT_EQ(why(R"({"topic":"t","vale":"x"})"), "unknown field \"vale\"; did you mean \"value\"?");
    EXPECT_EQ(
        why(R"({"topic":"t","key":"a","key_base64":"YQ==","value":""})"),
        "\"key\" and \"key_base64\" exclude each other"
    );
    EXPECT_EQ(
        why(R"({"topic":"t","value":"","value_base64":""})"),
        "\"value\" and \"value_base64\" exclude each other"
    );
    EXPECT_EQ(why(R"({"topic":"t","topic":"u","value":""})"), R"(the field "topic" is there twice)");
    EXPECT_EQ(why(R"({"topic":"t","val\u0075e":"a","value":"b"})"), R"(the field "value" is there twice)");
    EXPECT_EQ(why(R"({"value":""})"), "\"topic\" is missing");
    EXPECT_EQ(why(R"({"topic":"","value":""})"), "\"topic\" is empty");
    EXPECT_EQ(why(R"({"topic":"t"})"), "\"value\" is missing; write null for a tombstone");
    EXPECT_EQ(why(R"({"topic":"t","value":"","key":1})"), "\"key\" must be a string or null, not a number");
    EXPECT_EQ(why(R"({"topic":"t","value_base64":"A"})"), "\"value_base64\" is not valid base64");
    EXPECT_EQ(
        why(R"({"topic":"t","value":"","headers":[["a"]]})"), "header 1 must be a list of a name and a value"
    );
    EXPECT_EQ(why(R"(["t"])"), "expected an object, found a list");
    EXPECT_EQ(
        why(R"({"topic":"t","value":""} x)"), "not valid JSON at column 26: more text follows the object"
    );
    EXPECT_EQ(why(R"({"topic":"t")"), "not valid JSON: the line ends too early");
    EXPECT_EQ(
        why(R"({"topic":"t","value":"","partition":-1})"),
        "\"partition\" must be a whole number from 0 to 2147483647"
    );
}

TEST(Ndjson, WhatIsNotUnicodeIsRefused) {
    for (const std::string& line : {
             std::string(R"({"topic":"t","value":")") + "\xff" + R"("})",
             std::string(R"({"topic":"t","value":")") + "\xed\xa0\x80" + R"("})",
             std::string(R"({"topic":"t","value":"\ud800"})"),
             std::string(R"({"topic":"t","value":"\udc00x"})"),
             std::string("{\"topic\":\"t\",\"value\":\"") + '\0' + "\"}",
             std::string(100'000, '['),
         }) {
        EXPECT_EQ(why(line).substr(0, 14), "not valid JSON") << line.substr(0, 40);
    }
}

TEST(Ndjson, TheTopicOfAStreamMayBeLeftOutButNotBeAnother) {
    EXPECT_EQ(parse_event(R"({"value":"x"})", "orders").value().topic, "orders");
    EXPECT_EQ(
        why(R"({"topic":"bills","value":"x"})", "orders"), "the topic \"bills\" is not the stream \"orders\""
    );
}

RC_GTEST_PROP(Ndjson, NoTextBreaksTheParser, (const std::string& text)) {
    (void)parse_event(text);
}

struct LineReader : testing::Test {
    LineReader() { EXPECT_EQ(::pipe(pipe), 0); }
    ~LineReader() override {
        ::close(pipe[0]);
        if (pipe[1] >= 0) ::close(pipe[1]);
    }
    void feed(std::string_view text) const {
        EXPECT_EQ(::write(pipe[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    void finish() {
        ::close(pipe[1]);
        pipe[1] = -1;
    }
    std::vector<std::string> all(std::size_t limit = 1000) {
        line_reader reader(pipe[0], limit);
        std::vector<std::string> out;
        for (std::string_view line;;) {
            const auto got = reader.next(line, 0ms);
            if (got == line_reader::outcome::line)
                out.emplace_back(line);
            else if (got == line_reader::outcome::end)
                return out;
            else
                return {"stopped at line " + std::to_string(reader.number())};
        }
    }
    int pipe[2]{-1, -1};
};

using Lines = std::vector<std::string>;

TEST_F(LineReader, TheLastLineNeedsNoEnd) {
    feed("a\n\nb\r\nc");
    finish();
    EXPECT_EQ(all(), (Lines{"a", "", "b\r", "c"}));
}

TEST_F(LineReader, AByteOrderMarkAtTheBeginningIsSkipped) {
    feed(
        "\xEF\xBB\xBF"
        "a\n\xEF\xBB\xBF"
        "b\n"
    );
    finish();
    EXPECT_EQ(
        all(),
        (Lines{
            "a",
            "\xEF\xBB\xBF"
            "b"})
    );
}

TEST_F(LineReader, NothingIsNoLine) {
    finish();
    EXPECT_EQ(all(), Lines{});
}

TEST_F(LineReader, ALineAboveTheLimitIsNamed) {
    feed("short\n" + std::string(20, 'x') + "\n");
    finish();
    EXPECT_EQ(all(10), Lines{"stopped at line 2"});
}

TEST_F(LineReader, AQuietWriterIsReportedAsIdle) {
    line_reader reader(pipe[0], 100);
    std::string_view line;
    EXPECT_EQ(reader.next(line, 0ms), line_reader::outcome::idle);
    feed("half");
    EXPECT_EQ(reader.next(line, 0ms), line_reader::outcome::idle);
    feed(" line\n");
    EXPECT_EQ(reader.next(line, 0ms), line_reader::outcome::line);
    EXPECT_EQ(line, "half line");
    EXPECT_EQ(reader.number(), 1U);
}

}  // namespace
}  // namespace millrace::app
