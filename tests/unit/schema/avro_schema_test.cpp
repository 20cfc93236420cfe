#include "avro_fixture.hpp"

#include <array>
#include <string>

#include <gmock/gmock.h>

namespace millrace::schema {
namespace {

std::string refusal(std::string_view schema) {
    const auto parsed = parse_avro_schema(schema);
    if (parsed) return "none";
    EXPECT_EQ(parsed.error().code, errc::invalid_argument);
    constexpr std::string_view begin = "the Avro schema is wrong at ";
    EXPECT_TRUE(parsed.error().detail.starts_with(begin)) << parsed.error().detail;
    return parsed.error().detail.substr(begin.size());
}

std::string name_of_schema(std::string_view schema) {
    const auto parsed = parse_avro_schema(schema);
    return parsed ? std::string(parsed->name()) : parsed.error().detail;
}

TEST(AvroSchema, NamesATypeByItsNamespaceOrByTheDotsInItsName) {
    EXPECT_EQ(name_of_schema(R"({"type": "record", "name": "R", "fields": []})"), "R");
    EXPECT_EQ(
        name_of_schema(R"({"type": "record", "name": "R", "namespace": "a.b", "fields": []})"), "a.b.R"
    );
    EXPECT_EQ(name_of_schema(R"({"type": "fixed", "name": "x.y.F", "namespace": "a", "size": 1})"), "x.y.F");
    EXPECT_EQ(name_of_schema(R"("string")"), "");
}

TEST(AvroSchema, FindsAnUnqualifiedNameInTheNamespaceAroundIt) {
    constexpr auto schema = R"({"type": "record", "name": "a.b.R", "fields": [
        {"name": "x", "type": {"type": "enum", "name": "E", "symbols": ["P", "Q"]}},
        {"name": "y", "type": "E"},
        {"name": "z", "type": "a.b.E"}]})";
    EXPECT_EQ(encoded(schema, R"({"x": "Q", "y": "P", "z": "Q"})"), "020002");
}

TEST(AvroSchema, TakesAnEmptyNamespaceForNoneAndFindsItsTypesFromWithinAnother) {
    constexpr auto schema = R"({"type": "record", "name": "a.R", "fields": [
        {"name": "x", "type": {"type": "fixed", "name": "F", "namespace": "", "size": 1}},
        {"name": "y", "type": ["null", "F"]}]})";
    EXPECT_EQ(encoded(schema, R"({"x": "A", "y": {"F": "B"}})"), "410242");
}

TEST(AvroSchema, LetsARecordHoldItself) {
    constexpr auto list = R"({"type": "record", "name": "List", "fields": [
        {"name": "value", "type": "long"}, {"name": "next", "type": ["null", "List"]}]})";
    EXPECT_EQ(encoded(list, R"({"value": 1, "next": {"List": {"value": 2, "next": null}}})"), "02020400");
}

TEST(AvroSchema, UsesTheTypesOfReferencesInTheirOrder) {
    constexpr std::array references{
        avro_reference{"colours", R"({"type": "enum", "name": "c.Colour", "symbols": ["RED", "GREEN"]})"},
        avro_reference{
            "lines",
            R"({"type": "record", "name": "l.Line", "fields": [{"name": "colour", "type": "c.Colour"}]})"}};
    constexpr auto order = R"({"type": "record", "name": "o.Order", "fields": [
        {"name": "lines", "type": {"type": "array", "items": "l.Line"}}, {"name": "best", "type": "c.Colour"}]})";
    const auto schema = parse_avro_schema(order, references);
    ASSERT_TRUE(schema) << schema.error().detail;
    std::string out;
    ASSERT_TRUE(avro_encoder().encode(*schema, R"({"lines": [{"colour": "GREEN"}], "best": "RED"})", out));
    EXPECT_EQ(hex(out), "02020000");
    EXPECT_EQ(schema->name(), "o.Order");

    const auto alone = parse_avro_schema(order);
    ASSERT_FALSE(alone);
    EXPECT_EQ(
        alone.error().detail,
        "the Avro schema is wrong at $.fields[0].type.items: \"l.Line\" is no primitive type and no type "
        "that was "
        "defined before or in a reference"
    );
}

