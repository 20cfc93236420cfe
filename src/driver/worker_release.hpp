/// Ends the sessions of one worker on a lease store, so that its shards go to the others at once.
///
/// Only the sessions that are there at first are ended: a worker that runs on registers anew. Lives on one
/// host; may be repeated after any failure.
#pragma once

#include "patience.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace millrace {

struct worker_release_report {
    std::size_t sessions{0};       ///< Ended.
    std::vector<shard_id> shards;  ///< That they held, and that are not finished.
};

class worker_release {
public:
    /// All references must outlive the object.
    worker_release(
        host& loop, lease_store& store, worker_id worker, nanoseconds wait = patience::wait_default
    );
    ~worker_release();

    /// Once. Errors: `not_found` when no session bears the id (the detail names those that live), or that of
    /// the store.
    void start(completion<worker_release_report> done);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
