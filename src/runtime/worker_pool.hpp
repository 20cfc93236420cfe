/// Threads that run handlers, fed through a bounded queue.
///
/// `run` may be called from any thread. When the queue is full it blocks. A consumer has at most one job a
/// shard under way and calls it on its loop, which must never wait: the default is beyond any number of
/// shards.
#pragma once

#include "consumer_driver.hpp"

#include <millrace/time.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace millrace {

class worker_pool final : public handler_pool {
public:
    /// At most four, and no more than the machine has cores.
    [[nodiscard]] static std::size_t default_threads() noexcept;

    explicit worker_pool(std::size_t threads = default_threads(), std::size_t queue_max = 1'000'000);

    /// Drops what has not begun and waits for what has: a handler is never cut off.
    ~worker_pool() override;
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;

    void run(std::function<void()> job) override;

    /// As the destructor; later jobs are dropped.
    void shut_down();

    /// What all jobs that have ended took, from any thread.
    [[nodiscard]] nanoseconds time_used() const noexcept { return nanoseconds{time_used_.load()}; }

private:
    void work(const std::stop_token& stop);

    std::size_t queue_max_;
    std::mutex mutex_;
    std::condition_variable_any filled_;
    std::condition_variable_any drained_;
    std::deque<std::function<void()>> queue_;
    bool closed_{false};
    std::atomic<std::int64_t> time_used_{0};
    std::vector<std::jthread> threads_;
};

}  // namespace millrace
