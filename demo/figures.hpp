/// Times, as the summaries of the demonstrations print them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace millrace::demo {

[[nodiscard]] std::string percentiles(std::vector<std::chrono::milliseconds> times);
[[nodiscard]] double seconds(std::chrono::microseconds time);

}  // namespace millrace::demo
