#include "avro_fixture.hpp"

#include <string>

#include <gmock/gmock.h>

namespace millrace::schema {
namespace {

std::string on(std::string_view type, std::string_view logical) {
    return fmt::format(R"({{"type": "{}", "logicalType": "{}"}})", type, logical);
}

std::string decimal_schema(int precision, int scale) {
    return fmt::format(
        R"({{"type": "bytes", "logicalType": "decimal", "precision": {}, "scale": {}}})", precision, scale
    );
}

TEST(AvroDecimal, TakesNumbersAndStringsWithoutLosingADigit) {
    const auto money = decimal_schema(10, 2);
    EXPECT_EQ(encoded(money, "12.34"), "0404d2");
    EXPECT_EQ(encoded(money, R"("12.34")"), "0404d2");
    EXPECT_EQ(encoded(money, "12.3400"), "0404d2");
    EXPECT_EQ(encoded(money, "1234e-2"), "0404d2");
    EXPECT_EQ(encoded(money, "0.1"), "020a");
    EXPECT_EQ(encoded(money, "0"), "0200");
    EXPECT_EQ(encoded(money, "-0.00"), "0200");
    EXPECT_EQ(
        encoded(decimal_schema(40, 0), "1234567890123456789012345678901234567890"),
        "2203a0c92075c0dbf3b8acbc5f96ce3f0ad2"
    );
    EXPECT_EQ(encoded(decimal_schema(30, 20), "0.00000000000000000001"), "0201");
}

TEST(AvroDecimal, WritesTheShortestTwosComplement) {
    const auto whole = decimal_schema(9, 0);
    EXPECT_EQ(encoded(whole, "127"), "027f");
    EXPECT_EQ(encoded(whole, "128"), "040080");
    EXPECT_EQ(encoded(whole, "-128"), "0280");
    EXPECT_EQ(encoded(whole, "-129"), "04ff7f");
    EXPECT_EQ(encoded(whole, "-1"), "02ff");
    EXPECT_EQ(encoded(whole, "65536"), "06010000");
    EXPECT_EQ(encoded(whole, "-65536"), "06ff0000");
}

TEST(AvroDecimal, FillsAFixedWithTheSign) {
    constexpr auto schema =
        R"({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 1})";
    EXPECT_EQ(encoded(schema, "1.5"), "0000000f");
    EXPECT_EQ(encoded(schema, R"("-1.5")"), "fffffff1");
    EXPECT_EQ(encoded(schema, "99999999.9"), "3b9ac9ff");
    EXPECT_EQ(encoded(schema, "-99999999.9"), "c4653601");
}

TEST(AvroDecimal, WritesAThousandDigitsWithTheirSize) {
    const auto text = encoded(decimal_schema(1024, 0), "-" + std::string(1024, '9'));
    // 426 bytes: the size is two bytes of a varint.
    EXPECT_EQ(text.size(), 2 * (2 + 426U));
    EXPECT_TRUE(text.starts_with("d406")) << text.substr(0, 10);
    EXPECT_TRUE(text.ends_with("01"));
}

TEST(AvroDecimal, NeverRounds) {
    const auto money = decimal_schema(4, 2);
    EXPECT_EQ(
        fault(money, "1.234"),
        "$: expected decimal(4, 2) (a number, or its digits as a string), found more digits behind the point"
    );
    EXPECT_EQ(
        fault(money, "100"),
        "$: expected decimal(4, 2) (a number, or its digits as a string), found more digits"
    );
    EXPECT_EQ(encoded(money, "99.99"), "04270f");
    EXPECT_THAT(fault(money, "1e999999999"), testing::HasSubstr("found more digits"));
    EXPECT_THAT(fault(money, R"("1e-999999999")"), testing::HasSubstr("behind the point"));
    EXPECT_THAT(fault(money, R"("12,5")"), testing::HasSubstr("found a string of 4 characters that is none"));
    EXPECT_THAT(fault(money, R"("")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(money, R"("1e9999999999")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(money, "true"), testing::HasSubstr("found a boolean"));
}

TEST(AvroDecimal, RefusesASchemaOfMoreDigitsThanItWrites) {
    EXPECT_THAT(
        encoded(decimal_schema(1025, 0), "1"),
        testing::HasSubstr("a decimal of more than 1024 digits is not supported")
    );
}

TEST(AvroDecimal, RefusesAFixedThatWouldBeMostlySign) {
    EXPECT_THAT(
        encoded(
            R"({"type": "fixed", "name": "F", "size": 4000000000, "logicalType": "decimal", "precision": 5})",
            "1"
        ),
        testing::HasSubstr("a decimal in a fixed of more than 1024 bytes is not supported")
    );
}

TEST(AvroDecimal, IsItsBytesWhereLogicalTypesAreAsAvroWritesThem) {
    const avro_options plain_avro{.logical = logical_values::avro};
    EXPECT_EQ(encoded(decimal_schema(10, 2), R"("\u0004\u00d2")", plain_avro), "0404d2");
    EXPECT_EQ(fault(decimal_schema(10, 2), "12.34", plain_avro).substr(0, 26), "$: expected decimal(10, 2)");
    EXPECT_EQ(encoded(on("int", "date"), "5", plain_avro), "0a");
    EXPECT_THAT(
        fault(on("int", "date"), R"("1970-01-06")", plain_avro), testing::HasSubstr("found a string")
    );
    EXPECT_EQ(encoded(on("string", "uuid"), R"("x")", plain_avro), "0278");
}

TEST(AvroDate, TakesIsoTextAndDays) {
    const auto date = on("int", "date");
    EXPECT_EQ(encoded(date, R"("1970-01-01")"), "00");
    EXPECT_EQ(encoded(date, R"("2026-11-30")"), encoded(R"("int")", "20787"));
    EXPECT_EQ(encoded(date, R"("1969-12-31")"), "01");
    EXPECT_EQ(encoded(date, R"("2024-02-29")"), encoded(R"("int")", "19782"));
    EXPECT_EQ(encoded(date, "20787"), encoded(R"("int")", "20787"));
    for (const auto* text :
         {R"("2026-02-29")", R"("2026-13-01")", R"("2026-1-01")", R"("2026-01-01T00:00:00Z")", R"("")"}) {
        EXPECT_THAT(
            fault(date, text),
            testing::HasSubstr("expected date (\"2026-11-30\", or days as a number), found")
        ) << text;
    }
}

TEST(AvroTime, TakesIsoTextNoFinerThanTheType) {
    const auto millis = on("int", "time-millis");
    const auto micros = on("long", "time-micros");
    EXPECT_EQ(encoded(millis, R"("00:00:01")"), encoded(R"("int")", "1000"));
    EXPECT_EQ(encoded(millis, R"("23:59:59.999")"), encoded(R"("int")", "86399999"));
    EXPECT_EQ(encoded(millis, R"("10:15")"), encoded(R"("int")", "36900000"));
    EXPECT_EQ(encoded(millis, R"("00:00:00.250000")"), encoded(R"("int")", "250"));
    EXPECT_EQ(encoded(micros, R"("00:00:00.000001")"), "02");
    EXPECT_EQ(encoded(micros, R"("00:00:00.5")"), encoded(R"("long")", "500000"));
    EXPECT_THAT(fault(millis, R"("00:00:00.0001")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(millis, R"("24:00:00")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(millis, R"("10:60")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(millis, R"("10:15:30.")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(millis, "86400000"), testing::HasSubstr("out of its range"));
    EXPECT_THAT(fault(micros, "-1"), testing::HasSubstr("out of its range"));
    EXPECT_EQ(encoded(micros, "86399999999"), encoded(R"("long")", "86399999999"));
}

TEST(AvroTimestamp, NeedsAZoneAndALocalOneMustHaveNone) {
    const auto millis = on("long", "timestamp-millis");
    const auto micros = on("long", "timestamp-micros");
    const auto local = on("long", "local-timestamp-millis");
    EXPECT_EQ(encoded(millis, R"("1970-01-01T00:00:01.5Z")"), encoded(R"("long")", "1500"));
    EXPECT_EQ(encoded(millis, R"("1970-01-01T01:00:00+01:00")"), "00");
    EXPECT_EQ(encoded(millis, R"("1969-12-31 19:00:00-05")"), "00");
    EXPECT_EQ(
        encoded(micros, R"("2026-11-30T10:15:30.123456+00:00")"), encoded(R"("long")", "1796033730123456")
    );
    EXPECT_EQ(encoded(micros, R"("1969-12-31T23:59:59.999999Z")"), "01");
    EXPECT_EQ(encoded(local, R"("1970-01-01T00:00:01")"), encoded(R"("long")", "1000"));
    EXPECT_EQ(encoded(on("long", "local-timestamp-micros"), R"("1970-01-01 00:00:00.000002")"), "04");
    EXPECT_EQ(encoded(millis, "-5"), "09");
    EXPECT_EQ(
        fault(millis, R"("2026-11-30T10:15:30")"),
        "$: expected timestamp-millis (\"2026-11-30T10:15:30.123Z\" with its zone, or milliseconds as a "
        "number), "
        "found a string of 19 characters that is none"
    );
    EXPECT_THAT(fault(local, R"("2026-11-30T10:15:30Z")"), testing::HasSubstr("without a zone"));
    EXPECT_THAT(fault(millis, R"("2026-11-30")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(millis, R"("2026-11-30T10:15:30.1234Z")"), testing::HasSubstr("that is none"));
    EXPECT_THAT(fault(millis, R"("2026-11-30T10:15:30+24:00")"), testing::HasSubstr("that is none"));
}

TEST(AvroUuid, ChecksTheShape) {
    const auto uuid = on("string", "uuid");
    EXPECT_EQ(
        encoded(uuid, R"("0185Ab57-1234-7abc-8def-0123456789aF")"),
        encoded(R"("string")", R"("0185Ab57-1234-7abc-8def-0123456789aF")")
    );
    EXPECT_THAT(fault(uuid, R"("0185ab57-1234-7abc-8def-0123456789a")"), testing::HasSubstr("expected uuid"));
    EXPECT_THAT(
        fault(uuid, R"("0185ab57_1234-7abc-8def-0123456789af")"), testing::HasSubstr("expected uuid")
    );
    EXPECT_THAT(
        fault(uuid, R"("g185ab57-1234-7abc-8def-0123456789af")"), testing::HasSubstr("expected uuid")
    );
}

TEST(AvroDuration, TakesItsPartsOrItsBytes) {
    constexpr auto duration = R"({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"})";
    EXPECT_EQ(
        encoded(duration, R"({"months": 1, "days": 2, "millis": 4294967295})"), "0100000002000000ffffffff"
    );
    EXPECT_EQ(encoded(duration, R"({"days": 258})"), "000000000201000000000000");
    EXPECT_EQ(
        encoded(duration, R"("\u0001\u0000\u0000\u0000\u0002\u0000\u0000\u0000\u0003\u0000\u0000\u0000")"),
        "010000000200000003000000"
    );
    EXPECT_THAT(
        fault(duration, R"({"hours": 1})"), testing::HasSubstr("a field that duration does not have")
    );
    EXPECT_THAT(fault(duration, R"({"days": -1})"), testing::HasSubstr("out of its range"));
    EXPECT_THAT(fault(duration, R"({"days": 1, "days": 1})"), testing::HasSubstr("stands twice"));
    EXPECT_THAT(fault(duration, R"({"days": "1"})"), testing::HasSubstr("found a string"));
}

}  // namespace
}  // namespace millrace::schema
