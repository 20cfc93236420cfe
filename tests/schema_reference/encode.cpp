/// What the comparison with the reference implementation drives: reads cases from the standard input, three
/// lines each (`avro` or `plain` for the unions, the schema, the value), and answers each with a line: the
/// encoded bytes in hexadecimal digits, or `!` and the error.
#include "avro/encoder.hpp"

#include <iostream>
#include <string>
#include <string_view>

namespace {

using namespace millrace::schema;

std::string answer(const std::string& style, const std::string& schema_text, const std::string& value) {
    const auto schema = parse_avro_schema(schema_text);
    if (!schema) return "!" + schema.error().detail;
    avro_encoder encoder({.unions = style == "plain" ? union_style::plain : union_style::avro});
    std::string bytes;
    if (const auto encoded = encoder.encode(*schema, value, bytes); !encoded)
        return "!" + encoded.error().detail;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        hex += digits[byte >> 4U];
        hex += digits[byte & 15U];
    }
    return hex;
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    std::string style;
    std::string schema;
    std::string value;
    while (std::getline(std::cin, style) && std::getline(std::cin, schema) && std::getline(std::cin, value))
        std::cout << answer(style, schema, value) << std::endl;
}
