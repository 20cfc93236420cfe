/// Tells a table of Millrace from one of another program that has the same name.
///
/// As thread-safe as the connection.
#pragma once

#include "database.hpp"

#include <millrace/error.hpp>

#include <string_view>

namespace millrace::sqlite {

/// `invalid_config` when there is a table of that name and it lacks one of the columns, written
/// `first, second, ...`.
[[nodiscard]] result<void> check_columns(database& db, std::string_view table, std::string_view columns);

}  // namespace millrace::sqlite
