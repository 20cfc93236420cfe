#include "dynamodb/replies.hpp"

#include <map>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::aws::dynamodb {

namespace json = boost::json;

namespace {

tl::unexpected<error> unreadable(std::string_view operation) {
    return fail(
        errc::corrupt,
        fmt::format("the reply to {} is not one of DynamoDB; check the endpoint", operation),
        retry_advice::after_delay
    );
}

std::optional<json::object> object_from(std::string_view body) {
    json::error_code broken;
    auto parsed = json::parse(body, broken);
    if (broken || !parsed.is_object()) return std::nullopt;
    return std::move(parsed.get_object());
}

const json::object* object_in(const json::object& from, std::string_view name) {
    const auto* const found = from.if_contains(name);
    return found != nullptr ? found->if_object() : nullptr;
}

const json::array* array_in(const json::object& from, std::string_view name) {
    const auto* const found = from.if_contains(name);
    return found != nullptr ? found->if_array() : nullptr;
}

std::string text_in(const json::object& from, std::string_view name) {
    const auto* const found = from.if_contains(name);
    if (found == nullptr || !found->is_string()) return {};
    return std::string(found->get_string());
}

/// Absent or null: empty. `false`: something else is there.
bool read_item(const json::object& from, std::string_view name, std::optional<item>& into) {
    const auto* const found = from.if_contains(name);
    if (found == nullptr || found->is_null()) return true;
    into = item_from(*found);
    return into.has_value();
}

}  // namespace

result<std::optional<item>> read_get_item(std::string_view body) {
    const auto reply = object_from(body);
    std::optional<item> found;
    if (!reply || !read_item(*reply, "Item", found)) return unreadable("GetItem");
    return found;
}

result<page> read_query(std::string_view body) {
    const auto reply = object_from(body);
    if (!reply) return unreadable("Query");
    const auto* const items = array_in(*reply, "Items");
    std::optional<item> next;
    if (items == nullptr || !read_item(*reply, "LastEvaluatedKey", next)) return unreadable("Query");
    page found;
    found.items.reserve(items->size());
    for (const auto& one : *items) {
        auto read = item_from(one);
        if (!read) return unreadable("Query");
        found.items.push_back(std::move(*read));
    }
    found.next = std::move(next).value_or(item{});
    return found;
}

result<table_description> read_describe_table(std::string_view body) {
    const auto reply = object_from(body);
    const auto* const table = reply ? object_in(*reply, "Table") : nullptr;
    if (table == nullptr) return unreadable("DescribeTable");
    table_description found;
    const auto status = text_in(*table, "TableStatus");
    found.active = status == "ACTIVE" || status == "UPDATING";
    std::map<std::string, std::string> types;
    const auto* const definitions = array_in(*table, "AttributeDefinitions");
    const auto* const schema = array_in(*table, "KeySchema");
    if (status.empty() || definitions == nullptr || schema == nullptr) return unreadable("DescribeTable");
    for (const auto& one : *definitions) {
        if (!one.is_object()) return unreadable("DescribeTable");
        types[text_in(one.get_object(), "AttributeName")] = text_in(one.get_object(), "AttributeType");
    }
    for (const auto& one : *schema) {
        if (!one.is_object()) return unreadable("DescribeTable");
        const auto name = text_in(one.get_object(), "AttributeName");
        const auto shown = fmt::format("{} ({})", name, types[name]);
        const bool is_partition = text_in(one.get_object(), "KeyType") == "HASH";
        const auto* const between = found.key.empty() ? "" : ", ";
        found.key = is_partition ? shown + between + found.key : found.key + between + shown;
    }
    return found;
}

result<std::string> read_describe_time_to_live(std::string_view body) {
    const auto reply = object_from(body);
    const auto* const found = reply ? object_in(*reply, "TimeToLiveDescription") : nullptr;
    if (found == nullptr) return unreadable("DescribeTimeToLive");
    const auto status = text_in(*found, "TimeToLiveStatus");
    if (status != "ENABLED" && status != "ENABLING") return std::string{};
    return text_in(*found, "AttributeName");
}

std::optional<item> refused_item(std::string_view body) {
    const auto refusal = object_from(body);
    std::optional<item> found;
    if (!refusal || !read_item(*refusal, "Item", found)) return std::nullopt;
    return found;
}

}  // namespace millrace::aws::dynamodb
