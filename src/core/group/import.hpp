/// What `group import` writes: positions that another system kept, as a pure function of the lines, the
/// stream's listing and the rows of the group.
///
/// Nobody owns a shard meanwhile. Every row that is written gets an epoch above the highest in the group, as
/// with a reset. A checkpoint never goes back unless that is asked for. Here alone completion is inferred: a
/// parent of an imported shard that has neither a line nor a checkpoint counts as finished, since whoever
/// kept these positions began a child behind the end of its parents.
#pragma once

#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/position.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace millrace {

/// One line of an import: at least a position, or `finished`.
struct imported_shard {
    std::size_t line{0};  ///< Counted from 1, for messages; 0: of no file.
    shard_id shard;
    std::optional<position> reached;  ///< All up to here has been processed.
    bool finished{false};             ///< The shard is closed, and all of it has been processed.

    bool operator==(const imported_shard&) const = default;
};

/// What the group and the stream look like.
struct import_ground {
    const stream_listing& stream;
    const std::optional<group_row>& group;
    std::span<const shard_row> rows;
    wall_time now;  ///< For people: the time of what is inferred or finished.
};

struct import_plan {
    struct write {
        shard_row row;
        std::optional<version> expected;  ///< Empty: the row does not exist.
        bool operator==(const write&) const = default;
    };
    std::vector<write> writes;
    std::vector<shard_id> inferred;  ///< Of `writes`: finished because a child was begun.
    std::vector<shard_id> kept;      ///< Stand further than their lines, and stay there.
    std::vector<shard_id> gone;      ///< Finished by their lines, and no longer in the stream.
    std::size_t same{0};             ///< Stand where their lines say.
};

/// `force` lets checkpoints go back. `random` gives the write ids. `invalid_argument` names the line of a
/// shard that the stream does not have, or that has two lines.
[[nodiscard]] result<import_plan> plan_import(
    std::span<const imported_shard> lines,
    const import_ground& ground,
    bool force,
    const std::function<std::uint64_t()>& random
);

}  // namespace millrace
