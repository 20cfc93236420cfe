/// The bare SQLite calls of the probes and data sets: as thin as they can be, so that a probe is a ceiling.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <sqlite3.h>

namespace millrace::bench {

struct close_database {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
struct close_statement {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using database = std::unique_ptr<sqlite3, close_database>;
using statement = std::unique_ptr<sqlite3_stmt, close_statement>;

inline void check(sqlite3* db, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        throw std::runtime_error(sqlite3_errmsg(db));
}

inline void execute(sqlite3* db, const char* sql) {
    check(db, sqlite3_exec(db, sql, nullptr, nullptr, nullptr));
}

/// `synchronous` is the level that the part of Millrace uses which the probe stands for.
inline database open(const std::string& path, const char* synchronous) {
    sqlite3* db = nullptr;
    const int code = sqlite3_open(path.c_str(), &db);
    database handle{db};
    check(db, code);
    sqlite3_busy_timeout(db, 10'000);
    execute(db, (std::string("PRAGMA synchronous = ") + synchronous).c_str());
    return handle;
}

inline statement prepare(sqlite3* db, const char* sql) {
    sqlite3_stmt* made = nullptr;
    check(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr));
    return statement{made};
}

}  // namespace millrace::bench
