#include "schemas.hpp"

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace millrace::demo {

namespace {

constexpr auto consumer_limit = std::chrono::minutes{2};

constexpr auto order_schema = R"({
  "type": "record", "name": "Order", "namespace": "shop",
  "fields": [
    {"name": "order", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
  ]
}
)";

constexpr auto written_orders =
    "SELECT id::text, concat_ws(E'\\t', id, customer, total, to_char(placed_at AT TIME ZONE 'UTC', "
    "'YYYY-MM-DD HH24:MI:SS.MS')) FROM orders";

}  // namespace

schema_consumer::schema_consumer(schema_arguments given, std::filesystem::path folder)
    : given_(std::move(given)), folder_(std::move(folder)) {}

std::string schema_consumer::section(const std::string& topic) const {
    const auto schema = folder_ / "order.avsc";
    std::ofstream{schema} << order_schema;
    return fmt::format(
        "schemas:\n  registry: {}\n  rules:\n    - topic: {}\n      value:\n        mode: avro\n"
        "        schema_file: {}\n        auto_register: true\n",
        given_.registry,
        topic,
        schema.string()
    );
}

void schema_consumer::start(const std::string& kafka, const std::string& topic, std::uint64_t orders) {
    process_.emplace(
        std::vector<std::string>{
            given_.services,
            "python-client",
            given_.consumer,
            kafka,
            given_.registry,
            topic,
            std::to_string(orders)},
        support::spawn_options{.input = {}, .output = output(), .errors = errors(), .environment = {}}
    );
}

schema_consumer::findings schema_consumer::compare(support::sql_connection& shop) {
    const auto ended = process_->wait(consumer_limit);
    if (!ended || ended->status != 0)
        throw std::runtime_error("the consumer in Python failed: " + support::read_file(errors()));
    std::unordered_map<std::string, std::string> written;
    for (auto& row : shop.query(written_orders))
        written.emplace(row.at(0).value(), row.at(1).value());
    findings found;
    std::istringstream lines{support::read_file(output())};
    std::getline(lines, found.client);
    std::unordered_set<std::string> decoded;
    for (std::string line; std::getline(lines, line);) {
        const auto order = line.substr(0, line.find('\t'));
        const auto as_written = written.find(order);
        if (as_written != written.end() && as_written->second == line) {
            decoded.insert(order);
        } else {
            ++found.otherwise;
        }
    }
    found.decoded = decoded.size();
    return found;
}

}  // namespace millrace::demo
