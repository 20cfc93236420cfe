/// Makes and upgrades an outbox in PostgreSQL, and says which SQL would.
///
/// The texts are pure functions; docs/outbox-schema.md describes the tables for people.
#pragma once

#include "connection.hpp"
#include "outbox_layout.hpp"
#include "table_name.hpp"

#include <millrace/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace::postgres {

/// The table, and the function that writes to it; one statement each.
[[nodiscard]] std::vector<std::string> outbox_layout_sql(const table_name& outbox);

/// The function that writes to an outbox, named after it.
[[nodiscard]] table_name put_function(const table_name& outbox);

/// All that `create_outbox` would do to an empty schema, and the rights that `writer` (the application) and
/// `relay` need at least, as a script for psql. Without a schema, `public` is meant.
[[nodiscard]] std::string outbox_script(table_name outbox, std::string_view writer, std::string_view relay);

/// The same for the table as it is there: what an older one lacks, and for one of goharvest's layout, whose
/// application has its rights, only the relay's own tables and rights. Changes nothing.
[[nodiscard]] result<std::string> outbox_script(
    connection& db, const table_name& given, std::string_view writer, std::string_view relay
);

/// Makes what is missing, also at once from several processes. An outbox that is there is upgraded, and one
/// in goharvest's layout stays as it is; then only what is missing needs a right. `invalid_config` when
/// another table has its name, `wrong_version` when a newer program made it unreadable for this one.
result<outbox_layout> create_outbox(connection& db, const table_name& given);

}  // namespace millrace::postgres
