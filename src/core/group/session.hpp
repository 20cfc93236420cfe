/// The session of one worker as a state machine.
#pragma once

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <chrono>

namespace millrace {

struct session_options {
    millrace::worker_id worker;
    nanoseconds lease{std::chrono::seconds{10}};

    /// The owner stops this long before the lease is over; zero means a fifth of it.
    nanoseconds margin{0};

    /// Between two heartbeats; zero means a fifth of the lease.
    nanoseconds heartbeat{0};
};

}  // namespace millrace
