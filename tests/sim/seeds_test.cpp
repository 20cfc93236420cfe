#include "world.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

constexpr std::uint64_t seeds_of_a_chunk = 250;

// Every promise of the design, in two thousand worlds.
class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, KeepEveryPromise) {
    const auto first = GetParam() * seeds_of_a_chunk + 1;
    for (auto seed = first; seed < first + seeds_of_a_chunk; ++seed) {
        const auto report = run_seed(seed, false);
        for (const auto& failure : report.failures)
            ADD_FAILURE() << "seed " << seed << ": " << failure
                          << "\nreplay with: ./dev sim --seeds 1 --from " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Chunks, Seeds, testing::Range<std::uint64_t>(0, 8));

TEST(Replay, TheSameSeedGivesTheSameTrace) {
    EXPECT_EQ(run_seed(5, true).lines, run_seed(5, true).lines);
}

}  // namespace
}  // namespace millrace::sim
