/// A host on real threads for tests: callbacks run on whichever thread turns the loop.
#pragma once

#include "contract/await.hpp"
#include "port/host.hpp"

#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace millrace::test {

/// `post` may be called from any thread, all else belongs to the thread that turns the loop.
class loop_host final : public host {
public:
    [[nodiscard]] mono_time now() const override {
        return mono_time{std::chrono::steady_clock::now().time_since_epoch()};
    }
    [[nodiscard]] wall_time wall() const override {
        return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
    }
    [[nodiscard]] std::uint64_t random() override { return ++random_ * 0x9e3779b97f4a7c15ULL; }

    timer call_at(mono_time when, std::function<void()> what) override {
        const std::lock_guard lock(mutex_);
        const auto ticket = ++last_;
        queue_.emplace(std::pair(when, ticket), std::move(what));
        return ticket;
    }
    void cancel(timer which) override {
        const std::lock_guard lock(mutex_);
        std::erase_if(queue_, [&](const auto& entry) { return entry.first.second == which; });
    }
    void post(std::function<void()> what) override {
        {
            const std::lock_guard lock(mutex_);
            queue_.emplace(std::pair(mono_time{}, ++last_), std::move(what));
        }
        wake_.notify_one();
    }
    [[nodiscard]] log_sink& log() override { return null_log(); }

    /// Turns the loop until `condition` holds or `limit` has passed; says whether it holds.
    bool run_until(const std::function<bool()>& condition, milliseconds limit = milliseconds{10'000}) {
        const auto end = now() + limit;
        while (!condition()) {
            std::unique_lock lock(mutex_);
            const auto due = queue_.empty() ? end : std::min(end, queue_.begin()->first.first);
            if (due > now()) {
                wake_.wait_for(lock, due - now(), [&] {
                    return !queue_.empty() && queue_.begin()->first.first <= now();
                });
            }
            if (!queue_.empty() && queue_.begin()->first.first <= now()) {
                auto entry = queue_.extract(queue_.begin());
                lock.unlock();
                entry.mapped()();
            } else if (now() >= end) {
                lock.unlock();
                return condition();
            }
        }
        return true;
    }

    /// Turns the loop for a while.
    void run_for(milliseconds span) {
        run_until([] { return false; }, span);
    }

    /// Makes a request and turns the loop until it completes.
    template <class T>
    result<T> await(const std::function<void(completion<T>)>& request) {
        return await_once<T>(request, [this](const auto& done) { return run_until(done); });
    }

private:
    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::pair<mono_time, timer>, std::function<void()>> queue_;
    timer last_{0};
    std::uint64_t random_{0};
};

}  // namespace millrace::test
