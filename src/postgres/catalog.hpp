/// Questions to the server's catalog that several adapters ask.
///
/// Plain functions on one connection.
#pragma once

#include "connection.hpp"
#include "table_name.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::postgres {

struct found_table {
    std::int64_t oid{0};
    table_name name;  ///< With its schema.
};

/// The table that the server means by `given`, by its search_path when no schema is named. `not_found`, to be
/// tried again later, with `advice` as what to do.
[[nodiscard]] result<found_table> find_table(
    connection& db, const table_name& given, std::string_view advice
);

/// Adds to a fault that comes from a lock who holds one on the table for longest: pid, state and age; unknown
/// where the role may not see it. Any other fault stays as it is.
[[nodiscard]] error name_blocker(connection& db, error refused, const table_name& table);

}  // namespace millrace::postgres