TEST(AvroSchema, NamesTheReferenceThatIsWrong) {
    constexpr std::array references{avro_reference{"broken", R"({"type": "enum", "name": "E"})"}};
    const auto parsed = parse_avro_schema(R"("E")", references);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(
        parsed.error().detail,
        "the Avro schema of the reference \"broken\" is wrong at $: \"symbols\" is missing"
    );
}

TEST(AvroSchema, SaysWhereAndWhyASchemaIsNone) {
    EXPECT_EQ(
        refusal(R"("strin")"),
        "$: \"strin\" is no primitive type and no type that was defined before or in a reference"
    );
    EXPECT_EQ(refusal("7"), "$: expected a type (a string, an object or an array), found an integer");
    EXPECT_EQ(refusal(R"({"name": "R"})"), "$: \"type\" is missing");
    EXPECT_EQ(refusal(R"({"type": "record", "fields": []})"), "$: \"name\" is missing");
    EXPECT_EQ(
        refusal(R"({"type": "record", "name": "R", "fields": {}})"),
        "$.fields: expected an array, found an object with 0 members"
    );
    EXPECT_EQ(
        refusal(R"({"type": "record", "name": "R", "fields": [{"name": "a"}]})"),
        "$.fields[0]: \"type\" is missing"
    );
    EXPECT_EQ(
        refusal(R"({"type": "record", "name": "1R", "fields": []})"),
        "$: \"1R\" is no name: letters, digits and _, joined by dots"
    );
    EXPECT_EQ(
        refusal(R"({"type": "record", "name": "a.int", "fields": []})"),
        "$: \"a.int\" is the name of a primitive type"
    );
    EXPECT_EQ(
        refusal(
            R"({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]})"
        ),
        "$.fields: the field \"a\" is defined twice"
    );
    EXPECT_EQ(
        refusal(R"([{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}])"),
        "$[1]: \"F\" is defined twice"
    );
    EXPECT_EQ(
        refusal(R"({"type": "enum", "name": "E", "symbols": ["A", "B", "A"]})"),
        "$.symbols: the symbol \"A\" stands twice"
    );
    EXPECT_EQ(
        refusal(R"({"type": "enum", "name": "E", "symbols": ["A-B"]})"),
        "$.symbols[0]: a symbol is a string of letters, digits and _"
    );
    EXPECT_EQ(
        refusal(R"({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"})"),
        "$.default: the default of an enum is one of its symbols"
    );
    EXPECT_EQ(
        refusal(R"({"type": "fixed", "name": "F", "size": -1})"),
        "$.size: the size of a fixed is a whole number below 2^32"
    );
    EXPECT_EQ(refusal(R"({"type": "array"})"), "$: \"items\" is missing");
    EXPECT_EQ(refusal(R"({"type": "map"})"), "$: \"values\" is missing");
    EXPECT_EQ(refusal(R"(["int", ["null"]])"), "$: a union holds another union");
    EXPECT_EQ(
        refusal(R"(["int", {"type": "int", "logicalType": "date"}])"), "$: a union holds \"int\" twice"
    );
    EXPECT_THAT(refusal("{"), testing::HasSubstr("its text: it is no valid JSON at byte 1"));
}

TEST(AvroSchema, ChecksADefaultAgainstItsType) {
    EXPECT_EQ(
        refusal(R"({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": "x"}]})"
        ),
        "the default does not fit its type: $.fields[0].default: expected int, found a string of 1 character"
    );
}

