// Handlers that commit their effects and the checkpoint in one transaction, beside the runtime's own writes
// of the row: every effect is there once, and whatever else is promised holds.

#include "world.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

scenario with_committing_handlers(std::uint64_t seed) {
    auto s = draw_scenario(seed);
    s.handler.commits = true;
    s.handler.later = 0;
    s.handler.partial = 0;
    s.handler.poison = 0;
    // What is given up has no effect, so the checkpoint passes it with the next effect only.
    if (s.shard.on_failure == failure_policy::dead_letter) s.shard.on_failure = failure_policy::retry;
    return s;
}

TEST(HandlerCheckpoint, EffectsThatAreCommittedWithItHappenOnce) {
    std::uint64_t effects = 0;
    std::uint64_t repeated = 0;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        const auto report = world(with_committing_handlers(seed), {}, false).run();
        for (const auto& failure : report.failures)
            ADD_FAILURE() << "seed " << seed << ": " << failure;
        effects += report.effects;
        repeated += report.repeated;
    }
    EXPECT_GT(effects, 10'000U);
    EXPECT_GT(repeated, 100U) << "otherwise nothing was tried";
}

}  // namespace
}  // namespace millrace::sim
