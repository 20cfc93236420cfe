#include "avro_fixture.hpp"

#include <string>

#include <gmock/gmock.h>

namespace millrace::schema {
namespace {

TEST(AvroPlainUnion, TakesTheValueAlone) {
    EXPECT_EQ(encoded_plain(R"(["null", "string"])", "null"), "00");
    EXPECT_EQ(encoded_plain(R"(["null", "string"])", R"("x")"), "020278");
    EXPECT_EQ(
        encoded_plain(R"([{"type": "map", "values": ["null", "int"]}, "null"])", R"({"a": 1, "b": null})"),
        "000402610202026200"
        "00"
    );
}

TEST(AvroPlainUnion, TakesTheMostSpecificTypeOfANumber) {
    constexpr auto numbers =
        R"(["float", "double", {"type": "bytes", "logicalType": "decimal", "precision": 25, "scale": 2}, "long", "int"])";
    EXPECT_EQ(encoded_plain(numbers, "1").substr(0, 2), "08") << "int";
    EXPECT_EQ(encoded_plain(numbers, "2147483648").substr(0, 2), "06") << "long";
    EXPECT_EQ(encoded_plain(numbers, "9223372036854775808").substr(0, 2), "04") << "decimal";
    EXPECT_EQ(encoded_plain(numbers, "1e30").substr(0, 2), "02") << "double";
    EXPECT_EQ(encoded_plain(numbers, "1.25").substr(0, 2), "04") << "decimal";
    EXPECT_EQ(encoded_plain(numbers, "1.125").substr(0, 2), "02") << "double";
    EXPECT_EQ(encoded_plain(R"(["int", "double"])", "1.0").substr(0, 2), "02") << "double, as it is written";
    EXPECT_EQ(encoded_plain(R"(["int", "string"])", "1.0"), "0002");
}

TEST(AvroPlainUnion, TakesTheMostSpecificTypeOfAString) {
    constexpr auto strings = R"(["bytes", "string", {"type": "fixed", "name": "F", "size": 3},
        {"type": "long", "logicalType": "timestamp-millis"}, {"type": "enum", "name": "E", "symbols": ["RED"]}])";
    EXPECT_EQ(encoded_plain(strings, R"("RED")"), "0800");
    EXPECT_EQ(encoded_plain(strings, R"("1970-01-01T00:00:00Z")"), "0600");
    EXPECT_EQ(encoded_plain(strings, R"("abc")"), "04616263");
    EXPECT_EQ(encoded_plain(strings, R"("abcd")"), "020861626364");
    EXPECT_EQ(encoded_plain(R"(["double", "string"])", R"("NaN")"), "02064e614e");
    EXPECT_EQ(encoded_plain(R"(["null", "double"])", R"("NaN")"), "02000000000000f87f");
}

TEST(AvroPlainUnion, TakesTheRecordThatTheFieldsFit) {
    constexpr auto shapes = R"([{"type": "map", "values": "int"},
        {"type": "record", "name": "Circle", "fields": [{"name": "r", "type": "int"}]},
        {"type": "record", "name": "Box", "fields": [{"name": "w", "type": "int"}, {"name": "h", "type": "int", "default": 1}]}])";
    EXPECT_EQ(encoded_plain(shapes, R"({"r": 5})"), "020a");
    EXPECT_EQ(encoded_plain(shapes, R"({"w": 5})"), "040a02");
    EXPECT_EQ(encoded_plain(shapes, R"({"x": 5})"), "000202780a00");
    EXPECT_EQ(encoded_plain(shapes, "{}"), "0000");
}

TEST(AvroPlainUnion, SaysWhatTheOneSuitableBranchMisses) {
    constexpr auto maybe =
        R"(["null", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}])";
    EXPECT_EQ(fault_plain(maybe, R"({"a": "x"})"), "$.a: expected int, found a string of 1 character");
    EXPECT_EQ(fault_plain(maybe, "true"), "$: expected one of null, R, found a boolean");
}

TEST(AvroPlainUnion, SaysWhatTheBranchMissesThatWentFurthest) {
    constexpr auto shapes = R"([{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]},
        {"type": "record", "name": "B", "fields": [{"name": "b", "type": {"type": "array", "items": "int"}}]}])";
    EXPECT_EQ(
        fault_plain(shapes, R"({"b": [1, 2, "x"]})"), "$.b[2]: expected int, found a string of 1 character"
    );
    EXPECT_EQ(fault_plain(shapes, "{}"), "$: expected one of A, B, found an object with 0 members");
}

TEST(AvroPlainUnion, GivesUpWhereNestedUnionsMultiply) {
    // Both records fit at each level until the innermost value fits neither: 2^60 ways.
    constexpr auto schema = R"({"type": "record", "name": "Top", "fields": [{"name": "x", "type": [
        {"type": "record", "name": "A", "fields": [{"name": "x", "type": ["A", {"type": "record", "name": "B", "fields": [
            {"name": "x", "type": ["A", "B", "int"]}]}, "int"]}]}, "B"]}]})";
    std::string value = R"("end")";
    for (int i = 0; i < 60; ++i)
        value = R"({"x": )" + value + "}";
    EXPECT_THAT(fault_plain(schema, value), testing::HasSubstr("the unions around it fit in too many ways"));
}

}  // namespace
}  // namespace millrace::schema
