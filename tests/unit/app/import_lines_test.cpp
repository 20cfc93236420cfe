#include "import_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::app {
namespace {

using testing::HasSubstr;

std::string why(std::string_view text) {
    const auto read = parse_import(text);
    return read ? "it was taken" : read.error().detail;
}

TEST(ImportLines, GiveAPositionOrAnEndOrBoth) {
    const std::string digits(56, '4');
    const auto read = parse_import(
        "{\"shard\":\"a\",\"sequence\":\"" + digits +
        "\",\"finished\":false}\n\n"
        "{\"shard\":\"b\",\"finished\":true,\"sequence\":null}\r\n"
        "  {\"sub_sequence\":3,\"sequence\":\"007\",\"shard\":\"c\",\"finished\":true}"
    );
    ASSERT_TRUE(read) << read.error().detail;
    ASSERT_EQ(read->size(), 3U);
    EXPECT_EQ(
        (*read)[0], (imported_shard{1, shard_id{"a"}, position{sequence_number::parse(digits).value(), 0}})
    );
    EXPECT_EQ((*read)[1], (imported_shard{3, shard_id{"b"}, std::nullopt, true}));
    EXPECT_EQ((*read)[2], (imported_shard{4, shard_id{"c"}, position{sequence_number{7}, 3}, true}));
    EXPECT_TRUE(parse_import("")->empty());
}

TEST(ImportLines, AreRefusedWithTheirNumber) {
    const std::string good = "{\"shard\":\"a\",\"sequence\":\"1\"}\n";
    for (const auto& [text, reason] : std::initializer_list<std::pair<std::string, std::string>>{
             {"x", "no JSON object"},
             {"[]", "no JSON object"},
             {R"({"shard":"a","sequence":"5","sequence":"9"})", "the field \"sequence\" is there twice"},
             {R"({"shard":"a","sequence":"5","\u0073hard":"b"})", "the field \"shard\" is there twice"},
             {R"({"sequence":"1"})", "has no \"shard\""},
             {R"({"shard":"","sequence":"1"})", "not the name of a shard"},
             {R"({"shard":null,"sequence":"1"})", "\"shard\" is not in quotes"},
             {R"({"shard":"b"})", "neither a \"sequence\" nor \"finished\": true"},
             {R"({"shard":"b","sequence":12})", "\"sequence\" is not in quotes"},
             {R"({"shard":"b","sequence":"12x"})", "\"12x\" is not a decimal number"},
             {R"({"shard":"b","sequence":"-1"})", "is not a decimal number"},
             {R"({"shard":"b","sequence":"TRIM_HORIZON"})", "is not a decimal number"},
             {R"({"shard":"b","sequence":"1","sub_sequence":-1})", "whole number"},
             {R"({"shard":"b","sequence":"1","sub_sequence":1.5})", "whole number"},
             {R"({"shard":"b","finished":true,"sub_sequence":1})", "without a \"sequence\""},
             {R"({"shard":"b","finished":"true"})", "not true or false"},
             {R"({"shard":"b","sequenze":"1"})", "did you mean \"sequence\"?"}}) {
        EXPECT_THAT(why(good + text), testing::AllOf(HasSubstr("line 2: "), HasSubstr(reason))) << text;
    }
    EXPECT_THAT(
        why("{\"shard\":\"b\",\"sequence\":\"" + std::string(130, '1') + "\"}"),
        HasSubstr("not a decimal number")
    );
}

}  // namespace
}  // namespace millrace::app
