/// Decides when a consumer has nothing left to do for so long that it may end. Pure.
#pragma once

#include "group_driver.hpp"

#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace {

/// Whether any shard still waits for this worker or has nobody who works on it: free, waiting for its
/// parents, or held by a worker that is gone. Shards of the others that live are theirs. `damaged`: some
/// shard will never be finished, so none is waited for that waits for its parents.
[[nodiscard]] bool work_is_open(const std::vector<shard_view>& shards, bool damaged = false);

class idle_watch {
public:
    explicit idle_watch(nanoseconds limit) : limit_(limit) {}

    /// One look. `quiet`: this worker may be here for certain, all that it holds is at the tip and no work is
    /// open; `progress` moves with every record that is read, so that what came and went between two looks
    /// counts as well.
    [[nodiscard]] bool over(mono_time now, bool quiet, std::uint64_t progress);

    [[nodiscard]] nanoseconds limit() const { return limit_; }

private:
    nanoseconds limit_;
    std::uint64_t progress_{0};
    std::optional<mono_time> since_;
};

}  // namespace millrace
