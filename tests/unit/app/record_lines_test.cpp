#include "record_lines.hpp"

#include "units.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace millrace::app {
namespace {

std::string line_of(const record& item) {
    record_lines lines("orders", shard_id{"shardId-000000000001"}, "w\"1", epoch{7});
    std::string out;
    lines.append(out, item);
    return out;
}

record at(std::string_view moment) {
    return {
        .position = {sequence_number{12}, 3},
        .key = "k",
        .data = "d",
        .headers = {},
        .arrival = parse_time(moment).value()};
}

TEST(RecordLines, ALineHasTheDocumentedShape) {
    record item = at("2026-01-31T12:00:00.007Z");
    const std::vector<record_header> headers{{"name", "value"}, {"none", std::nullopt}, {"raw", "\xff"}};
    item.headers = headers;
    EXPECT_EQ(
        line_of(item),
        R"({"stream":"orders","shard":"shardId-000000000001","sequence":"12","sub_sequence":3,"key":"k","data":"d",)"
        R"("headers":[["name","value"],["none",null],["raw",{"base64":"/w=="}]],"arrival":"2026-01-31T12:00:00.007Z",)"
        R"("worker":"w\"1","epoch":7})"
        "\n"
    );
}

TEST(RecordLines, ATombstoneHasNullDataAndAMissingKeyIsNull) {
    record item = at("2026-01-31T12:00:00Z");
    item.data = std::nullopt;
    item.key = std::nullopt;
    EXPECT_NE(line_of(item).find(R"("key":null,"data":null,"headers":[])"), std::string::npos);
}

TEST(RecordLines, WhatIsNotTextComesAsBase64) {
    record item = at("2026-01-31T12:00:00Z");
    item.key = std::string_view("\0\xff", 2);
    item.data = "\xed\xa0\x80";
    EXPECT_NE(line_of(item).find(R"("key_base64":"AP8=","data_base64":"7aCA")"), std::string::npos);
}

TEST(RecordLines, LongSequenceNumbersAreWrittenInFull) {
    record item = at("2026-01-31T12:00:00Z");
    const std::string digits = "49590338271490256608559692538361571095921575989136588898";
    item.position.sequence = sequence_number::parse(digits).value();
    EXPECT_NE(line_of(item).find("\"sequence\":\"" + digits + "\""), std::string::npos);
}

TEST(RecordLines, EachLineHasItsOwnTime) {
    record_lines lines("s", shard_id{"a"}, "w", epoch{1});
    std::string out;
    for (const char* moment :
         {"1969-12-31T23:59:59.999Z", "2026-01-31T12:00:00.999Z", "2026-01-31T12:00:01.000Z"}) {
        out.clear();
        lines.append(out, at(moment));
        EXPECT_NE(out.find(std::string("\"arrival\":\"") + moment), std::string::npos) << out;
    }
}

}  // namespace
}  // namespace millrace::app
