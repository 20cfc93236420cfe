/// The tables of the local stream; docs/local-stream-format.md describes each column.
///
/// One file may hold other tables beside them, such as an outbox or the state of a group.
#pragma once

#include "database.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <string>

namespace millrace::local {

/// The newest format that this program reads and writes.
inline constexpr std::int64_t format_known = 1;

/// Makes the tables unless they are there. Other processes may do so at the same time.
[[nodiscard]] result<void> create_schema(sqlite::database& db);

/// `not_found` when the file has no streams, `wrong_version` when a newer program wrote them.
[[nodiscard]] result<void> check_schema(sqlite::database& db);

/// What a statement met: a table that is missing beside the others is damage (`corrupt`). `not_found` would
/// be the end of a shard to a reader, and a topic without a stream to a sink.
[[nodiscard]] error damaged(error why);

/// Opens a file and checks its tables, as above; with `create` it makes both where they are missing. Messages
/// name it `local:PATH`.
[[nodiscard]] result<sqlite::database> open_streams(
    const std::string& file, sqlite::open_mode mode, milliseconds busy_timeout
);

}  // namespace millrace::local
