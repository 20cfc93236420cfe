#include "json_schema/checker.hpp"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::schema {
namespace {

/// Empty when the value fits; else what was wrong, without the words that every message begins with.
std::string fault(
    std::string_view schema_text, std::string_view value, std::span<const json_reference> references = {}
) {
    const auto schema = parse_json_schema(schema_text, references);
    if (!schema) return schema.error().detail;
    json_checker checker;
    const auto checked = checker.check(*schema, value);
    if (checked) return "";
    EXPECT_EQ(checked.error().code, errc::refused_record);
    constexpr std::string_view begin = "the value does not fit its JSON Schema at ";
    const auto& detail = checked.error().detail;
    return detail.starts_with(begin) ? detail.substr(begin.size()) : detail;
}

std::string refusal(std::string_view schema_text, std::span<const json_reference> references = {}) {
    const auto schema = parse_json_schema(schema_text, references);
    if (schema) return "none";
    EXPECT_EQ(schema.error().code, errc::invalid_argument);
    return schema.error().detail;
}

constexpr auto order =
    R"({"title": "Order", "type": "object", "required": ["id"], "additionalProperties": false,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "state": {"enum": ["new", "paid", 3]},
        "price": {"multipleOf": 0.01, "exclusiveMaximum": 1e6},
        "lines": {"type": "array", "maxItems": 2, "uniqueItems": true, "items": {"type": "string", "minLength": 2}},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[a-z]+$"}}}})";

TEST(JsonChecker, TakesWhatFits) {
    EXPECT_EQ(fault(order, R"({"id": 1})"), "");
    EXPECT_EQ(
        fault(
            order,
            R"({"id": 1.0, "state": 3.0, "price": 19.99, "lines": ["ab", "äö"], "labels": {"k": "abc"}})"
        ),
        ""
    );
}

TEST(JsonChecker, SaysWhereWhatWasExpectedAndWhatKindWasFound) {
    EXPECT_EQ(fault(order, "[]"), "$: expected object, found an array of 0 elements");
    EXPECT_EQ(fault(order, "{}"), "$: the member \"id\" is missing");
    EXPECT_EQ(fault(order, R"({"id": "7"})"), "$.id: expected integer, found a string of 1 character");
    EXPECT_EQ(
        fault(order, R"({"id": 1.5})"),
        "$.id: expected integer, found a number with a fraction or an exponent"
    );
    EXPECT_EQ(fault(order, R"({"id": 0})"), "$.id: expected a number from 1");
    EXPECT_EQ(
        fault(order, R"({"id": 1, "state": "secret"})"),
        "$.state: expected one of new, paid, 3, found a string of 6 characters"
    );
    EXPECT_EQ(fault(order, R"({"id": 1, "price": 0.015})"), "$.price: expected a multiple of 0.01");
    EXPECT_EQ(fault(order, R"({"id": 1, "price": 1000000})"), "$.price: expected a number below 1e6");
    EXPECT_EQ(
        fault(order, R"({"id": 1, "lines": ["a"]})"),
        "$.lines[0]: expected at least 2 characters, found a string of 1 character"
    );
    EXPECT_EQ(fault(order, R"({"id": 1, "lines": ["aa", "aa"]})"), "$.lines: two elements are equal");
    EXPECT_EQ(
        fault(order, R"({"id": 1, "lines": ["aa", "bb", "cc"]})"),
        "$.lines: expected at most 2 elements, found an array of 3 elements"
    );
    EXPECT_EQ(fault(order, R"({"id": 1, "idd": 2})"), "${2}: a member that the schema does not allow");
}

TEST(JsonChecker, ShowsAKeyThatMayBeDataByItsPlace) {
    EXPECT_EQ(
        fault(order, R"({"id": 1, "labels": {"a": "x", "ann@example.org": "X"}})"),
        "$.labels{2}: the pattern of the schema does not match, found a string of 1 character"
    );
}

TEST(JsonChecker, NamesTheAlternativeThatWentFurthest) {
    constexpr auto shapes = R"({"oneOf": [
        {"properties": {"circle": {"type": "object", "required": ["r"]}}, "required": ["circle"]},
        {"properties": {"box": {"type": "array", "items": {"type": "number"}}}, "required": ["box"]}]})";
    EXPECT_EQ(
        fault(shapes, R"({"box": [1, "x"]})"), "$.box[1]: expected number, found a string of 1 character"
    );
    EXPECT_EQ(
        fault(shapes, "{}"), "$: none of the 2 alternatives of `oneOf` fits, found an object with 0 members"
    );
    EXPECT_EQ(
        fault(shapes, R"({"box": [], "circle": {"r": 1}})"),
        "$: 2 of the 2 alternatives of `oneOf` fit, found an object with 2 members"
    );
    EXPECT_EQ(
        fault(R"({"anyOf": [{"type": "null"}, {"type": "string"}]})", "1"),
        "$: none of the 2 alternatives of `anyOf` fits, found an integer"
    );
}

