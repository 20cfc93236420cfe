/// The SQL behind `sqlite_lease_store`: layout, and rows to and from columns. Plain functions on one
/// connection.
#pragma once

#include "database.hpp"
#include "port/group_key.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::lease_tables {

/// Makes the tables when they are missing, at once from several processes or not. `wrong_version` when a
/// newer program has made them.
result<void> ensure(sqlite::database& db);

/// Makes nothing: `not_found` when the tables are missing.
result<void> check(sqlite::database& db);

/// The groups of a stream that have any row.
result<std::vector<std::string>> list_groups(sqlite::database& db, std::string_view stream);

result<std::vector<worker_row>> list_workers(sqlite::database& db, const group_key& group);
result<std::vector<shard_row>> list_shards(sqlite::database& db, const group_key& group);
result<std::optional<lease_row>> read(sqlite::database& db, const group_key& group, const lease_key& key);
result<void> write(
    sqlite::database& db, const group_key& group, const lease_row& row, std::optional<version> expected
);
result<void> remove(sqlite::database& db, const group_key& group, const lease_key& key, version expected);

}  // namespace millrace::lease_tables
