/// Which worker should process which shard: a pure function that every worker evaluates for itself.
///
/// Balanced to within one, with the fewest moves from the present owners; applied to its own result it
/// changes nothing. O(n log n).
#pragma once

#include <millrace/names.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace millrace {

/// A shard that somebody should process: unfinished, ready, listed.
struct assignable_shard {
    shard_id shard;
    incarnation owner;  ///< Empty, or not a live worker: free.
};

/// For each shard, the index of its worker in `workers`. `workers` is in the order of membership and not
/// empty; the order of `shards` does not matter. Of equal claims to a larger share, the larger holder
/// wins, then the first in order.
[[nodiscard]] std::vector<std::size_t> assign_shards(
    std::span<const incarnation> workers, std::span<const assignable_shard> shards
);

}  // namespace millrace
