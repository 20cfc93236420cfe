/// How fast one shard serves: so many calls and so many bytes within any second. Plain value, no clock.
#pragma once

#include <millrace/time.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

namespace millrace::kinesis_fake {

/// Zero lifts a limit.
struct pace_limits {
    std::size_t calls_per_second{0};
    std::uint64_t bytes_per_second{0};
};

class pace {
public:
    /// Whether one more call is served now.
    [[nodiscard]] bool allows(const pace_limits& limits, wall_time now) {
        while (!served_.empty() && served_.front().first + std::chrono::seconds{1} <= now)
            served_.pop_front();
        if (limits.calls_per_second != 0 && served_.size() >= limits.calls_per_second) return false;
        if (limits.bytes_per_second == 0) return true;
        if (now < busy_until_) return false;
        std::uint64_t bytes = 0;
        for (const auto& [when, size] : served_)
            bytes += size;
        return bytes < limits.bytes_per_second;
    }

    /// A call was served. More than a second's worth of bytes keeps the shard busy for as long as they take.
    void serve(const pace_limits& limits, wall_time now, std::uint64_t bytes) {
        if (limits.calls_per_second == 0 && limits.bytes_per_second == 0) return;
        served_.emplace_back(now, bytes);
        if (limits.bytes_per_second == 0 || bytes <= limits.bytes_per_second) return;
        busy_until_ = now + milliseconds{bytes * 1000 / limits.bytes_per_second};
    }

private:
    std::deque<std::pair<wall_time, std::uint64_t>> served_;
    wall_time busy_until_;
};

}  // namespace millrace::kinesis_fake
