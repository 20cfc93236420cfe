#include "dynamodb/requests.hpp"

#include "overload.hpp"

#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::aws::dynamodb {

namespace json = boost::json;

namespace {

/// Names and values of an expression, by placeholders.
class expression {
public:
    std::string name(std::string_view attribute) {
        auto place = fmt::format("#{}", names_.size());
        names_.emplace(place, attribute);
        return place;
    }
    std::string operand(const value& held) {
        auto place = fmt::format(":{}", values_.size());
        values_.emplace(place, to_json(held));
        return place;
    }
    std::string text_of(const condition& what) {
        return std::visit(
            overload{
                [&](const absent& a) { return fmt::format("attribute_not_exists({})", name(a.attribute)); },
                [&](const equals& e) {
                    const auto left = name(e.attribute);
                    return fmt::format("{} = {}", left, operand(e.wanted));
                },
            },
            what
        );
    }
    void add_to(json::object& request) && {
        request["ExpressionAttributeNames"] = std::move(names_);
        if (!values_.empty()) request["ExpressionAttributeValues"] = std::move(values_);
    }

private:
    json::object names_;
    json::object values_;
};

json::object request_of(std::string_view table) {
    return {{"TableName", table}};
}

json::object conditional(
    std::string_view table, const item& key, const condition& only_if, expression& words
) {
    auto request = request_of(table);
    request["Key"] = to_json(key);
    request["ConditionExpression"] = words.text_of(only_if);
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD";
    return request;
}

}  // namespace

std::string target_of(std::string_view operation) {
    return fmt::format("DynamoDB_20120810.{}", operation);
}

std::string get_item(std::string_view table, const item& key) {
    auto request = request_of(table);
    request["Key"] = to_json(key);
    request["ConsistentRead"] = true;
    return json::serialize(request);
}

std::string update_item(std::string_view table, const update& what) {
    expression words;
    auto request = conditional(table, what.key, what.only_if, words);
    std::string changes;
    for (const auto& [attribute, held] : what.set) {
        const auto left = words.name(attribute);
        changes += fmt::format("{}{} = {}", changes.empty() ? "SET " : ", ", left, words.operand(held));
    }
    std::string removals;
    for (const auto& attribute : what.remove)
        removals += (removals.empty() ? " REMOVE " : ", ") + words.name(attribute);
    request["UpdateExpression"] = changes + removals;
    std::move(words).add_to(request);
    return json::serialize(request);
}

std::string delete_item(std::string_view table, const item& key, const condition& only_if) {
    expression words;
    auto request = conditional(table, key, only_if, words);
    std::move(words).add_to(request);
    return json::serialize(request);
}

std::string query(std::string_view table, const equals& partition, const item& after) {
    expression words;
    auto request = request_of(table);
    request["KeyConditionExpression"] = words.text_of(partition);
    request["ConsistentRead"] = true;
    if (!after.empty()) request["ExclusiveStartKey"] = to_json(after);
    std::move(words).add_to(request);
    return json::serialize(request);
}

std::string create_table(std::string_view table, const key_names& key) {
    auto request = request_of(table);
    request["BillingMode"] = "PAY_PER_REQUEST";
    request["AttributeDefinitions"] = json::array{
        {{"AttributeName", key.partition}, {"AttributeType", "S"}},
        {{"AttributeName", key.sort}, {"AttributeType", "S"}}};
    request["KeySchema"] = json::array{
        {{"AttributeName", key.partition}, {"KeyType", "HASH"}},
        {{"AttributeName", key.sort}, {"KeyType", "RANGE"}}};
    return json::serialize(request);
}

std::string describe_table(std::string_view table) {
    return json::serialize(request_of(table));
}

std::string describe_time_to_live(std::string_view table) {
    return json::serialize(request_of(table));
}

std::string update_time_to_live(std::string_view table, std::string_view attribute) {
    auto request = request_of(table);
    request["TimeToLiveSpecification"] = {{"AttributeName", attribute}, {"Enabled", true}};
    return json::serialize(request);
}

}  // namespace millrace::aws::dynamodb
