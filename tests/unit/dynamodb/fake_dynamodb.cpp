#include "fake_dynamodb.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace millrace::test {

namespace json = boost::json;

namespace {

constexpr std::string_view prefix = "DynamoDB_20120810.";

std::pair<std::string, std::string> key_in(const json::object& key) {
    const auto text = [&](const char* name) {
        return std::string(key.at(name).as_object().at("S").as_string());
    };
    return {text("pk"), text("sk")};
}

json::value resolved(const json::object& request, std::string_view placeholder) {
    const auto* const map =
        placeholder.front() == '#' ? "ExpressionAttributeNames" : "ExpressionAttributeValues";
    return request.at(map).as_object().at(placeholder);
}

std::string name(const json::object& request, std::string_view placeholder) {
    return std::string(resolved(request, placeholder).as_string());
}

std::size_t size_of(const json::object& value) {
    const auto& [type, held] = *value.begin();
    if (type == "S") return held.as_string().size();
    if (type == "N") return (held.as_string().size() + 1) / 2 + 1;
    std::size_t sum = 3;
    for (const auto& one : held.as_array())
        sum += 1 + size_of(one.as_object());
    return sum;
}

double units(std::size_t bytes, std::size_t unit) {
    return static_cast<double>(std::max<std::size_t>(1, (bytes + unit - 1) / unit));
}

bool holds(const json::object& request, const json::object* item) {
    const std::string condition(request.at("ConditionExpression").as_string());
    if (condition == "attribute_not_exists(#0)")
        return item == nullptr || !item->contains(name(request, "#0"));
    if (condition != "#0 = :0") throw std::logic_error("not a condition: " + condition);
    const auto* const held = item == nullptr ? nullptr : item->if_contains(name(request, "#0"));
    return held != nullptr && *held == resolved(request, ":0");
}

void for_each(const std::string& text, const std::function<void(const std::string&)>& what) {
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find(", ", at), text.size());
        what(text.substr(at, end - at));
        at = end + 2;
    }
}

/// `SET #1 = :1, #2 = :2 REMOVE #3, #4`.
void apply(const json::object& request, std::string text, json::object& item) {
    const auto removals = text.find(" REMOVE ");
    if (removals != std::string::npos) {
        for_each(text.substr(removals + 8), [&](const std::string& one) { item.erase(name(request, one)); });
        text.resize(removals);
    }
    if (!text.starts_with("SET ")) throw std::logic_error("not an update: " + text);
    for_each(text.substr(4), [&](const std::string& one) {
        const auto equals = one.find(" = ");
        item[name(request, one.substr(0, equals))] = resolved(request, one.substr(equals + 3));
    });
}

aws::api_failure failure(errc code, const std::string& type, bool in_doubt = false, std::string body = {}) {
    const auto retry = code == errc::conflict ? retry_advice::never : retry_advice::after_delay;
    return {{code, retry, in_doubt, type}, type, "", std::move(body), 400};
}

/// "workers" of the partition "workers/s/g".
std::string listed_in(std::string_view query) {
    const auto values = json::parse(query).at("ExpressionAttributeValues");
    const std::string partition(values.at(":0").at("S").as_string());
    return partition.substr(0, partition.find('/'));
}

}  // namespace

std::size_t fake_dynamodb_table::bytes_of(const json::object& item) {
    std::size_t sum = 0;
    for (const auto& [attribute, value] : item)
        sum += attribute.size() + size_of(value.as_object());
    return sum;
}

fake_dynamodb_table::reply fake_dynamodb_table::serve(const std::string& operation, std::string_view body) {
    const auto request = json::parse(body).as_object();
    if (operation == "Query") return query(request);
    if (operation == "GetItem") return get(request);
    if (operation == "UpdateItem" || operation == "DeleteItem") return change(operation, request);
    if (operation == "DescribeTimeToLive")
        return R"({"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expires_at"}})";
    throw std::logic_error("the fake does not know " + operation);
}

