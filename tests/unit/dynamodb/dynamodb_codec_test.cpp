#include "dynamodb/replies.hpp"
#include "dynamodb/requests.hpp"
#include "dynamodb/value.hpp"

#include <limits>
#include <string>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace millrace::aws::dynamodb {
namespace {

item key() {
    return {{"pk", value{"p"}}, {"sk", value{"s"}}};
}

/// The same JSON, whatever the order of its members.
void expect_json(const std::string& text, const char* wanted) {
    EXPECT_EQ(boost::json::parse(text), boost::json::parse(wanted)) << text;
}

TEST(DynamodbCodec, KeepsNumbersAsTextAndReadsThemWithinTheirRange) {
    EXPECT_EQ(number::of(std::numeric_limits<std::uint64_t>::max()).text, "18446744073709551615");
    EXPECT_EQ(number::of(std::numeric_limits<std::int64_t>::min()).text, "-9223372036854775808");
    EXPECT_EQ(number{"18446744073709551615"}.as_unsigned(), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(number{"-9223372036854775808"}.as_signed(), std::numeric_limits<std::int64_t>::min());
    for (const auto* bad :
         {"", "-1", "1.5", "1E+2", " 1", "18446744073709551616", "99999999999999999999999999"})
        EXPECT_EQ(number{bad}.as_unsigned(), std::nullopt) << bad;
}

TEST(DynamodbCodec, ReadsEveryTypeAndWritesItsOwn) {
    const auto read = item_from(boost::json::parse(
        R"({"s":{"S":"a\"ü"},"n":{"N":"12345678901234567890123456789012345678"},"b":{"BOOL":true},
            "l":{"L":[{"S":""},{"N":"1"},{"L":[]}]},"bin":{"B":"YQ=="},"set":{"SS":["a"]},"map":{"M":{}},"null":{"NULL":true}})"
    ));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->at("s"), value{"a\"ü"});
    EXPECT_EQ(read->at("n"), value{number{"12345678901234567890123456789012345678"}});
    EXPECT_EQ(read->at("b"), value{true});
    EXPECT_EQ(read->at("l"), (value{list{value{""}, value{number{"1"}}, value{list{}}}}));
    for (const auto* other : {"bin", "set", "map", "null"})
        EXPECT_EQ(read->at(other), value{foreign{}}) << other;
    auto own = *read;
    std::erase_if(own, [](const auto& one) { return std::holds_alternative<foreign>(one.second.is); });
    EXPECT_EQ(item_from(to_json(own)), own);
}

TEST(DynamodbCodec, RefusesWhatIsNoItem) {
    for (const auto* bad :
         {"[]",
          R"({"a":1})",
          R"({"a":{}})",
          R"({"a":{"S":1}})",
          R"({"a":{"N":1}})",
          R"({"a":{"S":"a","N":"1"}})",
          R"({"a":{"L":{}}})",
          R"({"a":{"L":[1]}})",
          R"({"a":{"BOOL":"true"}})"})
        EXPECT_FALSE(item_from(boost::json::parse(bad))) << bad;
}

TEST(DynamodbCodec, UpdatesAttributesUnderAConditionAndAsksForTheItemWhenItFails) {
    const update what{
        key(),
        {{"a", value{"1"}}, {"status", value{number{"2"}}}},
        {"gone", "timestamp"},
        equals{"version", value{number{"7"}}}};
    expect_json(
        update_item("t", what),
        R"({"TableName":"t","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},
            "ConditionExpression":"#0 = :0","UpdateExpression":"SET #1 = :1, #2 = :2 REMOVE #3, #4",
            "ExpressionAttributeNames":{"#0":"version","#1":"a","#2":"status","#3":"gone","#4":"timestamp"},
            "ExpressionAttributeValues":{":0":{"N":"7"},":1":{"S":"1"},":2":{"N":"2"}},
            "ReturnValuesOnConditionCheckFailure":"ALL_OLD"})"
    );
    expect_json(
        delete_item("t", key(), absent{"pk"}),
        R"json({"TableName":"t","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"ConditionExpression":"attribute_not_exists(#0)",
            "ExpressionAttributeNames":{"#0":"pk"},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"})json"
    );
}