TEST(JsonChecker, ComparesNumbersWithAllTheirDigits) {
    constexpr auto limit = R"({"maximum": 9007199254740993, "minimum": -0.1})";
    EXPECT_EQ(fault(limit, "9007199254740993"), "");
    EXPECT_NE(fault(limit, "9007199254740994"), "");
    EXPECT_NE(fault(limit, "-0.10000000000000000001"), "");
    EXPECT_NE(fault(R"({"const": 12345678901234567890123})", "12345678901234567890124"), "");
    EXPECT_EQ(fault(R"({"const": 12345678901234567890123})", "1.2345678901234567890123e22"), "");
    EXPECT_NE(fault(R"({"multipleOf": 3})", "1000000000000000000000000000001"), "");
    EXPECT_EQ(fault(R"({"multipleOf": 3})", "1000000000000000000000000000002"), "");
    EXPECT_EQ(fault(R"({"multipleOf": 7})", "7e300"), "");
}

TEST(JsonChecker, RefusesANameThatStandsTwice) {
    EXPECT_EQ(fault(order, R"({"id": 1, "id": 2})"), "$.id: a name stands twice in one object");
    EXPECT_EQ(
        fault("true", R"([{"a": {"b": 1, "\u0062": 2}}])"), "$[0]{1}{2}: a name stands twice in one object"
    );
}

TEST(JsonChecker, RefusesWhatIsNoJson) {
    EXPECT_EQ(fault("true", "{"), "it is no valid JSON at byte 1: incomplete JSON");
    EXPECT_THAT(fault("true", "\"\xC0\x80\""), testing::HasSubstr("it is no valid JSON at byte 1"));
}

TEST(JsonChecker, GivesUpAPatternThatDoesNotComeToAnEnd) {
    EXPECT_EQ(
        fault(R"({"pattern": "^(a+)+$"})", '"' + std::string(40, 'a') + "b\""),
        "$: a pattern of the schema does not come to an end for this value"
    );
    EXPECT_THAT(
        fault(
            R"({"not": {"patternProperties": {"^(a+)+$": true}}})", "{\"" + std::string(40, 'a') + "b\": 1}"
        ),
        testing::HasSubstr("does not come to an end")
    );
}

TEST(JsonChecker, MatchesALongStringWithoutDeepRecursion) {
    EXPECT_EQ(fault(R"({"pattern": "^(a|b)*$"})", '"' + std::string(20'000, 'a') + '"'), "");
}

TEST(JsonChecker, ReadsPatternsAsJavaScriptDoes) {
    EXPECT_NE(fault(R"({"pattern": "^a$"})", R"("a\n")"), "") << "$ is the very end";
    EXPECT_EQ(fault(R"({"pattern": "^\\u00e4\\x41$"})", R"("äA")"), "");
    EXPECT_EQ(fault(R"({"pattern": "^.$"})", R"("😀")"), "") << "one character";
    EXPECT_EQ(fault(R"({"pattern": "^(?!admin)\\w{3,}$"})", R"("user")"), "");
    EXPECT_NE(fault(R"({"pattern": "^(?!admin)\\w{3,}$"})", R"("administrator")"), "");
}

TEST(JsonChecker, GivesUpWhereAlternativesMultiply) {
    constexpr auto schema = R"({"definitions": {"n": {"anyOf": [
        {"type": "object", "properties": {"x": {"$ref": "#/definitions/n"}}},
        {"type": "object", "properties": {"x": {"$ref": "#/definitions/n"}}, "minProperties": 1},
        {"type": "integer"}]}}, "$ref": "#/definitions/n"})";
    std::string value = R"("end")";
    for (int i = 0; i < 60; ++i)
        value = R"({"x": )" + value + "}";
    EXPECT_THAT(
        fault(schema, value), testing::HasSubstr("the schema tries too many alternatives for this value")
    );
}

