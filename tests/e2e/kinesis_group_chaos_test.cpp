// Promises 1 to 6 on Kinesis with real processes and servers: whatever happens to workers, shards, the store
// and the connections, everything is delivered, in order per key, and no more comes twice than the faults
// allow; checkpoints grow and cover nothing that was not delivered, children follow their parents, and no
// shard has two readers.

#include "kinesis_group_faults.hpp"

#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;

constexpr auto quiet_limit = 60s;  // the longest time without any delivery

struct KinesisGroupChaos : testing::TestWithParam<const char*> {
    void TearDown() override {
        if (!HasFailure()) return;
        std::printf("%s\n", ground.workers.log().c_str());
        std::printf("kinesis-local says: %s\n", ground.kinesis.log().c_str());
    }

    /// Each worker ends well, and leaves rows that say that all is done.
    void expect_a_clean_end() {
        EXPECT_TRUE(support::eventually(20s, [&] { return all_is_written(); })) << "a closed shard is open";
        for (std::size_t i = 0; i < ground.workers.members().size(); ++i)
            EXPECT_EQ(ground.workers.stop(i), 0) << ground.workers.members()[i].name;
        const auto rest = ground.workers.rest();
        EXPECT_EQ(rest.status, 0) << rest.errors;
        EXPECT_EQ(rest.output, "") << "nothing comes again after a clean end";
    }

    /// Closed shards are finished, and the others' checkpoints are their last records.
    [[nodiscard]] bool all_is_written() {
        const auto shards = ground.load.shards();
        return ground.watch.with([&](const auto& check) {
            return std::all_of(shards.begin(), shards.end(), [&](const auto& shard) {
                const auto row = check.rows().find(shard.shard.value());
                if (row == check.rows().end()) return false;
                if (shard.closed) return row->second.finished;
                return row->second.checkpoint == check.last_of(shard.shard.value());
            });
        });
    }

    kinesis_ground ground{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
    Stores,
    KinesisGroupChaos,
    testing::Values(in_dynamodb, in_postgres),
    [](const auto& which) { return which.param; }
);

TEST_P(KinesisGroupChaos, NothingIsLostOrReorderedWhileWorkersShardsStoreAndConnectionsFail) {
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (int i = 1; i <= 4; ++i)
        ground.workers.start("worker-" + std::to_string(i));
    ground.load.start(ground.watch);

    kinesis_faults all{ground, seed};
    while (all.next()) {
        ASSERT_EQ(ground.workers.ended_by_itself(), std::nullopt);
        ASSERT_EQ(ground.load.failure(), "");
        std::this_thread::sleep_for(std::chrono::milliseconds{200 + all.pick(600)});
    }
    ground.load.stop();
    EXPECT_TRUE(ground.watch.drained(quiet_limit));
    ASSERT_EQ(ground.workers.ended_by_itself(), std::nullopt);
    expect_a_clean_end();

    const auto report = ground.watch.with([](const auto& check) { return check.judge(); });
    EXPECT_TRUE(report.faults.empty()) << report.text();
    EXPECT_GT(report.delivered, 5'000U);
    EXPECT_GT(report.samples, 200U);
    std::printf("%s\n%s\n", report.text().c_str(), all.counts().c_str());
}

}  // namespace
}  // namespace millrace::e2e
