/// Runs whole processes and says what they took.
#pragma once

#include "table.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace millrace::bench {

using command = std::vector<std::string>;

struct run_figures {
    double wall{0};  ///< seconds
    double cpu{0};   ///< seconds, user and system
    double memory_mib{0};
};

/// Throws std::runtime_error with what the process said when it fails or lasts longer than ten minutes.
run_figures timed(const command& what);

/// User and system time of a running process so far.
[[nodiscard]] double cpu_seconds(pid_t pid);

/// The ratios of the pairs decide, so that a drift of the machine's speed does not.
struct wanted_ratio {
    double must;
    double aim;
};
[[nodiscard]] figure against(
    const std::string& what,
    const std::vector<double>& measured,
    const std::vector<double>& probe,
    wanted_ratio wanted
);

[[nodiscard]] figure memory(const std::string& what, double mib, double must, double aim);
[[nodiscard]] figure cost(const std::string& what, double cpu, std::uint64_t rows);
[[nodiscard]] figure milliseconds(const std::string& what, double value, double must, double aim);

}  // namespace millrace::bench
