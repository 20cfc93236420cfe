/// How many checkpoints may be written: so many a second, with a second's worth saved up at most.
#pragma once

#include <millrace/time.hpp>

#include <algorithm>
#include <cstdint>

namespace millrace {

class checkpoint_budget {
public:
    explicit checkpoint_budget(std::uint32_t per_second)
        : cost_(nanoseconds{std::chrono::seconds{1}} / std::max<std::uint32_t>(per_second, 1)) {}

    /// Spends one if there is one.
    bool spend(mono_time now) {
        free_from_ = std::max(free_from_, now - std::chrono::seconds{1});
        if (free_from_ + cost_ > now) return false;
        free_from_ += cost_;
        return true;
    }

private:
    nanoseconds cost_;
    mono_time free_from_{mono_time::min() + std::chrono::hours{1}};
};

}  // namespace millrace
