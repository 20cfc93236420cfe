/// Turns SQLite's result codes into faults that say what to do.
#pragma once

#include <millrace/error.hpp>

#include <string_view>

struct sqlite3;

namespace millrace::sqlite {

/// The fault behind `code` on `db` (which may be null). `file` is how messages name the database, `doing`
/// what was tried with it ("read").
[[nodiscard]] error make_error(sqlite3* db, int code, std::string_view file, std::string_view doing);

}  // namespace millrace::sqlite
