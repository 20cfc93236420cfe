#include "text/nearest.hpp"

#include <array>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::array<std::string_view, 4> words{"relay", "consume", "outbox", "stream"};

TEST(Nearest, FindsTheWordOfASlip) {
    EXPECT_EQ(nearest("realy", words), "relay");
    EXPECT_EQ(nearest("consum", words), "consume");
    EXPECT_EQ(nearest("outbxo", words), "outbox");
    EXPECT_EQ(nearest("str", words), "stream");
}

TEST(Nearest, OffersNothingForAWordThatIsFarFromAll) {
    EXPECT_EQ(nearest("xyzzy", words), "");
    EXPECT_EQ(nearest("", words), "");
    const std::vector<std::string_view> policies{"park-row", "park-key", "stop"};
    EXPECT_EQ(nearest("drop", policies), "");
    EXPECT_EQ(nearest("stpo", policies), "stop");
    EXPECT_EQ(nearest(std::string(5000, 'a'), words), "");
    EXPECT_EQ(did_you_mean("xyzzy", words), "");
    EXPECT_EQ(did_you_mean("realy", words), "; did you mean \"relay\"?");
}

TEST(Nearest, ASwapOfNeighboursIsOneEdit) {
    EXPECT_EQ(edit_distance("ab", "ba"), 1U);
}

}  // namespace
}  // namespace millrace
