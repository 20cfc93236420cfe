/// Lists and reads a stream on the caller's connection: what `local_source` runs on its thread.
#pragma once

#include "database.hpp"
#include "local_append.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>

#include <string_view>

namespace millrace::local {

/// To a reader, `not_found` means that its shard has ended for good. A file or a stream that is not there may
/// have been moved away for a moment, which ends nothing: it is `unavailable`.
[[nodiscard]] error not_there_now(error why);

/// Waits for a write in progress before it reads the clock, so that every record that is not yet visible will
/// arrive at or after `now`. Where the file cannot be locked, `now` is rounded down by a second instead.
[[nodiscard]] result<stream_listing> list_stream(
    sqlite::database& db, std::string_view stream, const local_clock& clock
);

/// A cursor is the next sequence number to read, in decimal. It never expires. `position_trimmed` when
/// records after `from::after` were removed; `invalid_argument` when the stream has not given that number
/// yet.
[[nodiscard]] result<read_cursor> open_cursor(
    sqlite::database& db, std::string_view stream, const shard_id& shard, const start_position& start
);

/// `position_trimmed` when records at or after the cursor were removed.
[[nodiscard]] result<read_reply> read_records(
    sqlite::database& db,
    std::string_view stream,
    const shard_id& shard,
    const read_cursor& cursor,
    const read_limits& limits
);

}  // namespace millrace::local
