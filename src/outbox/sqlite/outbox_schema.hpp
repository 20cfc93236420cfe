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
inline constexpr std::int64_t version_known = 1;

/// Milliseconds since 1970 by the clock of the writing process, as an SQL expression.
#define MILLRACE_SQL_NOW "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"

/// Makes what is missing, also at once from several processes. `file` is how messages name the database.
result<void> create(sqlite3* db, std::string_view file);

/// `not_found` when there is no outbox, `wrong_version` when it is newer than this program, `invalid_config`
/// when a table `outbox` of another shape is there.
result<void> check(sqlite3* db, std::string_view file);

}  // namespace millrace::outbox_schema