TEST(AvroSchema, RefusesADefaultThatNeedsItself) {
    EXPECT_EQ(
        refusal(R"({"type": "record", "name": "R", "fields": [
            {"name": "a", "type": {"type": "record", "name": "S", "fields": [
                {"name": "b", "type": ["R", "null"], "default": {}}]}, "default": {}}]})"),
        "$.fields[0].type.fields[0].default: the default needs itself"
    );
}

TEST(AvroSchema, BoundsDefaultsThatMultiply) {
    // Each record's default holds the default of the one before it twice.
    std::string schema =
        R"({"type": "record", "name": "R0", "fields": [{"name": "a", "type": "string", "default": "0123456789"}]})";
    for (int i = 1; i < 30; ++i) {
        schema = fmt::format(
            R"({{"type": "record", "name": "R{}", "fields": [{{"name": "a", "type": {}, "default": {{}}}}, {{"name": "b", "type": "R{}", "default": {{}}}}]}})",
            i,
            schema,
            i - 1
        );
    }
    EXPECT_THAT(refusal(schema), testing::HasSubstr("all defaults together take more than 1048576 bytes"));
}

TEST(AvroSchema, BoundsADefaultThatRepeatsAnother) {
    const std::string text(10'000, 'x');
    std::string many = "{}";
    for (int i = 0; i < 10'000; ++i)
        many += ",{}";
    EXPECT_THAT(
        refusal(
            R"({"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items":
            {"type": "record", "name": "S", "fields": [{"name": "b", "type": "string", "default": ")" +
            text + R"("}]}}, "default": [)" + many + "]}]}"
        ),
        testing::HasSubstr("encoded, with the defaults of absent fields, the value exceeds its limit")
    );
}

TEST(AvroSchema, BoundsItsDepthItsSizeAndTheNumberOfItsTypes) {
    std::string deep = R"("int")";
    for (int i = 0; i < 200; ++i)
        deep = R"({"type": "array", "items": )" + deep + "}";
    EXPECT_THAT(refusal(deep), testing::HasSubstr("nested more than 128 levels deep"));
    EXPECT_THAT(
        refusal(std::string(2 * 1024 * 1024, ' ')), testing::HasSubstr("more than the limit of 1048576")
    );
    std::string many = "[";
    for (int i = 0; i < 11'000; ++i)
        many += fmt::format(R"({}{{"type": "fixed", "name": "F{}", "size": 1}})", i == 0 ? "" : ",", i);
    EXPECT_THAT(refusal(many + "]"), testing::HasSubstr("more than 10000 types"));
}

TEST(AvroSchema, IgnoresALogicalTypeThatDoesNotFitItsType) {
    // Without the logical type, text is refused or taken as it is.
    EXPECT_EQ(encoded(R"({"type": "int", "logicalType": "timestamp-millis"})", "5"), "0a");
    EXPECT_EQ(encoded(R"({"type": "string", "logicalType": "colour"})", R"("x")"), "0278");
    EXPECT_EQ(encoded(R"({"type": "bytes", "logicalType": "decimal"})", R"("1")"), "0231");
    EXPECT_EQ(
        encoded(R"({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3})", R"("1")"),
        "0231"
    );
    EXPECT_EQ(
        encoded(
            R"({"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 3})", R"("1")"
        ),
        "31"
    );
    EXPECT_EQ(
        encoded(
            R"({"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 2})", R"("1")"
        ),
        "01"
    );
    EXPECT_EQ(
        encoded(R"({"type": "fixed", "name": "F", "size": 2, "logicalType": "duration"})", R"("12")"), "3132"
    );
}

TEST(AvroSchema, KnowsTheMemoryItHolds) {
    const auto small = parse_avro_schema(R"("int")");
    const auto large = parse_avro_schema(R"({"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "a default of some length"}]})"
    );
    ASSERT_TRUE(small && large);
    EXPECT_LT(small->bytes(), large->bytes());
    EXPECT_LT(large->bytes(), 1024U);
}

}  // namespace
}  // namespace millrace::schema
