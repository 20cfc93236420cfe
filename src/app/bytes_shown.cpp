#include "bytes_shown.hpp"

#include "json_text.hpp"
#include "record/bytes_text.hpp"
#include "units.hpp"

#include <fmt/format.h>

namespace millrace::app {

std::string shown(const std::optional<std::string>& bytes) {
    if (!bytes) return "-";
    return is_utf8(*bytes) ? in_quotes(*bytes) : "base64:" + to_base64(*bytes);
}

std::string field_json(std::string_view name, const std::optional<std::string>& bytes) {
    if (!bytes) return fmt::format("\"{}\":null", name);
    if (is_utf8(*bytes)) return fmt::format("\"{}\":{}", name, json_string(*bytes));
    return fmt::format("\"{}_base64\":\"{}\"", name, to_base64(*bytes));
}

}  // namespace millrace::app
