#include "avro_fixture.hpp"

#include <string>

#include <gmock/gmock.h>

namespace millrace::schema {
namespace {

constexpr auto order = R"({"type": "record", "name": "shop.Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": {"type": "record", "name": "Customer", "fields": [
        {"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"], "default": null}]}},
    {"name": "lines", "type": {"type": "array", "items": "double"}, "default": [0.5]},
    {"name": "labels", "type": {"type": "map", "values": "int"}, "default": {}}]})";

TEST(AvroEncoder, EncodesThePrimitives) {
    EXPECT_EQ(encoded(R"("null")", "null"), "");
    EXPECT_EQ(encoded(R"("boolean")", "true"), "01");
    EXPECT_EQ(encoded(R"("boolean")", "false"), "00");
    EXPECT_EQ(encoded(R"("int")", "-64"), "7f");
    EXPECT_EQ(encoded(R"("int")", "64"), "8001");
    EXPECT_EQ(encoded(R"("long")", "-9223372036854775808"), "ffffffffffffffffff01");
    EXPECT_EQ(encoded(R"("long")", "9223372036854775807"), "feffffffffffffffff01");
    EXPECT_EQ(encoded(R"("float")", "-1.5"), "0000c0bf");
    EXPECT_EQ(encoded(R"("double")", "0.1"), "9a9999999999b93f");
    EXPECT_EQ(encoded(R"("string")", R"("foo")"), "06666f6f");
    EXPECT_EQ(encoded(R"("string")", R"("\u20ac\ud83d\ude00\n\u0000")"), "12e282acf09f98800a00");
    EXPECT_EQ(encoded(R"("bytes")", R"("A\u00ff\u0000ä")"), "0841ff00e4");
    EXPECT_EQ(encoded(R"({"type": "fixed", "name": "F", "size": 2})", R"("\u00ff\u0080")"), "ff80");
    EXPECT_EQ(encoded(R"({"type": "enum", "name": "E", "symbols": ["B", "A"]})", R"("A")"), "02");
}

TEST(AvroEncoder, EncodesArraysAndMapsInOneBlock) {
    EXPECT_EQ(encoded(R"({"type": "array", "items": "long"})", "[3, 27]"), "04063600");
    EXPECT_EQ(encoded(R"({"type": "array", "items": "long"})", "[]"), "00");
    EXPECT_EQ(encoded(R"({"type": "map", "values": "long"})", R"({"b": 1, "a": 2})"), "0402620202610400");
    EXPECT_EQ(encoded(R"({"type": "map", "values": "long"})", "{}"), "00");
}

TEST(AvroEncoder, TakesTheFieldsInAnyOrderAndWritesThemInTheOrderOfTheSchema) {
    EXPECT_EQ(
        encoded(
            order,
            R"({"id": 7, "customer": {"name": "A", "age": {"int": 2}}, "lines": [1], "labels": {"k": 5}})"
        ),
        "0e"
        "0241"
        "0204"
        "02000000000000f03f00"
        "02026b0a00"
    );
    EXPECT_EQ(
        encoded(
            order,
            R"({"labels": {"k": 5}, "lines": [1], "customer": {"age": {"int": 2}, "name": "A"}, "id": 7})"
        ),
        "0e"
        "0241"
        "0204"
        "02000000000000f03f00"
        "02026b0a00"
    );
}

TEST(AvroEncoder, FillsAbsentFieldsWithTheirDefaults) {
    EXPECT_EQ(
        encoded(order, R"({"id": 7, "customer": {"name": "A"}})"),
        "0e"
        "0241"
        "00"
        "02000000000000e03f00"
        "00"
    );
}

TEST(AvroEncoder, FillsDefaultsWithinDefaultsAndByAnyBranchOfAUnion) {
    constexpr auto schema = R"({"type": "record", "name": "R", "fields": [
        {"name": "a", "type": {"type": "record", "name": "S", "fields": [
            {"name": "x", "type": "int", "default": 1}, {"name": "y", "type": "int", "default": 2}]},
         "default": {"y": 3}},
        {"name": "b", "type": ["null", "bytes"], "default": "\u00ff"},
        {"name": "c", "type": ["S", "null"], "default": {}}]})";
    EXPECT_EQ(
        encoded(schema, "{}"),
        "0206"
        "0202ff"
        "000204"
    );
}

TEST(AvroEncoder, TakesEachWholeNumberHoweverItIsWritten) {
    EXPECT_EQ(encoded(R"("int")", "1.0"), "02");
    EXPECT_EQ(encoded(R"("int")", "1e2"), "c801");
    EXPECT_EQ(encoded(R"("int")", "-0"), "00");
    EXPECT_EQ(encoded(R"("long")", "9.223372036854775807E18"), "feffffffffffffffff01");
    EXPECT_EQ(fault(R"("int")", "2147483648"), "$: expected int, found a number out of its range");
    EXPECT_EQ(fault(R"("long")", "9223372036854775808"), "$: expected long, found a number out of its range");
    EXPECT_EQ(fault(R"("long")", "1e400"), "$: expected long, found a number out of its range");
    EXPECT_EQ(fault(R"("int")", "1.5"), "$: expected int, found a number that is not whole");
}

