/// What a long command says at its end: how much it did, in what time, how fast. Pure.
#pragma once

#include <millrace/time.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace millrace::app {

/// Adds up the time in which a count grew. Waiting for more is no work: neither for a lease, nor at the tip.
class work_time {
public:
    using clock = std::chrono::steady_clock;

    explicit work_time(clock::time_point begin) : last_(begin) {}

    void note(std::uint64_t done, clock::time_point now);

    [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
    [[nodiscard]] nanoseconds spent() const noexcept { return spent_; }

    /// 0 when nothing was done.
    [[nodiscard]] double per_second() const;

private:
    clock::time_point last_;
    std::uint64_t done_{0};
    nanoseconds spent_{0};
};

/// ` in 2.5s, 4938/s`; empty when nothing was done.
[[nodiscard]] std::string pace_text(const work_time& work);

/// `"seconds":2.500,"per_second":4938.0`
[[nodiscard]] std::string pace_json(const work_time& work);

}  // namespace millrace::app
