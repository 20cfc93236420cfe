/// One line on a terminal that shows how long work goes: done, rate, backlog, time left. Nothing where
/// standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::app {

/// The rate of a growing count, smoothed over a few seconds. Pure.
class rate_meter {
public:
    using clock = std::chrono::steady_clock;

    /// Per second, after `done` at `now`; 0 until two samples are half a second apart.
    double sample(std::uint64_t done, clock::time_point now);

private:
    std::optional<clock::time_point> last_;
    std::uint64_t last_done_{0};
    double rate_{0};
    bool known_{false};
};

/// `12,345 delivered  4,100/s  backlog 20,000  4.9s left`. Pure.
[[nodiscard]] std::string progress_text(
    std::uint64_t done, std::string_view word, double rate, std::optional<std::uint64_t> backlog
);

class live_line {
public:
    live_line();
    ~live_line();
    live_line(const live_line&) = delete;
    live_line& operator=(const live_line&) = delete;

    /// Draws at most four times a second. Thread-safe against log lines.
    void show(std::uint64_t done, std::string_view word, std::optional<std::uint64_t> backlog = std::nullopt);
    void clear();

    /// Whether standard error is a terminal, so that there is a line at all.
    [[nodiscard]] bool enabled() const noexcept { return enabled_; }

    /// Takes the line away before a log line is written; the next `show` draws it again.
    static void clear_for_log();

private:
    bool enabled_;
    rate_meter meter_;
    rate_meter::clock::time_point drawn_{};
};

}  // namespace millrace::app
