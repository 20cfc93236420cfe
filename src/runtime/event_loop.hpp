/// The host of production: a Boost.Asio loop with timers on CLOCK_BOOTTIME.
///
/// Everything but `post`, `stop`, `now` and `wall` belongs to the thread that calls `run` (or, before it
/// runs, to the thread that made it). What was posted or set and has not been called by then is dropped
/// unexecuted when the loop is destroyed.
#pragma once

#include "port/host.hpp"

#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace millrace {

class event_loop final : public host {
public:
    /// `log` must outlive the loop and be callable from its thread.
    explicit event_loop(log_sink& log = null_log());
    ~event_loop() override;
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    [[nodiscard]] mono_time now() const override;
    [[nodiscard]] wall_time wall() const override;
    [[nodiscard]] std::uint64_t random() override;

    /// Setting and cancelling a timer is cheap: a system call only when it becomes the earliest.
    timer call_at(mono_time when, std::function<void()> what) override;
    void cancel(timer which) override;

    /// Calls `what` once with the first timer that comes due from `first` on, else at `last`: for what wants
    /// no exact moment, and so need not wake the loop by itself.
    timer call_between(mono_time first, mono_time last, std::function<void()> what);
    void post(std::function<void()> what) override;
    [[nodiscard]] log_sink& log() override;

    /// Turns until `stop`. May be called again afterwards; what is pending then goes on.
    void run();

    /// Makes `run` return after the present callback, also when it is only called later. Thread-safe.
    void stop();

    /// Calls `what` on the loop for the first SIGTERM or SIGINT, in place of the default of ending the
    /// process. A second one has its default again, so that nobody has to wait for what does not end.
    void on_signals(std::function<void(int signal)> what);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// The clock of leases, for code that has no host at hand.
[[nodiscard]] mono_time boot_now() noexcept;

/// A write to a closed pipe or socket becomes an error in place of the end of the process. Process-wide.
void ignore_broken_pipes() noexcept;

}  // namespace millrace
