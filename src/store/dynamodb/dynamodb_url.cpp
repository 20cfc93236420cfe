#include "dynamodb_url.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {

namespace {

// Limits of DynamoDB.
constexpr std::size_t table_name_min = 3;
constexpr std::size_t table_name_max = 255;

bool is_table_name(std::string_view name) {
    return name.size() >= table_name_min && name.size() <= table_name_max &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '-';
           });
}

}  // namespace

result<aws::address> parse_dynamodb_url(std::string_view given, std::string_view shown) {
    const auto refuse = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format("\"{}\" {}; write dynamodb://REGION/TABLE[?endpoint=URL]", shown, why)
        );
    };
    auto found = aws::parse_address(given);
    if (!found) return refuse(found.error().detail);
    if (!is_table_name(found->name)) return refuse("names no table of 3 to 255 letters, digits and . _ -");
    return found;
}

}  // namespace millrace
