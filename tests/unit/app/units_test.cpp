#include "units.hpp"

#include <gtest/gtest.h>

namespace millrace::app {
namespace {

using namespace std::chrono_literals;

std::string why(const auto& parsed) {
    return parsed ? "" : parsed.error().detail;
}

TEST(Units, DurationsHaveAUnit) {
    EXPECT_EQ(parse_duration("30s"), nanoseconds{30s});
    EXPECT_EQ(parse_duration("1.5s"), nanoseconds{1500ms});
    EXPECT_EQ(parse_duration("1m30s"), nanoseconds{90s});
    EXPECT_EQ(parse_duration("2d"), nanoseconds{48h});
    EXPECT_EQ(parse_duration("7us"), nanoseconds{7us});
    EXPECT_EQ(parse_duration("0"), nanoseconds{0});
    EXPECT_EQ(why(parse_duration("30")), "\"30\" has no unit; write 30s for seconds");
    EXPECT_EQ(why(parse_duration("-3s")), "\"-3s\" is negative");
}

TEST(Units, WhatIsNoDurationIsSaidToBeNone) {
    for (const char* text : {"", "s", "3x", "3 s", "s3", "1.s", ".5s", "1e3s", "3ss", "\xff", "0x10s"}) {
        EXPECT_NE(why(parse_duration(text)).find("is not a duration"), std::string::npos) << text;
    }
}

TEST(Units, ValuesThatDoNotFitAreTooLarge) {
    EXPECT_EQ(why(parse_duration("99999999999999999999s")), "\"99999999999999999999s\" is too large");
    EXPECT_EQ(why(parse_duration("200000d")), "\"200000d\" is too large");
    EXPECT_EQ(why(parse_bytes("18446744073709551615KiB")), "\"18446744073709551615KiB\" is too large");
    EXPECT_EQ(why(parse_count("18446744073709551616")), "\"18446744073709551616\" is too large");
}

TEST(Units, SecondsMayStandWithoutAUnit) {
    EXPECT_EQ(parse_seconds("5"), nanoseconds{5s});
    EXPECT_EQ(parse_seconds("0.5"), nanoseconds{500ms});
    EXPECT_EQ(parse_seconds("200ms"), nanoseconds{200ms});
    EXPECT_EQ(why(parse_seconds("-1")), "\"-1\" is negative");
}

TEST(Units, SizesAreBinaryOrDecimal) {
    EXPECT_EQ(parse_bytes("16MiB"), 16U << 20U);
    EXPECT_EQ(parse_bytes("1.5MB"), 1'500'000U);
    EXPECT_EQ(parse_bytes("512B"), 512U);
    EXPECT_EQ(why(parse_bytes("16")), "\"16\" has no unit; write 16B for bytes");
    EXPECT_NE(why(parse_bytes("16mib")).find("is not a size"), std::string::npos);
}

TEST(Units, TimesAreReadWithTheirOffset) {
    const auto noon = parse_time("2026-01-31T12:00:00Z");
    ASSERT_TRUE(noon);
    EXPECT_EQ(parse_time("2026-01-31T13:30:00+01:30"), noon);
    EXPECT_EQ(parse_time("2026-01-31T12:00:00.2509Z"), *noon + 250ms);
    EXPECT_EQ(format_time(*noon + 5ms), "2026-01-31T12:00:00.005Z");
    for (const char* text :
         {"", "now", "2026-02-30T00:00:00Z", "2026-01-31", "2026-01-31T25:00:00Z", "2026-01-31T12:00:00"}) {
        EXPECT_FALSE(parse_time(text)) << text;
    }
}

TEST(Units, AMomentOutsideTheYearsOfFourDigitsIsNone) {
    EXPECT_TRUE(parse_time("0000-01-01T00:00:00Z"));
    EXPECT_FALSE(parse_time("0000-01-01T00:00:00+00:01"));
    EXPECT_TRUE(parse_time("9999-12-31T23:59:59.999Z"));
    EXPECT_FALSE(parse_time("9999-12-31T23:59:59.999-00:01"));
}

TEST(Units, ShownValuesReadBackAsThemselves) {
    for (const nanoseconds value :
         {nanoseconds{0}, nanoseconds{90s}, nanoseconds{1500ms}, nanoseconds{7ns}, nanoseconds{48h}}) {
        EXPECT_EQ(parse_duration(format_duration(value)), value);
    }
    for (const std::uint64_t value : {0ULL, 1000ULL, 1024ULL, 3ULL << 30U, 1'000'000ULL}) {
        EXPECT_EQ(parse_bytes(format_bytes(value)), value);
    }
}

TEST(Units, QuotedTextIsCutBetweenCharacters) {
    EXPECT_EQ(in_quotes("a\nb"), "\"a?b\"");
    const std::string cut = in_quotes(std::string(63, 'x') + "\u00e4\u00e4");
    EXPECT_EQ(cut, "\"" + std::string(63, 'x') + "...\"");
}

}  // namespace
}  // namespace millrace::app
