#include "record/hash_key.hpp"

#include "record/md5.hpp"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

hash_key key(std::string_view decimal) {
    return hash_key::parse(decimal).value();
}

hash_key any_key() {
    return {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
}

TEST(HashKey, IsTheMd5OfTheKeyAsABigEndianNumber) {
    EXPECT_EQ(hash_of("").to_string(), "281949768489412648962353822266799178366");
    EXPECT_EQ(hash_of("a").to_string(), "16955237001963240173058271559858726497");
    EXPECT_NE(hash_of(std::string_view("\0", 1)), hash_of(""));
}

TEST(HashKey, HoldsTheWholeRing) {
    EXPECT_EQ(hash_key{}.to_string(), "0");
    EXPECT_EQ(hash_key::largest().to_string(), "340282366920938463463374607431768211455");
    EXPECT_EQ(key("340282366920938463463374607431768211455"), hash_key::largest());
    EXPECT_EQ(key("18446744073709551616"), (hash_key{1, 0}));
    EXPECT_LT(key("9"), key("10"));
}

TEST(HashKey, RefusesWhatIsNoPointOfTheRingAndSaysWhatIs) {
    for (const auto* text :
         {"",
          "-1",
          "1.0",
          "0x1",
          " 1",
          "340282366920938463463374607431768211456",
          "9999999999999999999999999999999999999999"}) {
        const auto parsed = hash_key::parse(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, errc::invalid_argument);
        EXPECT_NE(parsed.error().detail.find("340282366920938463463374607431768211455"), std::string::npos);
    }
}

RC_GTEST_PROP(HashKey, PrintsWhatItRead, ()) {
    const auto some = any_key();
    RC_ASSERT(key(some.to_string()) == some);
}

TEST(HashRange, SplitsTheRingLikeKinesis) {
    const auto thirds = split_evenly(3);
    ASSERT_EQ(thirds.size(), 3U);
    EXPECT_EQ(thirds[0].to.to_string(), "113427455640312821154458202477256070484");
    EXPECT_EQ(thirds[1].from.to_string(), "113427455640312821154458202477256070485");
    EXPECT_EQ(thirds[1].to.to_string(), "226854911280625642308916404954512140969");
    EXPECT_EQ(thirds[2].to, hash_key::largest());
    EXPECT_EQ(split_evenly(2)[1].from, (hash_key{std::uint64_t{1} << 63U, 0}));
}

RC_GTEST_PROP(HashRange, EvenRangesCoverTheRingWithoutAHole, ()) {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 3000);
    const auto ranges = split_evenly(count);
    RC_ASSERT(ranges.size() == count);
    RC_ASSERT(ranges.front().from == hash_key{});
    RC_ASSERT(ranges.back().to == hash_key::largest());
    for (std::size_t i = 1; i < ranges.size(); ++i)
        RC_ASSERT(join(ranges[i - 1], ranges[i]).has_value());
}

RC_GTEST_PROP(HashRange, HalvesJoinToTheWhole, ()) {
    auto a = any_key();
    auto b = any_key();
    RC_PRE(a != b);
    const hash_range whole{std::min(a, b), std::max(a, b)};
    const auto halves = split_in_middle(whole);
    RC_ASSERT(halves.has_value());
    RC_ASSERT(halves->first.from == whole.from);
    RC_ASSERT(halves->first.to < halves->second.from);
    RC_ASSERT(join(halves->second, halves->first) == whole);
}

TEST(HashRange, SplitsOnlyInside) {
    const hash_range whole{key("10"), key("20")};
    EXPECT_EQ(split_at(whole, key("20"))->second, (hash_range{key("20"), key("20")}));
    EXPECT_EQ(split_at(whole, key("11"))->first, (hash_range{key("10"), key("10")}));
    for (const auto* outside : {"0", "10", "21"})
        EXPECT_EQ(split_at(whole, key(outside)).error().code, errc::invalid_argument) << outside;
    EXPECT_FALSE(split_in_middle({key("7"), key("7")}));
    EXPECT_EQ(split_in_middle({key("7"), key("8")})->second.from, key("8"));
}

TEST(HashRange, JoinsOnlyNeighbours) {
    EXPECT_FALSE(join({key("0"), key("5")}, {key("7"), key("9")}));
    EXPECT_FALSE(join({key("0"), key("5")}, {key("5"), key("9")}));
    EXPECT_FALSE(join({key("5"), hash_key::largest()}, {key("0"), key("3")})) << "the ring does not wrap";
}

}  // namespace
}  // namespace millrace
