#include "shard/read_pace.hpp"

#include <algorithm>
#include <chrono>

namespace millrace {

namespace {

// A read may travel faster than the one before it, and so arrive sooner behind it than it was sent.
constexpr double slack = 1.02;

// Without gaps of changing length between large replies, another reader would never get one in.
constexpr double gap = 0.08;

constexpr double kept_after_refusal = 0.7;
constexpr double least_share = 0.125;
constexpr double grown_in_a_second = 0.02;  // of the share

double cost(std::uint64_t per_second) {
    return per_second == 0 ? 0 : 1e9 / static_cast<double>(per_second);
}

/// At most an hour, so that absurd settings do not overflow.
nanoseconds whole(double span) {
    return nanoseconds{static_cast<std::int64_t>(std::min(span, 3.6e12))};
}

/// From 0 to 1.
double draw(std::uint64_t random) {
    return static_cast<double>(random % 1'000) / 999;
}

}  // namespace

read_pace::read_pace(std::uint64_t reads_per_second, std::uint64_t bytes_per_second)
    : read_cost_(cost(reads_per_second)), byte_cost_(cost(bytes_per_second)) {}

double read_pace::share(mono_time now) const {
    const auto since = std::chrono::duration<double>(now - refused_at_).count();
    return std::min(1.0, share_ * (1 + since * grown_in_a_second));
}

void read_pace::read(mono_time sent, std::size_t bytes, std::uint64_t random) {
    const auto part = share(sent);
    const auto of_bytes = static_cast<double>(bytes) * byte_cost_;
    token_at_ = sent + whole(read_cost_ * slack / part);
    paid_at_ = std::max(paid_at_, sent) + whole(of_bytes * (slack + gap * draw(random)) / part);
    if (bytes != 0) usual_cost_ = of_bytes;
}

void read_pace::throttled(mono_time now, std::uint64_t random) {
    if (read_cost_ == 0 && byte_cost_ == 0) return;
    share_ = std::max(least_share, share(now) * kept_after_refusal);
    refused_at_ = now;
    // What another reader got is probably as large as what we get, and partly paid for.
    paid_at_ = std::max(paid_at_, now + whole(usual_cost_ * draw(random)));
}

mono_time read_pace::next() const {
    return std::max(token_at_, paid_at_);
}

}  // namespace millrace
