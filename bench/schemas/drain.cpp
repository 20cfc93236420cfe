#include "relay/outboxes.hpp"
#include "schemas/measure_schemas.hpp"
#include "support/temporary_folder.hpp"
#include "timed.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

constexpr std::string_view order =
    "convert_to(json_build_object('id', n, 'customer', 'customer-' || n % 10000, 'email', 'customer-' || n % "
    "10000 || '@shop.example', 'status', (ARRAY['NEW', 'PAID', 'SENT'])[1 + n % 3], 'quantity', n % 12, "
    "'weight', (n % 977) / 8.0, 'total', (n % 99900 / 100.0)::numeric(12, 2), 'placed_at', "
    "to_char(timestamp '2026-01-01' + n * interval '1 second', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), 'paid', n "
    "% 3 > "
    "0, 'country', 'DE', 'coupon', CASE WHEN n % 5 = 0 THEN json_build_object('string', 'SPRING') END, "
    "'note', "
    "repeat('note ', 8))::text, 'UTF8')";

constexpr std::string_view avro_schema =
    R"({"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "long"},
  {"name": "customer", "type": "string"},
  {"name": "email", "type": "string"},
  {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]}},
  {"name": "quantity", "type": "int"},
  {"name": "weight", "type": "double"},
  {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
  {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "paid", "type": "boolean"},
  {"name": "country", "type": "string"},
  {"name": "coupon", "type": ["null", "string"]},
  {"name": "note", "type": "string"}
]})";

constexpr std::string_view json_schema =
    R"({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
  "properties": {
    "id": {"type": "integer"}, "customer": {"type": "string"}, "email": {"type": "string"},
    "status": {"enum": ["NEW", "PAID", "SENT"]}, "quantity": {"type": "integer", "minimum": 0},
    "weight": {"type": "number"}, "total": {"type": "number"}, "placed_at": {"type": "string", "maxLength": 30},
    "paid": {"type": "boolean"}, "country": {"type": "string"}, "coupon": {"type": ["null", "object"]},
    "note": {"type": "string"}},
  "required": ["id", "customer", "status", "total"]})";

std::string registry_of_environment() {
    const char* const registry = std::getenv("MILLRACE_TEST_REGISTRY");
    if (registry == nullptr) {
        throw std::runtime_error(
            "MILLRACE_TEST_REGISTRY is not set: \"./dev bench schemas\" starts the servers and sets it"
        );
    }
    return registry;
}

/// With a mode of `schemas:`, whose schema is registered on the way; without one, as the rows are.
run_figures drain_once(
    const setup& with, const servers& at, std::string_view mode, std::string_view schema = {}
) {
    const pg_outbox outbox(with, at);
    outbox.fill(with.data, order);
    auto relay = outbox.relay();
    relay.emplace_back("--once");
    if (mode.empty()) return timed(relay);
    const support::temporary_folder folder;
    std::ofstream{folder.file("schema")} << schema;
    std::ofstream{folder.file("millrace.yaml")} << fmt::format(
        "schemas:\n  registry: {}\n  rules:\n    - topic: {}\n      value:\n        mode: {}\n"
        "        schema_file: {}\n        auto_register: true\n",
        registry_of_environment(),
        outbox.name(),
        mode,
        folder.file("schema")
    );
    relay.emplace_back("--config");
    relay.push_back(folder.file("millrace.yaml"));
    return timed(relay);
}

}  // namespace

std::vector<figure> measure_schemas_drain(const setup& with) {
    const auto at = servers_of_environment();
    const auto rows = static_cast<double>(with.data.rows);
    struct mode {
        std::string_view name;
        std::string_view schema;
        wanted_ratio wanted;
        std::vector<double> rates;
        std::vector<double> cpus;
    };
    std::vector<mode> modes{
        {"", "", {}, {}, {}},
        {"frame", avro_schema, {0.90, 0.95}, {}, {}},
        {"avro", avro_schema, {0.60, 0.75}, {}, {}},
        {"json", json_schema, {}, {}, {}}};
    double memory_mib = 0;
    for (int round = 0; round < with.rounds; ++round) {
        for (auto& each : modes) {
            const auto took = drain_once(with, at, each.name, each.schema);
            each.rates.push_back(rows / took.wall);
            each.cpus.push_back(took.cpu);
            memory_mib = std::max(memory_mib, took.memory_mib);
        }
    }
    std::vector<figure> figures;
    for (const auto& each : modes) {
        if (each.name.empty()) continue;
        figures.push_back(against(
            fmt::format("drain with `{}`, against without", each.name),
            each.rates,
            modes.front().rates,
            each.wanted
        ));
        if (each.wanted.must == 0) figures.back().must = figures.back().aim = "";
    }
    for (const auto& each : modes) {
        figures.push_back(cost(
            fmt::format("processor of the relay, {}", each.name.empty() ? "without" : each.name),
            median(each.cpus),
            with.data.rows
        ));
    }
    figures.push_back(memory("peak memory, the largest", memory_mib, 64, 40));
    return figures;
}

}  // namespace millrace::bench
