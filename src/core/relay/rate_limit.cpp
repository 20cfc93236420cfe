#include "relay/rate_limit.hpp"

#include <algorithm>
#include <limits>

namespace millrace {

namespace {

constexpr nanoseconds second{1'000'000'000};

}  // namespace

rate_limit::rate_limit(std::uint64_t rows_per_second)
    : cost_(rows_per_second == 0 ? nanoseconds{0} : second / static_cast<std::int64_t>(rows_per_second)),
      burst_(std::max(cost_, second / 10)),
      least_(std::max(cost_, second / 100)) {}

mono_time rate_limit::filled_from(mono_time now) const {
    return std::max(empty_at_, now - burst_);
}

std::size_t rate_limit::room(mono_time now) const {
    if (cost_ == nanoseconds::zero()) return std::numeric_limits<std::size_t>::max();
    const auto gathered = now - filled_from(now);
    return gathered < least_ ? 0 : static_cast<std::size_t>(gathered / cost_);
}

void rate_limit::spend(mono_time now, std::size_t rows) {
    empty_at_ = filled_from(now) + cost_ * static_cast<std::int64_t>(rows);
}

mono_time rate_limit::due() const {
    return empty_at_ + least_;
}

}  // namespace millrace
