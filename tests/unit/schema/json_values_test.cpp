#include "json/compare.hpp"
#include "json/decimal.hpp"
#include "json/document.hpp"
#include "json_schema/uri.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace::schema {
namespace {

decimal number(std::string_view text) {
    const auto read = decimal::read(text);
    EXPECT_TRUE(read) << text;
    return read.value_or(decimal{});
}

TEST(Decimal, KeepsTheDigitsWithoutTheZerosAroundThem) {
    const auto d = number("-0012.3400e5");
    EXPECT_TRUE(d.negative());
    ASSERT_EQ(d.digits(), 4U);
    EXPECT_EQ(d.digit(0), 1U);
    EXPECT_EQ(d.digit(3), 4U);
    EXPECT_EQ(d.exponent(), 3);
    EXPECT_EQ(number("1200").exponent(), 2);
    EXPECT_EQ(number("0.00012").exponent(), -5);
    EXPECT_TRUE(number("-0.000e7").zero());
    EXPECT_FALSE(number("-0").negative());
}

TEST(Decimal, RefusesWhatIsNoNumber) {
    for (const auto* text :
         {"", "-", ".5", "5.", "1e", "1e+", "0x1", "1 ", " 1", "1e1234567890", "1.2.3", "NaN"}) {
        EXPECT_FALSE(decimal::read(text)) << text;
    }
}

TEST(Decimal, ComparesByValue) {
    EXPECT_EQ(number("1"), number("1.000"));
    EXPECT_EQ(number("100"), number("1e2"));
    EXPECT_EQ(number("0"), number("-0.0"));
    EXPECT_LT(number("-2"), number("-1"));
    EXPECT_LT(number("-1"), number("0"));
    EXPECT_LT(number("0.09"), number("0.1"));
    EXPECT_LT(number("0.1"), number("0.10000000000000000000000001"));
    EXPECT_GT(number("1e100"), number("9e99"));
    EXPECT_GT(number("-1e-9"), number("-1e9"));
}

TEST(Decimal, IsA64BitNumberWhereItFits) {
    EXPECT_EQ(number("9223372036854775807").to_int64(), 9223372036854775807);
    EXPECT_EQ(number("-9223372036854775808").to_int64(), std::numeric_limits<std::int64_t>::min());
    EXPECT_FALSE(number("9223372036854775808").to_int64());
    EXPECT_FALSE(number("-9223372036854775809").to_int64());
    EXPECT_FALSE(number("0.5").to_int64());
    EXPECT_FALSE(number("1e30").to_int64());
    EXPECT_EQ(number("12e2").to_int64(), 1200);
}

TEST(JsonDocument, KeepsNumbersAsTheyAreWritten) {
    json_document document;
    ASSERT_TRUE(document.read(R"([1.10, -0, 123456789012345678901234567890, 1E+2])"));
    EXPECT_EQ(document.text(1), "1.10");
    EXPECT_FALSE(document.at(1).integral);
    EXPECT_EQ(document.text(2), "-0");
    EXPECT_EQ(document.text(3), "123456789012345678901234567890");
    EXPECT_TRUE(document.at(3).integral);
    EXPECT_EQ(document.text(4), "1E+2");
    EXPECT_FALSE(document.at(4).integral);
}

TEST(JsonDocument, ReadsEscapesAlsoInLongStrings) {
    const std::string longer(10'000, 'x');
    json_document document;
    const auto json =
        R"({"a\u0041": "\"\\\/\b\f\n\r\t\u20ac\ud83d\ude00)" + longer + R"(", "b": ")" + longer + R"("})";
    ASSERT_TRUE(document.read(json));
    EXPECT_EQ(document.text(1), "aA");
    EXPECT_EQ(document.text(2), "\"\\/\b\f\n\r\t€😀" + longer);
    EXPECT_EQ(document.text(4), longer);
    EXPECT_EQ(document.path_of(2), "$.aA");
}

TEST(JsonDocument, NamesThePlaceOfEachValue) {
    json_document document;
    ASSERT_TRUE(document.read(R"({"a": [1, {"b": null}], "c": []})"));
    EXPECT_EQ(document.path_of(0), "$");
    EXPECT_EQ(document.path_of(3), "$.a[0]");
    EXPECT_EQ(document.path_of(6), "$.a[1].b");
    EXPECT_EQ(document.path_of(8), "$.c");
    EXPECT_EQ(document.path_of(6, [](std::string_view key) { return key == "a"; }), "$.a[1]{1}");
}

bool same(std::string_view a, std::string_view b) {
    json_document x;
    json_document y;
    EXPECT_TRUE(x.read(a) && y.read(b));
    const bool equal = same_value(x, 0, y, 0);
    EXPECT_EQ(hash_value(x, 0) == hash_value(y, 0), equal);
    return equal;
}

TEST(JsonValues, AreEqualByTheirContents) {
    EXPECT_TRUE(same(R"({"a": 1, "b": [true, null]})", R"({"b": [true, null], "a": 1.0})"));
    EXPECT_TRUE(same(R"("\u0041")", R"("A")"));
    EXPECT_FALSE(same("[1, 2]", "[2, 1]"));
    EXPECT_FALSE(same(R"({"a": 1})", R"({"a": 1, "b": 1})"));
    EXPECT_FALSE(same(R"({"a": 1})", R"({"b": 1})"));
    EXPECT_FALSE(same("1", R"("1")"));
    EXPECT_FALSE(same("false", "0"));
    EXPECT_FALSE(same("false", "true"));
    EXPECT_FALSE(same("[]", "{}"));
}

TEST(Uri, IsResolvedWithinItsDocument) {
    EXPECT_EQ(resolve_uri("http://h/a/b.json", "c.json"), "http://h/a/c.json");
    EXPECT_EQ(resolve_uri("http://h/a/b.json", "../c.json#/x"), "http://h/c.json#/x");
    EXPECT_EQ(resolve_uri("http://h/a/", "/c"), "http://h/c");
    EXPECT_EQ(resolve_uri("http://h", "c"), "http://h/c");
    EXPECT_EQ(resolve_uri("http://h/a#old", "#new"), "http://h/a#new");
    EXPECT_EQ(resolve_uri("http://h/a", "urn:x:y"), "urn:x:y");
    EXPECT_EQ(resolve_uri("", "a.json"), "a.json");
    EXPECT_EQ(resolve_uri("folder/a.json", "b.json"), "folder/b.json");
    EXPECT_EQ(percent_decoded("a%25b%zz%4"), "a%b%zz%4");
    EXPECT_EQ(pointer_step("a~1b~0c~2~"), "a/b~c~2~");
}

}  // namespace
}  // namespace millrace::schema
