/// Rows of leases as items of a DynamoDB table: keys, attributes, conditions.
///
/// Pure functions. The layout is described in docs/state-stores.md.
#pragma once

#include "dynamodb/requests.hpp"
#include "dynamodb/value.hpp"
#include "port/group_key.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::lease_items {

using aws::dynamodb::item;

inline const aws::dynamodb::key_names table_key{"pk", "sk"};

/// Of workers, in seconds: DynamoDB may delete the item some time later.
inline constexpr const char* expiry = "expires_at";

/// Every heartbeat puts the end of a worker's row off again: long after its session is over for everybody.
inline constexpr std::chrono::hours worker_kept{7 * 24};

/// Partitions: no two groups share one, whatever their names hold.
[[nodiscard]] std::string groups_of(std::string_view stream);
[[nodiscard]] std::string workers_of(const group_key& group);
[[nodiscard]] std::string shards_of(const group_key& group);

/// All items of a partition.
[[nodiscard]] aws::dynamodb::equals all_in(std::string partition);

[[nodiscard]] item key_of(const group_key& group, const lease_key& key);

/// The name of a group from the key of its own row.
[[nodiscard]] std::optional<std::string> group_name_of(const item& group_item);

/// `now` is the service's clock.
[[nodiscard]] aws::dynamodb::update update_of(
    const group_key& group, const lease_row& row, std::optional<version> expected, wall_time now
);
[[nodiscard]] aws::dynamodb::condition has_version(const lease_key& key, version expected);

/// Whether it is the write with this id that the item is from.
[[nodiscard]] bool written_by(const item& from, write_id which);

/// `corrupt` names the attribute that is not as Millrace writes it; `where` is the table, for messages.
[[nodiscard]] result<group_row> read_group(const item& from, std::string_view where);
[[nodiscard]] result<worker_row> read_worker(const item& from, std::string_view where);
[[nodiscard]] result<shard_row> read_shard(const item& from, std::string_view where);

/// For a listing: a row that cannot be read is told of by its name.
[[nodiscard]] result<shard_row> read_listed_shard(const item& from, std::string_view where);
[[nodiscard]] result<worker_row> read_listed_worker(const item& from, std::string_view where);

}  // namespace millrace::lease_items
