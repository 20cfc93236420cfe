#include "relay/options.hpp"

#include "retry/backoff.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string complaint(const relay_options& options) {
    const auto valid = options.validate();
    return valid ? "" : valid.error().detail;
}

TEST(RelayOptions, AcceptsTheDefaults) {
    EXPECT_EQ(complaint({}), "");
}

TEST(RelayOptions, NamesTheFieldAndBothValues) {
    EXPECT_EQ(complaint({.fetch_rows = 0}), "relay option fetch_rows is 0; it must be at least 1");
    EXPECT_EQ(
        complaint({.retry_min = 2s, .retry_max = 1s}), "relay option retry_max (1 s) is below retry_min (2 s)"
    );
    EXPECT_EQ(
        complaint({.fetch_rows = 100, .window_rows = 99}),
        "relay option window_rows (99) is below fetch_rows (100)"
    );
    EXPECT_EQ(
        complaint({.sweep_share = 1.5}), "relay option sweep_share is 1.5; it must be above 0 and at most 1"
    );
    EXPECT_EQ(
        complaint({.sweep_every = nanoseconds::max()}),
        "relay option sweep_every is 9223372036.854776 s; it must be at most 365 days"
    );
    EXPECT_EQ(complaint({.poll_min = 0ms}), "relay option poll_min is 0 s; it must be above 0");
}

TEST(Backoff, DoublesUpToTheCapAndStartsAgainAfterASuccess) {
    backoff wait(100ms, 350ms);
    const auto longest = [&wait](nanoseconds ceiling) {
        return wait.next(static_cast<std::uint64_t>(ceiling.count() - 1)) == ceiling;
    };
    EXPECT_TRUE(longest(100ms));
    EXPECT_TRUE(longest(200ms));
    EXPECT_TRUE(longest(350ms));
    EXPECT_TRUE(longest(350ms));
    EXPECT_EQ(wait.next(0), 1ns);
    wait.reset();
    EXPECT_TRUE(longest(100ms));
}

TEST(Backoff, StaysAtTheCapForEver) {
    backoff wait(1ns, nanoseconds::max());
    for (auto i = 0; i < 200; ++i)
        EXPECT_GE(wait.next(~std::uint64_t{0}), 0ns);
}

}  // namespace
}  // namespace millrace
