/// The tables of an outbox in SQLite: layout, version, and whether a table is one at all.
///
/// docs/outbox-schema.md describes them for people.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <string_view>

struct sqlite3;

namespace millrace::outbox_schema {

/// The newest layout that this program reads and writes.
inline constexpr std::int64_t version_known = 2;

/// Milliseconds since 1970 by the clock of the writing process, as an SQL expression.
#define MILLRACE_SQL_NOW "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"

/// Not in the first programs of version 1, so those that need it make it.
#define MILLRACE_SQL_CREATE_PAUSED                                                                      \
    "CREATE TABLE IF NOT EXISTS outbox_paused (topic TEXT PRIMARY KEY NOT NULL, paused_at INTEGER NOT " \
    "NULL) WITHOUT ROWID;\n"

/// The whole layout, as people may run it themselves.
[[nodiscard]] std::string_view script();

/// Makes what is missing, also at once from several processes. `file` is how messages name the database.
result<void> create(sqlite3* db, std::string_view file);

/// `not_found` when there is no outbox, `wrong_version` when it is newer than this program, `invalid_config`
/// when a table `outbox` of another shape is there.
result<void> check(sqlite3* db, std::string_view file);

/// Brings tables of an older layout to the one that is known. For one that `check` has found usable.
result<void> upgrade(sqlite3* db, std::string_view file);

}  // namespace millrace::outbox_schema