TEST(AvroEncoder, KnowsTheSpecialNumbersByName) {
    EXPECT_EQ(encoded(R"("double")", R"("NaN")"), "000000000000f87f");
    EXPECT_EQ(encoded(R"("float")", R"("Infinity")"), "0000807f");
    EXPECT_EQ(encoded(R"("float")", R"("INF")"), "0000807f");
    EXPECT_EQ(encoded(R"("float")", R"("-INF")"), "000080ff");
    EXPECT_EQ(encoded(R"("double")", R"("-Infinity")"), "000000000000f0ff");
    EXPECT_EQ(
        fault(R"("double")", R"("1.5")"), "$: expected double, found a string of 3 characters that is none"
    );
}

TEST(AvroEncoder, RefusesANumberTooLargeAndTakesOneTooSmallForZero) {
    EXPECT_EQ(fault(R"("float")", "1e39"), "$: expected float, found a number out of its range");
    EXPECT_EQ(fault(R"("double")", "-1e309"), "$: expected double, found a number out of its range");
    EXPECT_EQ(encoded(R"("float")", "1e-60"), "00000000");
    EXPECT_EQ(encoded(R"("double")", "-1e-400"), "0000000000000080");
    EXPECT_EQ(encoded(R"("double")", "-0.0"), "0000000000000080");
}

TEST(AvroEncoder, SaysWhereAValueDoesNotFitWhatWasExpectedAndWhatKindWasFound) {
    EXPECT_EQ(
        fault(order, R"({"id": 7, "customer": {"name": 5}})"),
        "$.customer.name: expected string, found an integer"
    );
    EXPECT_EQ(
        fault(order, R"({"id": 7, "customer": {"name": "A"}, "lines": [1, {"secret": 2}]})"),
        "$.lines[1]: expected double, found an object with 1 member"
    );
    EXPECT_EQ(
        fault(order, R"({"id": 7})"),
        "$: the field \"customer\" of record shop.Order is missing and has no default; expected record "
        "shop.Customer"
    );
    EXPECT_EQ(
        fault(R"({"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]})", R"("BLUE")"),
        "$: expected enum E (RED, GREEN), found another string"
    );
    EXPECT_EQ(
        fault(R"({"type": "fixed", "name": "F", "size": 2})", R"("abc")"),
        "$: expected fixed F of 2 bytes, found a string of 3 characters"
    );
    EXPECT_EQ(
        fault(R"("bytes")", R"("aĀ")"),
        "$: expected bytes as characters up to U+00FF, found a string with one beyond"
    );
}

TEST(AvroEncoder, ShowsTheKeyOfAMapByItsPlaceBecauseItIsData) {
    EXPECT_EQ(
        fault(
            order,
            R"({"id": 7, "customer": {"name": "A"}, "labels": {"ann@example.org": 1, "bob@example.org": "x"}})"
        ),
        "$.labels{2}: expected int, found a string of 1 character"
    );
}

TEST(AvroEncoder, RefusesAnUnknownFieldAndShowsOnlyItsPlaceBecauseItsNameIsData) {
    EXPECT_EQ(
        fault(order, R"({"id": 7, "custommer": {"name": "A"}})"),
        "${2}: a field that record shop.Order does not have"
    );
    EXPECT_EQ(
        encoded(
            order,
            R"({"id": 7, "x": [{}], "customer": {"name": "A", "y": 1}, "lines": []})",
            {.ignore_unknown_fields = true}
        ),
        "0e"
        "0241"
        "00"
        "00"
        "00"
    );
}

TEST(AvroEncoder, RefusesANameThatStandsTwiceInAnObject) {
    EXPECT_EQ(
        fault(order, R"({"id": 7, "customer": {"name": "A", "name": "B"}})"),
        "$.customer.name: a name stands twice in one object"
    );
    EXPECT_EQ(
        fault(R"({"type": "map", "values": "int"})", R"({"a": 1, "b": 2, "\u0061": 3})"),
        "${3}: a name stands twice in one object"
    );
    std::string many = "{";
    for (int i = 0; i < 40; ++i)
        many += fmt::format("\"k{}\": 1, ", i);
    EXPECT_EQ(
        fault(R"({"type": "map", "values": "int"})", many + R"("k7": 2})"),
        "${41}: a name stands twice in one object"
    );
}

TEST(AvroEncoder, RefusesWhatIsNoJsonByTheByteAndNotByTheText) {
    EXPECT_EQ(encoded(R"("int")", "12 secret"), "it is no valid JSON at byte 3: extra data");
    EXPECT_EQ(encoded(R"("string")", "\"\xff\""), "it is no valid JSON at byte 1: syntax error");
    EXPECT_EQ(encoded(R"("string")", R"("\ud800")"), "it is no valid JSON at byte 7: syntax error");
    EXPECT_THAT(encoded(R"("int")", ""), testing::HasSubstr("it is no valid JSON at byte 0"));
    EXPECT_THAT(encoded(R"("int")", "NaN"), testing::HasSubstr("it is no valid JSON"));
}

