/// Writes events into an outbox in PostgreSQL, all or none. On the caller's connection, outside of a
/// transaction.
#pragma once

#include "connection.hpp"
#include "outbox_layout.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>

#include <optional>
#include <span>

namespace millrace::postgres {

/// The id of the last one; nothing for no events. `invalid_argument` when the table has no column for what an
/// event has.
[[nodiscard]] result<std::optional<row_id>> put_events(
    connection& db, const outbox_layout& layout, std::span<const event> events
);

}  // namespace millrace::postgres
