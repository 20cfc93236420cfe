/// Takes the shards or resources away from a worker that is stuck, from outside.
#pragma once

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace millrace {

/// Which worker of which group.
struct release_request {
    std::string state;   ///< As in `consumer_settings` and `group_settings`.
    std::string stream;  ///< As in `consumer_settings`; empty for a `group` that shares resources.
    std::string group;
    worker_id worker;
    nanoseconds wait{std::chrono::seconds{5}};  ///< How long the state may fail or be locked.
};

struct released_worker {
    std::size_t sessions{0};          ///< That were ended.
    std::vector<std::string> shards;  ///< Shards or resources that it held: free for the others now.
};

/// Ends the worker's session in the state, so that the others take over at once and not after its lease.
/// What the worker still writes is refused. If it runs, it notices with its next heartbeat (a process that is
/// paused: when it wakes), stops what it does and registers anew: end its process first, or it gets a share
/// again, and until it notices, its handler may act beside the new owner's, fenced by the epoch alone.
/// Blocks. Errors: `not_found` (state, group or worker), `invalid_argument`, or that of the state.
[[nodiscard]] result<released_worker> release_worker(const release_request& which);

}  // namespace millrace
