#include "figures.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::demo {

using std::chrono::milliseconds;

std::string percentiles(std::vector<milliseconds> times) {
    if (times.empty()) return "none";
    std::ranges::sort(times);
    const auto at = [&](double share) {
        return times[std::min(
                         times.size() - 1, static_cast<std::size_t>(share * static_cast<double>(times.size()))
                     )]
            .count();
    };
    return fmt::format(
        "half within {} ms, 99 in 100 within {} ms, all within {} ms", at(0.5), at(0.99), times.back().count()
    );
}

double seconds(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1e6;
}

}  // namespace millrace::demo