TEST(AvroEncoder, BoundsTheSizeAndTheDepthOfAValue) {
    const avro_options options{.limits = {.bytes_max = 20, .depth_max = 3}};
    EXPECT_EQ(
        encoded(R"("string")", R"("a string beyond the limit")", options),
        "27 bytes of JSON are more than the limit of 20"
    );
    EXPECT_EQ(
        encoded(R"({"type": "array", "items": "int"})", "[[[[]]]]", options),
        "the JSON is nested more than 3 levels deep"
    );
}

TEST(AvroEncoder, BoundsWhatDefaultsMakeOfASmallValue) {
    constexpr auto schema = R"({"type": "array", "items":
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string", "default": "0123456789"}]}})";
    const avro_options options{.encoded_bytes_max = 100};
    EXPECT_EQ(encoded(schema, "[{}, {}, {}]", options).size(), 2 * (2 + 3 * 11U));
    EXPECT_EQ(
        fault(schema, "[{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}]", options),
        "$[10]: encoded, with the defaults of absent fields, the value exceeds its limit"
    );
}

TEST(AvroEncoder, TakesUnionsAsAvroWritesThemInJson) {
    constexpr auto schema =
        R"(["null", "string", {"type": "record", "name": "a.R", "fields": []}, {"type": "array", "items": "int"}])";
    EXPECT_EQ(encoded(schema, "null"), "00");
    EXPECT_EQ(encoded(schema, R"({"string": "x"})"), "020278");
    EXPECT_EQ(encoded(schema, R"({"a.R": {}})"), "04");
    EXPECT_EQ(encoded(schema, R"({"array": [1]})"), "06020200");
    EXPECT_EQ(
        fault(schema, R"("x")"),
        "$: expected one of null, string, a.R, array as null or an object with the type's name before the "
        "value "
        "(\"unions: plain\" takes the value alone), found a string of 1 character"
    );
    EXPECT_EQ(
        fault(schema, R"({"R": {}})"),
        "${1}: expected one of null, string, a.R, array, found an object that names another type"
    );
    EXPECT_EQ(fault(schema, R"({"string": 1})"), "$.string: expected string, found an integer");
    EXPECT_EQ(fault(R"(["int"])", "null"), "$: expected one of int, found null");
}

TEST(AvroEncoder, NeverShowsTheValue) {
    constexpr std::string_view schemas[] = {
        R"("int")",
        R"("double")",
        R"("bytes")",
        R"("null")",
        R"({"type": "enum", "name": "E", "symbols": ["A"]})",
        R"({"type": "fixed", "name": "F", "size": 2})",
        R"({"type": "map", "values": "int"})",
        R"({"type": "int", "logicalType": "date"})",
        R"({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})",
        R"(["null", "int"])",
        R"({"type": "array", "items": {"type": "map", "values": "int"}})"};
    for (const auto schema : schemas) {
        for (const auto* value :
             {R"("5ECRETĀ")",
              R"({"5ECRET": "5ECRET"})",
              R"([{"5ECRET": "5ECRET"}])",
              R"(["5ECRET"])",
              "52137.123",
              "5ECRET"}) {
            for (const auto unions : {union_style::avro, union_style::plain}) {
                const auto text = encoded(schema, value, {.unions = unions});
                EXPECT_THAT(
                    text,
                    testing::AnyOf(
                        testing::HasSubstr("it is no valid JSON"),
                        testing::HasSubstr("does not fit"),
                        testing::MatchesRegex("[0-9a-f]*")
                    )
                );
                EXPECT_THAT(
                    text,
                    testing::Not(testing::AnyOf(testing::HasSubstr("5ECRET"), testing::HasSubstr("52137")))
                ) << schema;
            }
        }
    }
}

TEST(AvroEncoder, KeepsNothingOfOneValueForTheNext) {
    const auto schema = parse_avro_schema(order);
    ASSERT_TRUE(schema);
    avro_encoder encoder;
    std::string out;
    EXPECT_FALSE(encoder.encode(*schema, R"({"id": 1, "customer": {"name": "\u0041", "name": "B"}})", out));
    EXPECT_FALSE(encoder.encode(*schema, R"({"id": 1, "cus)", out));
    EXPECT_FALSE(encoder.encode(*schema, R"({"id": 1, "customer": {"na\u006de": ")", out));
    EXPECT_TRUE(encoder.encode(*schema, R"({"id": 7, "customer": {"name": "\u0041"}})", out));
    EXPECT_EQ(
        hex(out),
        "0e"
        "0241"
        "00"
        "02000000000000e03f00"
        "00"
    );
}

}  // namespace
}  // namespace millrace::schema
