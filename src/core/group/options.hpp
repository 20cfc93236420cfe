/// The settings of a group. Durations are positive; `validate` names what is wrong with any of them.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <optional>

namespace millrace {

using namespace std::chrono_literals;

struct group_options {
    /// How a shard without a checkpoint is begun. Only the group's first start decides; a later, different
    /// value is ignored with a warning.
    start_policy start{start_policy::trim_horizon};
    std::optional<wall_time> start_at;  ///< For `at_timestamp`.

    nanoseconds tick{300ms};                    ///< Between two listings of the workers; at most 500 ms.
    nanoseconds shard_list_every{30s};          ///< Shard rows are listed at least so often.
    nanoseconds discover_every{30s};            ///< The stream's shards are listed at least so often.
    nanoseconds checkpoint_every{1s};           ///< The age of an acknowledgement that is not yet written.
    std::uint64_t checkpoint_records{10'000};   ///< So many unwritten acknowledgements are written at once.
    std::uint32_t checkpoints_per_second{200};  ///< Budget of this worker over all its shards.
    nanoseconds drain_limit{10s};
    nanoseconds tidy_after{std::chrono::hours{1}};  ///< Finished rows whose shard is unlisted for so long go.

    /// One process, no session: takes every shard, is refused by live sessions and by a second process.
    bool all_shards{false};

    [[nodiscard]] result<void> validate() const;
};

}  // namespace millrace
