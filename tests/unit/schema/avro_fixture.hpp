/// Helpers of the tests of Avro: bytes in hexadecimal digits, which read like the examples of the
/// specification.
#pragma once

#include "avro/encoder.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace::schema {

inline std::string hex(std::string_view bytes) {
    std::string digits;
    for (const char c : bytes)
        digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return digits;
}

/// The encoded value in hexadecimal digits, or the text of the error.
inline std::string encoded(
    std::string_view schema, std::string_view value, const avro_options& options = {}
) {
    const auto parsed = parse_avro_schema(schema);
    if (!parsed) return parsed.error().detail;
    avro_encoder encoder(options);
    std::string out = "kept";
    const auto done = encoder.encode(*parsed, value, out);
    EXPECT_EQ(out.substr(0, 4), "kept");
    if (done) return hex(std::string_view(out).substr(4));
    EXPECT_EQ(out, "kept") << "a refused value leaves nothing behind";
    EXPECT_EQ(done.error().code, errc::refused_record);
    return done.error().detail;
}

inline std::string encoded_plain(std::string_view schema, std::string_view value) {
    return encoded(schema, value, {.unions = union_style::plain});
}

/// What was wrong, without the words that every message of the encoder begins with.
inline std::string fault(std::string_view schema, std::string_view value, const avro_options& options = {}) {
    const auto text = encoded(schema, value, options);
    constexpr std::string_view begin = "the value does not fit its Avro schema at ";
    EXPECT_TRUE(text.starts_with(begin)) << text;
    return text.substr(std::min(begin.size(), text.size()));
}

inline std::string fault_plain(std::string_view schema, std::string_view value) {
    return fault(schema, value, {.unions = union_style::plain});
}

}  // namespace millrace::schema
