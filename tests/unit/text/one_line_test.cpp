#include "text/one_line.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(OneLine, WritesControlCharactersAsEscapesAndLeavesTheRest) {
    EXPECT_EQ(one_line("sqlite:a b/\xC3\xA4.db"), "sqlite:a b/\xC3\xA4.db");
    EXPECT_EQ(one_line("a\nb\rc\td\x1B[31m\x7F"), "a\\nb\\rc\\td\\x1b[31m\\x7f");
}

}  // namespace
}  // namespace millrace
