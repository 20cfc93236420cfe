/// Simulated time: an event heap, and hosts whose clocks drift and which can pause or crash.
#pragma once

#include "port/host.hpp"
#include "rng.hpp"

#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace millrace::sim {

/// True time of the world, since its start.
using world_time = nanoseconds;

/// What a perfect wall clock shows. The world begins at a fixed date, so that traces are readable and replay
/// exactly.
[[nodiscard]] wall_time wall_at(world_time t);

/// Runs callbacks in order of time, then of insertion; nothing else makes progress in a simulated run.
class scheduler {
public:
    using ticket = std::pair<world_time, std::uint64_t>;

    [[nodiscard]] world_time now() const noexcept { return now_; }
    ticket at(world_time when, std::function<void()> what);
    void cancel(const ticket& which) { queue_.erase(which); }

    /// Runs the next callback; false when there is none.
    bool step();

    /// Runs everything up to and including `until`, and moves the clock there.
    void run_until(world_time until);
    void run_for(nanoseconds span) { run_until(now_ + span); }

    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

private:
    world_time now_{0};
    std::uint64_t sequence_{0};
    std::uint64_t steps_{0};
    std::map<ticket, std::function<void()>> queue_;
};

/// How a host's clock differs from true time.
struct clock_error {
    nanoseconds offset{0};              ///< Of the monotonic clock; arbitrary per machine.
    nanoseconds wall_offset{0};         ///< Of the wall clock.
    std::int32_t drift_per_million{0};  ///< Ticks gained by both clocks.
};

/// A host in the world. While paused nothing of it runs; what was due runs at once when it resumes, as after
/// SIGSTOP. Once crashed, it never runs again.
class sim_host final : public host {
public:
    sim_host(scheduler& world, rng& random, clock_error clock = {}, log_sink* log = nullptr);
    ~sim_host() override;

    [[nodiscard]] mono_time now() const override;
    [[nodiscard]] wall_time wall() const override;
    [[nodiscard]] std::uint64_t random() override { return random_.next(); }
    timer call_at(mono_time when, std::function<void()> what) override;
    void cancel(timer which) override;
    void post(std::function<void()> what) override;
    [[nodiscard]] log_sink& log() override { return *log_; }

    /// Somebody sets the wall clock.
    void jump_wall(nanoseconds by) { clock_.wall_offset += by; }

    void pause();
    void resume();
    void crash();
    [[nodiscard]] bool paused() const noexcept { return state_->paused; }
    [[nodiscard]] bool crashed() const noexcept { return state_->crashed; }

private:
    struct shared_state {
        bool paused{false};
        bool crashed{false};
        std::map<std::uint64_t, std::function<void()>> held;  // due while paused, in order
        std::map<timer, scheduler::ticket> timers;
    };

    [[nodiscard]] nanoseconds to_local(world_time t) const;
    [[nodiscard]] world_time to_world(nanoseconds local) const;
    timer enqueue(world_time when, std::function<void()> what);
    void enqueue_as(timer id, world_time when, std::function<void()> what);

    scheduler& world_;
    rng& random_;
    clock_error clock_;
    log_sink* log_;
    timer next_timer_{1};
    std::shared_ptr<shared_state> state_;
};

}  // namespace millrace::sim
