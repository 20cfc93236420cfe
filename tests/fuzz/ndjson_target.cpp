#include "json_text.hpp"
#include "ndjson.hpp"
#include "record/bytes_text.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

namespace {

/// The event with all its bytes in base64.
std::string line_of(const event& e) {
    const auto coded = [](const std::string& bytes) { return "\"" + to_base64(bytes) + "\""; };
    std::string out = "{\"topic\":" + app::json_string(e.topic);
    if (e.key) out += ",\"key_base64\":" + coded(*e.key);
    out += e.value ? ",\"value_base64\":" + coded(*e.value) : ",\"value\":null";
    out += ",\"headers\":[";
    for (const auto& [name, value] : e.headers) {
        if (out.back() != '[') out += ',';
        out += "[" + app::json_string(name) + ",";
        out += value ? "{\"base64\":" + coded(*value) + "}]" : "null]";
    }
    out += "]";
    if (e.partition) out += ",\"partition\":" + std::to_string(*e.partition);
    return out + "}";
}

}  // namespace

void ndjson(std::string_view line) {
    const auto fixed = app::parse_event(line, "orders");
    require(!fixed || fixed->topic == "orders", "a fixed topic is kept");
    const auto read = app::parse_event(line);
    if (!read) {
        require(!read.error().detail.empty(), "a refusal says why");
        return;
    }
    require(!read->topic.empty() && is_utf8(read->topic), "a topic is text");
    require(app::parse_event(line_of(*read)) == read, "an event that is written as a line reads as itself");
}

}  // namespace millrace::fuzz
