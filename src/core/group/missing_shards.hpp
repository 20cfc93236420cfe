/// Says when to list a stream again that lacks shards of which the group has unfinished rows.
///
/// An older copy may stand in its place for a moment, and then they are back soon. Where they stay away, the
/// pauses between the listings double until the ordinary ones are as frequent. Thread contract: none; one
/// owner.
#pragma once

#include "shard/lineage.hpp"

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <optional>
#include <set>

namespace millrace {

class missing_shards {
public:
    /// What the rows and the complete listing that was asked for at `listed` say: how long after it to list
    /// again, if before `usual`.
    [[nodiscard]] std::optional<nanoseconds> observe(
        const lineage& traced, mono_time listed, nanoseconds usual
    );

private:
    std::set<shard_id> missing_;
    mono_time listed_{mono_time::min()};
    nanoseconds pause_{0};
};

}  // namespace millrace
