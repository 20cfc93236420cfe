/// The SQL that writes rows into an outbox of any layout.
///
/// Pure functions.
#pragma once

#include "outbox_layout.hpp"

#include <string>
#include <string_view>

namespace millrace::postgres {

/// Holds the turn of the writers of a topic and key until the end of the transaction; nothing for a key that
/// is NULL. `topic` is text and `key` bytea.
[[nodiscard]] std::string turn_sql(const table_name& outbox, std::string_view topic, std::string_view key);

/// One event as $1 to $6: topic, key, value, names and values of headers, partition; the last ones only where
/// the table has columns for them. Returns the id. `serialise`: the turn is taken before the id is drawn.
[[nodiscard]] std::string insert_event_sql(const outbox_layout& layout, bool serialise);

/// Rows of the dead letters `from`, under their old ids.
[[nodiscard]] std::string restore_sql(const outbox_layout& layout, std::string_view from);

}  // namespace millrace::postgres
