/// Why an address is refused.
#pragma once

#include <millrace/url.hpp>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace millrace::test {

inline std::string refusal(std::string_view given, url_role role) {
    const auto parsed = parse_url(given, role);
    if (parsed) return "accepted";
    EXPECT_EQ(parsed.error().code, errc::invalid_argument);
    return parsed.error().detail;
}

inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace millrace::test
