/// The figures as one table: measured, its probe, the ratio, and what was asked for.
#pragma once

#include <string>
#include <vector>

namespace millrace::bench {

struct figure {
    std::string what;
    std::string measured;
    std::string probe;  ///< Empty where there is none.
    std::string ratio;
    std::string must;
    std::string aim;
    bool met{true};  ///< Of `must`.
};

[[nodiscard]] std::string as_table(const std::vector<figure>& figures);

/// The middle one; of an even number the lower.
[[nodiscard]] double median(std::vector<double> values);

/// The value below which this share of the values lies.
[[nodiscard]] double percentile(std::vector<double> values, double share);

}  // namespace millrace::bench
