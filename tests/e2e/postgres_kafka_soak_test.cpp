// A short run of `./dev soak`: that it measures and ends well. The long one is for a machine of its own.

#include "support/process.hpp"

#include <chrono>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

TEST(PostgresKafkaSoak, AShortRunEndsWithNothingLostOrInverted) {
    const auto done =
        support::run({MILLRACE_SOAK, "0.5", "--rate", "1000"}, std::string{}, std::chrono::minutes{6});
    std::printf("%s", done.output.c_str());
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_THAT(done.output, testing::HasSubstr(" 0 lost, 0 inverted, 0 unknown"));
}

}  // namespace
}  // namespace millrace::e2e
