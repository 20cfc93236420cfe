/// What `group status` shows, made from one listing of the stream and of the group's rows. Pure.
///
/// Whether a worker is alive is judged by the time of its last heartbeat on this machine's clock, which is
/// good enough for people and for nothing else.
#pragma once

#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::app {

struct worker_line {
    std::string worker;
    std::optional<std::size_t> index;  ///< Among the live ones.
    bool live{false};
    wall_time updated_at;
    std::string host;
    std::int64_t pid{0};
};

struct shard_line {
    std::string shard;
    std::string_view state;  ///< waiting, free, processing, finished, or gone: unfinished, and unlisted
    std::optional<std::string> owner;
    std::uint64_t epoch{0};
    std::optional<millrace::checkpoint> checkpoint;
    std::vector<shard_id> parents;

    /// Since the record at the checkpoint arrived: what follows it has waited no longer. Nothing when there
    /// is no checkpoint, or nothing is left to do.
    std::optional<nanoseconds> lag_max;
};

struct group_view {
    std::vector<worker_line> workers;
    std::vector<shard_line> shards;
    std::vector<std::string> problems;  ///< One sentence each.
};

/// `gone` says whether a process of this machine has ended; `stream_now` is the stream's own clock; without
/// it no lag is told.
[[nodiscard]] group_view view_group(
    const std::vector<listed_shard>& listed,
    const std::vector<worker_row>& workers,
    const std::vector<shard_row>& rows,
    wall_time now,
    std::optional<wall_time> stream_now,
    const std::function<bool(const process_identity&)>& gone
);

[[nodiscard]] std::string to_json(const group_view& view);

/// Shards as the tree of their lineage: children below their parents, indented.
[[nodiscard]] std::string to_table(const group_view& view);

}  // namespace millrace::app
