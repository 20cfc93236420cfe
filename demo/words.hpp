/// What the demonstrations take from their command lines. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace millrace::demo {

/// What the reader gave cannot be used; names the place.
struct input_fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The value of `--orders`.
inline std::uint64_t number_of_orders(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault == std::errc{} && end == text.data() + text.size() && value > 0) return value;
    throw input_fault(fmt::format("--orders: \"{}\" is no number above 0", text));
}

/// Runs a demonstration: status 2 for a fault of the reader's, 1 for any other.
template <class Run>
int run_named(const char* name, Run run) {
    try {
        return run();
    } catch (const input_fault& fault) {
        fmt::print(stderr, "{}\n", fault.what());
        return 2;
    } catch (const std::exception& problem) {
        fmt::print(stderr, "{}: {}\n", name, problem.what());
        return 1;
    }
}

}  // namespace millrace::demo
