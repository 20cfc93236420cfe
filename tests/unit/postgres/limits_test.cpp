#include "connection.hpp"

#include <gtest/gtest.h>

namespace millrace::postgres {
namespace {

TEST(PostgresLimits, OfWhatHoldsLocksAreBelowTheLeaseAndNeverWiderThanUsual) {
    for (const auto lease : {milliseconds{500}, milliseconds{5'000}, milliseconds{60'000}}) {
        const auto made = limits_below(lease);
        EXPECT_LT(made.statement, lease);
        EXPECT_LE(made.lock, lease / 5);
        EXPECT_LT(made.idle_in_transaction, lease);
        EXPECT_LT(made.reply, lease);
        EXPECT_LE(made.statement, limits{}.statement);
        EXPECT_LE(made.lock, limits{}.lock);
        EXPECT_LE(made.reply, limits{}.reply);
    }
    EXPECT_EQ(limits_below(milliseconds{5'000}), limits{});
}

}  // namespace
}  // namespace millrace::postgres
