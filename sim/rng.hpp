/// The one source of randomness of a simulated run: same seed, same run, on every platform.
#pragma once

#include <cstdint>

namespace millrace::sim {

/// SplitMix64: small, fast, and fully specified (unlike the distributions of the standard library).
class rng {
public:
    explicit rng(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next();

    /// Uniform in [0, bound); `bound` is above zero.
    std::uint64_t below(std::uint64_t bound);

    /// True with probability `percent` in a hundred.
    bool chance(std::uint32_t percent) { return below(100) < percent; }

private:
    std::uint64_t state_;
};

}  // namespace millrace::sim
