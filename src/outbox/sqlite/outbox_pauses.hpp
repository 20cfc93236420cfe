/// The table `outbox_paused`: which topics of an outbox, or whether all of it, relays leave alone.
///
/// Functions on one connection, within its open transaction.
#pragma once

#include "database.hpp"

#include <millrace/error.hpp>

#include <optional>
#include <string>
#include <vector>

namespace millrace::outbox_pauses {

struct paused {
    bool everything{false};
    std::vector<std::string> topics;  ///< In order.
};

/// Makes the table where it is missing: an outbox of an earlier program has none.
result<void> create(sqlite::database& db);

/// Nothing is paused where the table is missing.
result<paused> read(sqlite::database& db);

/// No topic means all of the outbox. `db.changes()` tells whether anything changed.
result<void> add(sqlite::database& db, const std::optional<std::string>& topic);
result<void> remove(sqlite::database& db, const std::optional<std::string>& topic);

}  // namespace millrace::outbox_pauses