TEST(DynamodbCodec, ReadsConsistentlyAndFromWhereThePageBeforeEnded) {
    expect_json(
        get_item("t", key()),
        R"({"TableName":"t","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"ConsistentRead":true})"
    );
    expect_json(
        query("t", {"pk", value{"p"}}, key()),
        R"({"TableName":"t","KeyConditionExpression":"#0 = :0","ExpressionAttributeNames":{"#0":"pk"},
            "ExpressionAttributeValues":{":0":{"S":"p"}},"ConsistentRead":true,
            "ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"S":"s"}}})"
    );
    const auto page = read_query(
        R"({"Items":[{"pk":{"S":"p"}}],"Count":1,"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"S":"s"}}})"
    );
    ASSERT_TRUE(page);
    EXPECT_EQ(page->items.size(), 1U);
    EXPECT_EQ(page->next, key());
    EXPECT_TRUE(read_query(R"({"Items":[]})")->next.empty());
    EXPECT_EQ(read_get_item("{}"), std::nullopt);
    EXPECT_EQ(read_get_item(R"({"Item":{"pk":{"S":"p"}}})").value(), (item{{"pk", value{"p"}}}));
}

TEST(DynamodbCodec, MakesATableThatIsPaidPerRequest) {
    expect_json(
        create_table("t", {"pk", "sk"}),
        R"({"TableName":"t","BillingMode":"PAY_PER_REQUEST",
            "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]})"
    );
    const auto read = read_describe_table(
        R"({"Table":{"TableStatus":"CREATING",
            "AttributeDefinitions":[{"AttributeName":"r","AttributeType":"N"},{"AttributeName":"h","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"r","KeyType":"RANGE"},{"AttributeName":"h","KeyType":"HASH"}]}})"
    );
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->active);
    EXPECT_EQ(read->key, "h (S), r (N)");
    expect_json(
        update_time_to_live("t", "e"),
        R"({"TableName":"t","TimeToLiveSpecification":{"AttributeName":"e","Enabled":true}})"
    );
    const auto expiry = [](const char* status) {
        return read_describe_time_to_live(
                   R"({"TimeToLiveDescription":{"AttributeName":"e","TimeToLiveStatus":")" +
                   std::string(status) + R"("}})"
        )
            .value();
    };
    EXPECT_EQ(expiry("ENABLED"), "e");
    EXPECT_EQ(expiry("ENABLING"), "e");
    EXPECT_EQ(expiry("DISABLED"), "");
}

TEST(DynamodbCodec, TakesARefusedItemWhereItIsThere) {
    EXPECT_EQ(
        refused_item(R"({"__type":"x#ConditionalCheckFailedException","Item":{"a":{"S":"b"}}})"),
        (item{{"a", value{"b"}}})
    );
    for (const auto* without : {"", "{}", "no json", R"({"Item":1})", R"({"Item":{"a":1}})"})
        EXPECT_EQ(refused_item(without), std::nullopt) << without;
}

TEST(DynamodbCodec, SaysThatAReplyIsNotOneOfDynamodb) {
    for (const auto* bad :
         {"", "<html>", "[]", R"({"Items":1})", R"({"Items":[1]})", R"({"Items":[],"LastEvaluatedKey":1})"}) {
        const auto refused = read_query(bad);
        ASSERT_FALSE(refused) << bad;
        EXPECT_EQ(refused.error().code, errc::corrupt);
        EXPECT_NE(refused.error().detail.find("Query"), std::string::npos);
    }
    EXPECT_FALSE(read_get_item(R"({"Item":[]})"));
    EXPECT_FALSE(read_describe_table("{}"));
    EXPECT_FALSE(read_describe_table(R"({"Table":{"TableStatus":"ACTIVE"}})"));
    EXPECT_FALSE(read_describe_time_to_live("{}"));
}

}  // namespace
}  // namespace millrace::aws::dynamodb
