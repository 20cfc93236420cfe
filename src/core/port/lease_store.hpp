/// Where a group keeps its workers, leases and checkpoints: rows with compare-and-set, nothing else.
///
/// One store object serves one group. The rules of what may be written stand in `group/`; a store only
/// compares versions. Every request completes exactly once. An error with `in_doubt` says that the write may
/// have taken effect or may still do so. A store object belongs to one host; the keeper and the loop each
/// have their own.
#pragma once

#include "port/host.hpp"

#include <millrace/names.hpp>
#include <millrace/options.hpp>
#include <millrace/position.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

/// One a group: what every worker must agree on, written once at the group's first start.
struct group_row {
    static constexpr std::uint32_t format_known = 1;

    std::uint32_t format{format_known};
    millrace::version version;
    millrace::write_id write_id;

    std::string stream_identity;  ///< See `relation_of`: tells another stream, and one made anew.
    start_policy start{start_policy::trim_horizon};

    /// For `latest` and `at_timestamp`: reading starts at the first record that arrived at or after it, by
    /// the stream's clock.
    std::optional<wall_time> start_at;

    /// Epochs of rows that were deleted: a new or re-created shard row starts above it.
    millrace::epoch epoch_floor;

    bool operator==(const group_row&) const = default;
};

/// Says on which machine, and as which process, a worker runs: for people, and for ending the session of a
/// process that is gone at once when seen from the same machine.
struct process_identity {
    std::string host;
    std::string boot_id;        ///< Of the running kernel.
    std::string pid_namespace;  ///< Processes are only comparable within one.
    std::int64_t pid{0};
    std::uint64_t start_time{0};  ///< Of the process, in clock ticks since boot: tells a re-used pid.

    bool operator==(const process_identity&) const = default;
};

/// One a session; written only by the keeper. Its key is the incarnation.
struct worker_row {
    millrace::worker_id worker;
    millrace::incarnation incarnation;
    millrace::version counter;  ///< The row's version: each heartbeat adds one.
    millrace::write_id write_id;
    nanoseconds lease{0};
    std::uint64_t changes{0};  ///< Moves when this worker created, took, released or finished a shard.
    process_identity process;
    wall_time updated_at;  ///< For people.

    /// In a listing alone. Not empty: the row is there, and this says why it cannot be read. `incarnation` is
    /// true of it, or empty where the row's key is foreign, too; what else could not be read is empty or
    /// zero.
    std::string unreadable{};

    bool operator==(const worker_row&) const = default;
};

/// A position up to which everything is acknowledged, with the arrival time of the record that stands there.
struct checkpoint {
    millrace::position position;
    wall_time arrival;

    bool operator==(const checkpoint&) const = default;
};

/// One a shard. Its key is the shard.
struct shard_row {
    shard_id shard;
    std::vector<shard_id> parents;
    incarnation owner;  ///< Empty when free.
    millrace::epoch epoch;
    millrace::version version;
    millrace::write_id write_id;
    std::optional<millrace::checkpoint> checkpoint;
    std::optional<wall_time> finished_at;
    wall_time updated_at;  ///< For people.

    /// In a listing alone. Not empty: the row is there, and this says why it cannot be read. Only `shard` is
    /// true of it, and nobody may write it: one damaged row costs its own shard and no other.
    std::string unreadable{};

    bool operator==(const shard_row&) const = default;
};

/// What a store lists in place of a row that it cannot read.
[[nodiscard]] shard_row unreadable_row(shard_id shard, const error& why);

/// What is to be told of the first row that could not be read; nothing when all could.
[[nodiscard]] std::optional<error> unreadable_in(const std::vector<shard_row>& rows);
[[nodiscard]] std::optional<error> unreadable_in(const std::vector<worker_row>& rows);

/// By this name a listing of shards has what is under the group's key and of no shard.
[[nodiscard]] shard_id foreign_row(std::string_view key);

/// Of two rows of one shard: the epoch decides before the version, for a row that was deleted and created
/// anew counts its versions from elsewhere.
[[nodiscard]] inline bool is_newer(const shard_row& row, const shard_row& than) {
    return std::pair(row.epoch, row.version) > std::pair(than.epoch, than.version);
}

using lease_row = std::variant<group_row, worker_row, shard_row>;

/// Names a row: the group's own, a worker's by incarnation, a shard's.
using lease_key = std::variant<std::monostate, incarnation, shard_id>;

[[nodiscard]] lease_key key_of(const lease_row& row);
[[nodiscard]] version version_of(const lease_row& row);

class lease_store {
public:
    virtual ~lease_store() = default;

    /// Consistent, but not a snapshot: rows may be of slightly different moments within the request.
    /// A row that cannot be read is listed by its name, see `unreadable`; to `read` it is an error.
    virtual void list_workers(completion<std::vector<worker_row>> done) = 0;
    virtual void list_shards(completion<std::vector<shard_row>> done) = 0;

    /// Absent rows are `nullopt`, not an error. Consistent.
    virtual void read(lease_key key, completion<std::optional<lease_row>> done) = 0;

    /// Writes the whole row. Without `expected` the row must not exist; with it, the stored version must
    /// equal it, and the new row's version must be `expected + 1`. `conflict` when the condition does not
    /// hold.
    virtual void write(lease_row row, std::optional<version> expected, completion<void> done) = 0;

    /// Deletes the row if its version is `expected`; `conflict` otherwise, also when it is absent.
    virtual void remove(lease_key key, version expected, completion<void> done) = 0;
};

}  // namespace millrace
