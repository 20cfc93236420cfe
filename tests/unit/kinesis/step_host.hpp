/// A host whose clock and queue a test turns by hand.
#pragma once

#include "port/host.hpp"
#include "unit/remembered_log.hpp"

#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace millrace::test {

class step_host final : public host {
public:
    [[nodiscard]] mono_time now() const override { return now_; }
    [[nodiscard]] wall_time wall() const override { return wall_time{milliseconds{1'700'000'000'000}}; }
    [[nodiscard]] std::uint64_t random() override { return ++random_ * 0x9e3779b97f4a7c15ULL; }
    timer call_at(mono_time when, std::function<void()> what) override {
        timers_.emplace(std::pair(when, ++last_timer_), std::move(what));
        return last_timer_;
    }
    void cancel(timer which) override {
        std::erase_if(timers_, [&](const auto& one) { return one.first.second == which; });
    }
    void post(std::function<void()> what) override { posted_.push_back(std::move(what)); }
    [[nodiscard]] log_sink& log() override { return log_; }

    /// Carries out what was posted, and what that posts.
    void turn() {
        while (!posted_.empty()) {
            auto next = std::move(posted_.front());
            posted_.pop_front();
            next();
        }
    }
    void pass(nanoseconds span) {
        now_ += span;
        while (!timers_.empty() && timers_.begin()->first.first <= now_) {
            auto due = timers_.extract(timers_.begin());
            due.mapped()();
        }
        turn();
    }
    [[nodiscard]] remembered_log& remembered() { return log_; }

private:
    mono_time now_{std::chrono::hours{1}};
    std::uint64_t random_{0};
    std::deque<std::function<void()>> posted_;
    std::map<std::pair<mono_time, timer>, std::function<void()>> timers_;
    timer last_timer_{0};
    remembered_log log_;
};

}  // namespace millrace::test
