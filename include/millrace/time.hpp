/// The two clocks of the system, as types that cannot be mixed.
///
/// No code below `runtime` reads a clock: time is an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace millrace {

using std::chrono::milliseconds;
using nanoseconds = std::chrono::nanoseconds;

/// Counts also while the machine sleeps (CLOCK_BOOTTIME), so a suspended owner notices that its lease is
/// over. It has no `now()` on purpose.
struct boot_clock {
    using rep = std::int64_t;
    using period = std::nano;
    using duration = nanoseconds;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;
};

/// For deadlines, leases and back-off. Never compared across machines.
using mono_time = boot_clock::time_point;

/// For people and for the arrival time of records; never for decisions about leases.
using wall_time = std::chrono::sys_time<milliseconds>;

}  // namespace millrace
