#include "worker_pool.hpp"

#include "assert.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace {

std::size_t worker_pool::default_threads() noexcept {
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
}

worker_pool::worker_pool(std::size_t threads, std::size_t queue_max) : queue_max_(queue_max) {
    MILLRACE_ASSERT(threads > 0 && queue_max > 0);
    threads_.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
}

worker_pool::~worker_pool() {
    shut_down();
}

void worker_pool::run(std::function<void()> job) {
    {
        std::unique_lock lock(mutex_);
        drained_.wait(lock, [this] { return closed_ || queue_.size() < queue_max_; });
        if (closed_) return;
        queue_.push_back(std::move(job));
    }
    filled_.notify_one();
}

void worker_pool::shut_down() {
    std::deque<std::function<void()>> dropped;  // destroyed without the lock: jobs own what they like
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        dropped.swap(queue_);
    }
    dropped.clear();
    drained_.notify_all();
    for (auto& thread : threads_)
        thread.request_stop();
    threads_.clear();
}

void worker_pool::work(const std::stop_token& stop) {
    while (true) {
        std::function<void()> job;
        {
            std::unique_lock lock(mutex_);
            if (!filled_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
            job = std::move(queue_.front());
            queue_.pop_front();
        }
        drained_.notify_one();
        const auto begun = std::chrono::steady_clock::now();
        job();
        time_used_ += nanoseconds{std::chrono::steady_clock::now() - begun}.count();
    }
}

}  // namespace millrace
