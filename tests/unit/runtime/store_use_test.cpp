#include "adapters.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(StoreUse, AShortLeaseIsNotSpentOnOneWaitForAFile) {
    EXPECT_EQ(used_under(1s).busy_timeout, 200ms);
    EXPECT_EQ(used_under(500ms).busy_timeout, 100ms);
    EXPECT_EQ(used_under(10s).busy_timeout, 1s);
    EXPECT_EQ(used_under(1s).lease, 1s);
}

}  // namespace
}  // namespace millrace
