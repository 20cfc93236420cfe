/// The tables of the local stream; docs/local-stream-format.md describes each column.
///
/// One file may hold other tables beside them, such as an outbox or the state of a group.
#pragma once

#include "database.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <string_view>

namespace millrace::local {

/// The newest format that this program reads and writes.
inline constexpr std::int64_t format_known = 1;

/// Makes the tables unless they are there. Other processes may do so at the same time.
[[nodiscard]] result<void> create_schema(sqlite::database& db);

/// `not_found` when the file has no streams, `wrong_version` when a newer program wrote them.
[[nodiscard]] result<void> check_schema(sqlite::database& db);

/// How a sentence about a missing file ends.
inline constexpr std::string_view create_advice =
    "create a stream in it with `millrace stream create --stream local:PATH/STREAM --shards N`";

}  // namespace millrace::local
