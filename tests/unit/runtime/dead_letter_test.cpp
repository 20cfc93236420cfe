#include "dead_letters.hpp"

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

}  // namespace
}  // namespace millrace
