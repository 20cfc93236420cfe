#include "binary.hpp"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace::postgres {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

std::string time_bytes(wall_time t) {
    std::string out;
    append_time(out, t);
    return out;
}

std::string integer_bytes(std::int64_t value) {
    std::string out;
    append_integer(out, value);
    return out;
}

/// All elements; `nullopt` when any of it is broken.
std::optional<std::vector<std::optional<std::string>>> elements(std::string_view bytes) {
    auto array = array_reader::open(bytes);
    if (!array) return std::nullopt;
    std::vector<std::optional<std::string>> all;
    for (std::size_t i = 0; i < array->size(); ++i) {
        const auto item = array->next();
        if (!item) return std::nullopt;
        all.push_back(item->value ? std::optional(std::string(*item->value)) : std::nullopt);
    }
    return all;
}

TEST(PostgresBinary, ReadsIntegersOfEachWidth) {
    EXPECT_EQ(decode_integer("\xff\xfe"s), -2);
    EXPECT_EQ(decode_integer("\x00\x00\x01\x00"s), 256);
    EXPECT_EQ(decode_integer("\x80\x00\x00\x00\x00\x00\x00\x00"s), std::numeric_limits<std::int64_t>::min());
    for (const auto length : {0U, 1U, 3U, 5U, 7U, 9U, 16U})
        EXPECT_EQ(decode_integer(std::string(length, '\1')), std::nullopt) << length;
}

TEST(PostgresBinary, ReadsBooleansStrictly) {
    EXPECT_EQ(decode_boolean("\1"), true);
    EXPECT_EQ(decode_boolean("\0"s), false);
    EXPECT_EQ(decode_boolean("\2"), std::nullopt);
    EXPECT_EQ(decode_boolean(""), std::nullopt);
}

TEST(PostgresBinary, CountsTimeFromTheYear2000) {
    EXPECT_EQ(time_bytes(wall_time{946'684'800'000ms}), integer_bytes(0));
    EXPECT_EQ(time_bytes(wall_time{946'684'800'001ms}), integer_bytes(1'000));
    EXPECT_EQ(decode_time(integer_bytes(-1)), wall_time{946'684'799'999ms});
    EXPECT_EQ(decode_time(integer_bytes(1'999)), wall_time{946'684'800'001ms});
}

TEST(PostgresBinary, HasNoTimeForInfinity) {
    EXPECT_EQ(decode_time(integer_bytes(std::numeric_limits<std::int64_t>::max())), std::nullopt);
    EXPECT_EQ(decode_time(integer_bytes(std::numeric_limits<std::int64_t>::min())), std::nullopt);
    EXPECT_EQ(decode_time("1234567"), std::nullopt);
}

TEST(PostgresBinary, KeepsTimesThatPostgresqlCannotStoreAtItsEnds) {
    for (const auto t : {wall_time::min(), wall_time::max()}) {
        const auto stored = decode_time(time_bytes(t));
        ASSERT_TRUE(stored);
        EXPECT_EQ(time_bytes(*stored), time_bytes(t));
    }
}

RC_GTEST_PROP(PostgresBinary, GivesBackEveryTimeOfThisAge, ()) {
    const wall_time t{milliseconds{*rc::gen::inRange<std::int64_t>(-2'000'000'000'000, 20'000'000'000'000)}};
    RC_ASSERT(decode_time(time_bytes(t)) == t);
}

RC_GTEST_PROP(PostgresBinary, GivesBackEveryArray, (const std::vector<std::pair<bool, std::string>>& given)) {
    std::vector<std::optional<std::string>> values;
    std::vector<std::optional<std::string_view>> views;
    for (const auto& [null, text] : given)
        values.push_back(null ? std::nullopt : std::optional(text));
    for (const auto& value : values)
        views.push_back(value ? std::optional<std::string_view>(*value) : std::nullopt);
    std::string bytes;
    append_array(bytes, type_id::text, views);
    RC_ASSERT(elements(bytes) == values);
    RC_ASSERT(array_reader::open(bytes)->element() == type_id::text);
    if (!values.empty()) {
        RC_ASSERT(!elements(std::string_view(bytes).substr(0, bytes.size() - 1)));
        RC_ASSERT(!elements(bytes + "x"));
    }
}

TEST(PostgresBinary, RefusesArraysThatAreBroken) {
    const auto header = "\0\0\0\1\0\0\0\0\0\0\0\x19"s;
    const auto one = "\0\0\0\1\0\0\0\1"s;
    EXPECT_TRUE(elements(header + one + "\0\0\0\1x"s));
    EXPECT_FALSE(elements(header + one + "\0\0\0\2x"s)) << "an element is longer than what is there";
    EXPECT_FALSE(elements(header + one + "\xff\xff\xff\xfe"s)) << "a negative length that is not NULL";
    EXPECT_FALSE(elements(header + "\x7f\xff\xff\xff\0\0\0\1"s)) << "a size that nothing stands for";
    EXPECT_FALSE(elements(header + "\xff\xff\xff\xff\0\0\0\1"s)) << "a negative size";
    EXPECT_FALSE(elements("\0\0\0\2\0\0\0\0\0\0\0\x19"s + one + one)) << "two dimensions";
    EXPECT_FALSE(elements("\0\0\0\0\0\0\0\0\0\0\0\x19x"s)) << "bytes behind an empty array";
    EXPECT_FALSE(elements(""));
}

TEST(PostgresBinary, WritesNumbersAsAnArray) {
    std::string bytes;
    const std::vector<std::int64_t> values{1, -1};
    append_array(bytes, values);
    const auto found = elements(bytes);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 2U);
    EXPECT_EQ(decode_integer(*found->at(1)), -1);
}

}  // namespace
}  // namespace millrace::postgres
