/// Runs a statement on a connection that belongs to the application, inside its transactions.
///
/// Threads: as the connection. It must not be in pipeline mode.
#pragma once

#include "rows.hpp"
#include "statement.hpp"

#include <millrace/error.hpp>

#include <string>
#include <string_view>

struct pg_conn;  // libpq's PGconn

namespace millrace::postgres {

/// The address of the server, with only what is no secret.
[[nodiscard]] std::string name_of(const pg_conn* db);

/// Waits for the reply. A lost one is `unavailable`, in doubt when the statement writes.
[[nodiscard]] result<rows> run_on(pg_conn* db, const statement& what);

/// Statements without parameters in one round trip; the reply is the last one's, in text. A lost one is in
/// doubt. `doing` as of a statement.
[[nodiscard]] result<rows> run_script(pg_conn* db, const std::string& sql, std::string_view doing);

}  // namespace millrace::postgres
