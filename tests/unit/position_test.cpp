#include <millrace/position.hpp>

#include <compare>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

sequence_number number(std::string_view text) {
    return sequence_number::parse(text).value();
}

TEST(Position, ComparesAsNumbersAndNotAsText) {
    EXPECT_LT(number("9"), number("10"));
    EXPECT_EQ(number("0010"), number("10"));
    EXPECT_LT(number("99999999999999999999"), number("100000000000000000000"));
    EXPECT_LT(number("18446744073709551615"), number("18446744073709551616"));
}

TEST(Position, HoldsTheLargestNumberOfTheKinesisApi) {
    const std::string largest(129, '9');
    EXPECT_EQ(number(largest).to_string(), largest);
    EXPECT_LT(number(std::string(128, '9')), number("1" + std::string(128, '0')));
    EXPECT_FALSE(sequence_number::parse(std::string(130, '1')).has_value());
}

TEST(Position, RefusesWhatIsNotADecimalAndSaysSo) {
    for (const auto* text : {"", " 1", "1 ", "-1", "+1", "0x1", "1.0", "1e3", "SHARD_END"}) {
        const auto parsed = sequence_number::parse(text);
        ASSERT_FALSE(parsed.has_value()) << text;
        EXPECT_EQ(parsed.error().code, errc::invalid_argument);
        EXPECT_NE(parsed.error().detail.find("decimal"), std::string::npos);
    }
}

TEST(Position, SubSequenceDecidesWithinOneSequenceNumber) {
    EXPECT_LT((position{number("5"), 9}), (position{number("6"), 0}));
    EXPECT_LT((position{number("5"), 0}), (position{number("5"), 1}));
}

RC_GTEST_PROP(Position, PrintsWhatItRead, ()) {
    const auto digits = *rc::gen::inRange<std::size_t>(1, 130);
    auto text = *rc::gen::container<std::string>(digits, rc::gen::inRange('0', static_cast<char>('9' + 1)));
    const auto significant = text.find_first_not_of('0');
    const auto expected = significant == std::string::npos ? std::string("0") : text.substr(significant);
    RC_ASSERT(number(text).to_string() == expected);
}

RC_GTEST_PROP(Position, OrdersLikeTextOfEqualLength, ()) {
    const auto digits = *rc::gen::inRange<std::size_t>(1, 130);
    const auto digit = rc::gen::inRange('0', static_cast<char>('9' + 1));
    const auto a = *rc::gen::container<std::string>(digits, digit);
    const auto b = *rc::gen::container<std::string>(digits, digit);
    RC_ASSERT((number(a) <=> number(b)) == (a <=> b));
}

}  // namespace
}  // namespace millrace
