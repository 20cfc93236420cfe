#include "dead_letters.hpp"
#include "record/bytes_text.hpp"

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::string_view_literals;

TEST(DeadLetter, KeepsTheRecordAndSaysWhereItCameFromAndWhy) {
    record_batch batch{shard_id("shard-1")};
    const auto headers =
        batch.store({{batch.store("trace"), batch.store("t\0x"sv)}, {"empty", std::nullopt}});
    batch.add({.position = {sequence_number{7}, 2}, .key = batch.store("k"), .headers = headers});
    const error why{errc::handler_failed, {}, false, "no such customer"};

    const auto letter = dead_letter(batch, 0, why, "orders", "orders.dead");

    EXPECT_EQ(letter.topic, "orders.dead");
    EXPECT_EQ(letter.key, "k");
    EXPECT_EQ(letter.value, std::nullopt) << "a tombstone stays one";
    const std::vector<header> expected{
        {"trace", std::string("t\0x", 3)},
        {"empty", std::nullopt},
        {"millrace-stream", "orders"},
        {"millrace-shard", "shard-1"},
        {"millrace-sequence", "7/2"},
        {"millrace-error", "handler_failed: no such customer"}};
    EXPECT_EQ(letter.headers, expected);
}

TEST(DeadLetter, CutsWhatAHandlerSaysAtLengthBetweenTwoCharacters) {
    record_batch batch{shard_id("shard-1")};
    batch.add({.position = {sequence_number{7}, 0}});
    std::string much = "x";
    while (much.size() < 2'000'000)
        much += "\u00e4";
    for (const auto& detail : {much, "x" + much}) {
        const auto letter = dead_letter(batch, 0, {errc::handler_failed, {}, false, detail}, "o", "o");
        const auto said = letter.headers.back().value.value();
        EXPECT_LE(said.size(), dead_letter_error_max);
        EXPECT_GE(said.size(), dead_letter_error_max - 1);
        EXPECT_TRUE(is_utf8(said));
    }
}

}  // namespace
}  // namespace millrace
