#include "print_handler.hpp"

#include <stop_token>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace millrace::app {
namespace {

TEST(LineOutput, EveryShardIsToldTheSameCauseWhenItIsGone) {
    const int closed = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(closed, 0);
    ::close(closed);
    line_output output(closed);
    for (int shard = 0; shard < 2; ++shard) {
        const auto written = output.write("{}\n", std::stop_token{}, [] { return true; });
        ASSERT_FALSE(written);
        EXPECT_EQ(written.error().code, errc::unavailable);
        EXPECT_THAT(written.error().detail, testing::HasSubstr("cannot be written: Bad file descriptor"));
    }
}

}  // namespace
}  // namespace millrace::app
