// Runs seeds until an oracle says one of the words given: exit 0. Exit 1 when none does within the bound.

#include "world.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

int main(int argc, char** argv) {
    constexpr std::uint64_t seeds_max = 1'000;
    const std::vector<std::string> meant(argv + 1, argv + argc);
    std::uint64_t others = 0;
    for (std::uint64_t seed = 1; seed <= seeds_max; ++seed) {
        for (const auto& failure : millrace::sim::run_seed(seed, false).failures) {
            for (const auto& words : meant) {
                if (failure.find(words) == std::string::npos) continue;
                fmt::print("caught by seed {}: {}\n", seed, failure);
                return 0;
            }
            if (++others <= 20) fmt::print("seed {}, not as meant: {}\n", seed, failure);
        }
    }
    fmt::print("no oracle caught it as meant within {} seeds\n", seeds_max);
    return 1;
}
