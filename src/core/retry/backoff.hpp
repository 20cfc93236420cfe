/// How long to wait before the next attempt: exponential with a cap and full jitter.
///
/// Pure: the caller passes the randomness in and keeps the time. No thread safety.
#pragma once

#include <millrace/time.hpp>

#include <algorithm>
#include <cstdint>

namespace millrace {

class backoff {
public:
    /// `max` must not be below `min`; both above zero.
    backoff(nanoseconds min, nanoseconds max) : min_(min), max_(max) {}

    /// The wait after one more failure: uniform in (0, ceiling]; the ceiling doubles from `min` to `max`.
    [[nodiscard]] nanoseconds next(std::uint64_t random) {
        const auto ceiling = failures_ < 62 && min_ <= max_ / (std::int64_t{1} << failures_)
                                 ? min_ * (std::int64_t{1} << failures_)
                                 : max_;
        failures_ = std::max(failures_, failures_ + 1);  // stays at the largest value
        return nanoseconds{
            1 + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(ceiling.count()))};
    }

    void reset() noexcept { failures_ = 0; }
    [[nodiscard]] std::uint32_t failures() const noexcept { return failures_; }

private:
    nanoseconds min_;
    nanoseconds max_;
    std::uint32_t failures_{0};
};

}  // namespace millrace
