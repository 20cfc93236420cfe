/// Which shards may be processed now, which wait for their parents, and which still lack a row.
///
/// A pure function of one *complete* listing of the stream and the rows known to the group. Completion is
/// read from rows only and never inferred from children. A partial listing must not be passed: a shard that
/// is not listed counts as gone, and gone parents hold nobody back.
///
/// Nonsense in the input neither hangs nor crashes; each case is named in `problems`:
/// - a shard listed twice: the first entry counts;
/// - a shard that names itself as parent: that parent is ignored;
/// - a cycle: its shards, and all behind them, wait until a listing without the cycle comes. A wrong listing
///   may be mended, an order that was broken may not;
/// - more than two parents: all of them are waited for.
/// A parent that is neither listed nor has a row is an ordinary case (trimmed long ago) and counts as
/// finished.
#pragma once

#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/names.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace {

enum class shard_stage : std::uint8_t {
    ready,     ///< Listed, not finished, and every parent is finished or no longer listed.
    waiting,   ///< Listed, not finished, and a parent is still to be processed.
    finished,  ///< Its row says so; listed or not.
    gone       ///< It has an unfinished row, but the stream no longer holds it: nothing is left to process.
};

struct shard_standing {
    shard_id shard;
    shard_stage stage{shard_stage::waiting};
    bool listed{false};
    bool has_row{false};
    bool open_again{false};         ///< Finished, but listed as open: the stream is older than the row says.
    std::vector<shard_id> parents;  ///< As listed, without itself and repetitions; of the row if unlisted.
    std::vector<shard_id> waits_for;  ///< The parents that hold it back; only for `waiting`.

    bool operator==(const shard_standing&) const = default;
};

struct lineage {
    /// Every shard once: those listed in the order of the listing, then those known by a row only.
    std::vector<shard_standing> shards;

    /// One sentence for each oddity of the input, for the log.
    std::vector<std::string> problems;
};

/// A listed shard with `has_row == false` is to be given a row with its `parents`, whatever its stage: rows
/// may be created in any order, for a listed parent without a row holds its children back, too. If `rows`
/// holds a shard twice (a listing in pages may), the newer row counts. Linear time.
[[nodiscard]] lineage trace_lineage(std::span<const listed_shard> listed, std::span<const shard_row> rows);

/// What a finished shard that is listed as open means, and what to do.
[[nodiscard]] std::string contradiction_of(const shard_id& open_again);

/// Where to read a shard that has no checkpoint. The same for every shard: one that is born after the pinned
/// moment holds only records that arrived after it, so it is read from its beginning.
[[nodiscard]] start_position start_of(const group_row& group);

}  // namespace millrace
