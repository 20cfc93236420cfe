#include "worker_pool.hpp"

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(WorkerPool, TheLoopOfAConsumerOfThousandsOfShardsDoesNotWaitForSlowHandlers) {
    std::latch go(1);
    std::atomic<int> ran{0};
    std::latch all(10'000);
    worker_pool pool(1);
    for (int i = 0; i < 10'000; ++i) {
        pool.run([&] {
            go.wait();
            ++ran;
            all.count_down();
        });
    }
    EXPECT_EQ(ran, 0) << "all are queued before the first has ended";
    go.count_down();
    all.wait();
}

TEST(WorkerPool, RunsEveryJobOnceWithManyFeedersAndAQueueOfTwo) {
    std::atomic<int> ran{0};
    std::latch all(400);
    worker_pool pool(3, 2);
    {
        std::vector<std::jthread> feeders;
        for (int f = 0; f < 4; ++f) {
            feeders.emplace_back([&] {
                for (int i = 0; i < 100; ++i) {
                    pool.run([&] {
                        ++ran;
                        all.count_down();
                    });
                }
            });
        }
    }
    all.wait();
    EXPECT_EQ(ran, 400);
}

TEST(WorkerPool, ShutDownWaitsForWhatRunsAndDropsWhatHasNotBegun) {
    std::latch begun(1);
    std::latch release(1);
    std::atomic<bool> ended{false};
    std::atomic<bool> late{false};
    const auto token = std::make_shared<int>(0);
    worker_pool pool(1, 10);
    pool.run([&] {
        begun.count_down();
        release.wait();
        ended = true;
    });
    begun.wait();
    pool.run([&, token] { late = true; });
    std::jthread closer([&] { pool.shut_down(); });
    while (token.use_count() > 1)
        std::this_thread::yield();  // the queue was emptied
    EXPECT_FALSE(ended);
    release.count_down();
    closer.join();
    EXPECT_TRUE(ended);
    EXPECT_FALSE(late);
    pool.run([&] { late = true; });
    EXPECT_FALSE(late);
}

TEST(WorkerPool, ShutDownFreesAFeederThatWaitsForRoom) {
    std::latch begun(1);
    std::latch release(1);
    auto pool = std::make_unique<worker_pool>(1, 1);
    pool->run([&] {
        begun.count_down();
        release.wait();
    });
    begun.wait();
    pool->run([] {});
    std::jthread feeder([&] { pool->run([] {}); });
    std::jthread closer([&] { pool->shut_down(); });
    feeder.join();
    release.count_down();
    closer.join();
}

}  // namespace
}  // namespace millrace
