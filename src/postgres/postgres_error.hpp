/// Turns PostgreSQL's refusals into faults that say what to do.
///
/// Pure functions.
#pragma once

#include <millrace/error.hpp>

#include <string_view>

namespace millrace::postgres {

/// The fault behind a SQLSTATE. `message` is the server's primary message, `name` that of the server, `doing`
/// what was tried ("read the leases in").
[[nodiscard]] error make_error(
    std::string_view sqlstate, std::string_view message, std::string_view name, std::string_view doing
);

/// The fault behind a connection that could not be made, by libpq's verbose text (which may hold a SQLSTATE).
[[nodiscard]] error connect_error(std::string_view text, std::string_view name);

}  // namespace millrace::postgres
