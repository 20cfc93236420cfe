/// One line on a terminal that shows how long work goes: done, rate, backlog, time left. Nothing where
/// standard error is no terminal.
#pragma once

#include <millrace/time.hpp>

#include <chrono>
#include <cstddef>
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

/// How far long work is; what is not known is left out.
struct progress {
    std::uint64_t done{0};
    std::string_view what;                   ///< `delivered`
    std::optional<std::size_t> shards{};     ///< At work on.
    std::optional<std::uint64_t> backlog{};  ///< Still to be done.
    std::optional<milliseconds> behind{};    ///< Age against the newest; zero at the tip.
};

/// `12,345 delivered  4,100/s  backlog 20,000  4.9s left`, `12,345 records  4,100/s  3 shards  12s behind`.
/// Pure.
[[nodiscard]] std::string progress_text(const progress& now, double rate);

class live_line {
public:
    live_line();
    ~live_line();
    live_line(const live_line&) = delete;
    live_line& operator=(const live_line&) = delete;

    /// Draws at most four times a second. Thread-safe against log lines.
    void show(const progress& work);
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