fake_dynamodb_table::reply fake_dynamodb_table::query(const json::object& request) {
    if (request.at("KeyConditionExpression").as_string() != "#0 = :0" || name(request, "#0") != "pk")
        throw std::logic_error("not a query of one partition");
    const auto partition = std::string(resolved(request, ":0").as_object().at("S").as_string());
    auto at = items.lower_bound({partition, ""});
    if (const auto* const after = request.if_contains("ExclusiveStartKey"))
        at = items.upper_bound(key_in(after->as_object()));
    json::object page;
    json::array found;
    std::size_t bytes = 0;
    for (; at != items.end() && at->first.first == partition; ++at) {
        if (bytes >= page_bytes) {
            page["LastEvaluatedKey"] = {
                {"pk", found.back().as_object().at("pk")}, {"sk", found.back().as_object().at("sk")}};
            break;
        }
        bytes += bytes_of(at->second);
        found.emplace_back(at->second);
    }
    read_units += units(bytes, 4096);
    page["Items"] = std::move(found);
    return json::serialize(page);
}

fake_dynamodb_table::reply fake_dynamodb_table::get(const json::object& request) {
    const auto found = items.find(key_in(request.at("Key").as_object()));
    if (found == items.end()) {
        read_units += 1;
        return "{}";
    }
    read_units += units(bytes_of(found->second), 4096);
    return json::serialize(json::object{{"Item", found->second}});
}

fake_dynamodb_table::reply fake_dynamodb_table::change(
    const std::string& operation, const json::object& request
) {
    const auto key = key_in(request.at("Key").as_object());
    const auto found = items.find(key);
    if (!holds(request, found == items.end() ? nullptr : &found->second)) {
        write_units += 1;
        json::object refusal{{"__type", "ConditionalCheckFailedException"}};
        if (returns_items && found != items.end()) refusal["Item"] = found->second;
        return tl::unexpected(
            failure(errc::conflict, "ConditionalCheckFailedException", false, json::serialize(refusal))
        );
    }
    const auto before = found == items.end() ? 0 : bytes_of(found->second);
    if (operation == "DeleteItem") {
        items.erase(found);
        write_units += units(before, 1024);
        return "{}";
    }
    auto& item = items[key];
    for (const auto& [attribute, value] : request.at("Key").as_object())
        item[attribute] = value;
    apply(request, std::string(request.at("UpdateExpression").as_string()), item);
    write_units += units(std::max(before, bytes_of(item)), 1024);
    return "{}";
}

void fake_dynamodb::send(aws::api_request what, aws::api_done done) {
    const std::chrono::milliseconds latency{3};
    const auto operation = what.operation.substr(prefix.size());
    ++table_.requests[operation == "Query" ? "Query " + listed_in(what.body) : operation];
    const auto met = table_.meets(operation);
    const auto served = [&table = table_, operation, body = what.body] {
        return table.serve(operation, body);
    };
    if (met == dynamodb_fate::normal) {
        world_.at(world_.now() + latency, [&world = world_, served, done = std::move(done)] {
            done(served().map([&](std::string body) {
                return aws::api_reply{std::move(body), {}, sim::wall_at(world.now())};
            }));
        });
        return;
    }
    auto failed = failure(errc::unavailable, "", !what.repeatable);
    auto told = world_.now() + std::chrono::nanoseconds(what.timeout);
    if (met == dynamodb_fate::throttled) {
        failed = failure(errc::throttled, "ProvisionedThroughputExceededException");
        told = world_.now() + latency;
    } else {
        const auto lands = met == dynamodb_fate::late ? 2 * what.timeout : latency;
        world_.at(world_.now() + lands, [served] { (void)served(); });
    }
    world_.at(told, [failed, done = std::move(done)] { done(tl::unexpected(failed)); });
}

}  // namespace millrace::test