TEST(JsonChecker, GivesUpASchemaThatAppliesItselfForEver) {
    EXPECT_THAT(fault(R"({"allOf": [{"$ref": "#"}]})", "1"), testing::HasSubstr("too many alternatives"));
    EXPECT_THAT(refusal(R"({"$ref": "#"})"), testing::HasSubstr("the $ref leads back to itself"));
    EXPECT_THAT(
        refusal(
            R"({"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}, "items": {"$ref": "#/definitions/a"}})"
        ),
        testing::HasSubstr("the $ref leads back to itself")
    );
}

TEST(JsonSchema, FindsTheReferencesThatAreGiven) {
    constexpr std::array references{
        json_reference{
            "customer.json", R"({"properties": {"name": {"$ref": "names.json#/definitions/short"}}})"},
        json_reference{"names.json", R"({"definitions": {"short": {"type": "string", "maxLength": 3}}})"}};
    constexpr auto schema = R"({"properties": {"customer": {"$ref": "customer.json"}}})";
    EXPECT_EQ(fault(schema, R"({"customer": {"name": "Ann"}})", references), "");
    EXPECT_EQ(
        fault(schema, R"({"customer": {"name": "Anna"}})", references),
        "$.customer.name: expected at most 3 characters, found a string of 4 characters"
    );
    EXPECT_EQ(
        refusal(schema),
        "the JSON Schema is wrong at $.properties.customer.$ref: \"customer.json\" is neither in the schema "
        "nor in a "
        "reference that was given"
    );
    EXPECT_EQ(
        refusal(schema, std::span(references).first(1)),
        "the JSON Schema is wrong at $.properties.name.$ref of the reference \"customer.json\": "
        "\"names.json#/definitions/short\" is neither in the schema nor in a reference that was given"
    );
}

TEST(JsonSchema, SaysWhereAndWhyASchemaIsNone) {
    const auto wrong = [](std::string_view text) {
        const auto detail = refusal(text);
        constexpr std::string_view begin = "the JSON Schema is wrong at ";
        return detail.starts_with(begin) ? detail.substr(begin.size()) : detail;
    };
    EXPECT_EQ(wrong("7"), "$: expected a schema (an object or a boolean), found an integer");
    EXPECT_EQ(wrong(R"({"type": "int"})"), "$.type: \"int\" is no type");
    EXPECT_EQ(
        wrong(R"({"items": {"type": ["string", 7]}})"), "$.items.type[1]: expected a string, found an integer"
    );
    EXPECT_EQ(wrong(R"({"maxLength": -1})"), "$.maxLength: expected a whole number from 0");
    EXPECT_EQ(wrong(R"({"multipleOf": 0})"), "$.multipleOf: multipleOf must be above 0");
    EXPECT_EQ(wrong(R"({"required": "a"})"), "$.required: expected an array, found a string of 1 character");
    EXPECT_EQ(wrong(R"({"enum": "a"})"), "$.enum: expected an array, found a string of 1 character");
    EXPECT_EQ(
        wrong(R"({"properties": []})"), "$.properties: expected an object, found an array of 0 elements"
    );
    EXPECT_EQ(
        wrong(R"({"pattern": "(a"})"),
        "$.pattern: the pattern \"(a\" is no regular expression at character 2: missing closing parenthesis"
    );
    EXPECT_EQ(
        wrong(R"({"$ref": "#/definitions/x"})"), "$.$ref: \"#/definitions/x\" names nothing in its document"
    );
    EXPECT_EQ(
        wrong(R"({"$schema": "https://json-schema.org/draft/2020-12/schema"})"),
        "$.$schema: \"https://json-schema.org/draft/2020-12/sc...\" is not supported; the drafts 4, 6 and 7 "
        "of JSON "
        "Schema are"
    );
    EXPECT_THAT(wrong("{"), testing::HasSubstr("it is no valid JSON"));
}

TEST(JsonSchema, ReadsALongChainOfReferencesWithoutDeepRecursion) {
    std::string schema = R"({"definitions": {"d0": {"type": "integer"})";
    constexpr int links = 9000;
    for (int i = 1; i < links; ++i) {
        schema += R"(,"d)" + std::to_string(i) + R"(":{"items":{"$ref":"#/definitions/d)" +
                  std::to_string(i - 1) + "\"}}";
    }
    schema += R"(},"items":{"$ref":"#/definitions/d)" + std::to_string(links - 1) + "\"}}";
    EXPECT_EQ(fault(schema, "[[[[1]]]]"), "");
}

TEST(JsonSchema, GivesItsTitleAndTheMemoryItHolds) {
    const auto schema = parse_json_schema(order);
    ASSERT_TRUE(schema);
    EXPECT_EQ(schema->title(), "Order");
    EXPECT_GT(schema->bytes(), std::string_view(order).size());
    EXPECT_LT(schema->bytes(), 8192U);
    EXPECT_EQ(parse_json_schema("true")->title(), "");
}

}  // namespace
}  // namespace millrace::schema
