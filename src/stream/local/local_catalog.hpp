/// Reads the rows that describe streams and shards, and names what is missing in words.
///
/// Functions run on the caller's connection, within its transaction.
#pragma once

#include "database.hpp"
#include "record/hash_key.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::local {

struct stream_row {
    std::int64_t id{0};
    std::string name;
    std::string identity;
    wall_time created_at;
    std::optional<milliseconds> retention;
    std::uint64_t next_sequence{1};  ///< Larger than that of every record so far.
    std::uint64_t next_shard{0};
    wall_time last_arrival;    ///< The stream's clock never goes behind it.
    std::int64_t topology{0};  ///< Grows with every split and merge.
};

struct shard_entry {
    std::int64_t id{0};  ///< Within the file.
    std::uint64_t number{0};
    std::vector<std::uint64_t> parents;
    hash_range range;
    std::uint64_t first_sequence{1};    ///< No record of the shard is below it.
    std::uint64_t last_sequence{0};     ///< Of the newest record ever appended; 0: none.
    std::uint64_t trimmed_sequence{0};  ///< Of the newest record ever removed; 0: none.
    wall_time last_arrival;
    std::uint64_t records{0};
    std::uint64_t bytes{0};  ///< Of keys, data and headers.
    std::optional<wall_time> closed_at;
};

/// `shardId-000000000007`.
[[nodiscard]] shard_id shard_name(std::uint64_t number);

/// The number in a name that `shard_name` made.
[[nodiscard]] std::optional<std::uint64_t> shard_number(const shard_id& name) noexcept;

[[nodiscard]] result<std::vector<std::string>> stream_names(sqlite::database& db);

/// `not_found` names the nearest stream there is.
[[nodiscard]] result<stream_row> find_stream(sqlite::database& db, std::string_view name);

/// In order of number.
[[nodiscard]] result<std::vector<shard_entry>> find_shards(sqlite::database& db, const stream_row& stream);

/// `not_found` says which shards there are.
[[nodiscard]] result<shard_entry> find_shard(
    sqlite::database& db, const stream_row& stream, const shard_id& shard
);

/// The sequence from which on all records of the shard arrived at or after `moment`; above its newest record
/// when there is none.
[[nodiscard]] result<std::uint64_t> first_sequence_since(
    sqlite::database& db, const shard_entry& shard, wall_time moment
);

[[nodiscard]] inline wall_time to_time(std::int64_t stored) {
    return wall_time{milliseconds{stored}};
}
[[nodiscard]] inline std::int64_t to_stored(wall_time time) {
    return time.time_since_epoch().count();
}

}  // namespace millrace::local
