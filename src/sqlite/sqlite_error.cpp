#include "sqlite_error.hpp"

#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace::sqlite {

namespace {

struct verdict {
    errc code;
    retry_advice retry;
    std::string_view advice;
};

bool names_a_missing_object(std::string_view message) {
    return message.starts_with("no such table") || message.starts_with("no such column");
}

constexpr verdict full{
    errc::out_of_space,
    retry_advice::after_delay,
    "the disk, the quota or the size limit of the database is full; make room"};

/// SQLite reports some writes that find no room as a failed disk: those beyond a quota or a limit, of which
/// it leaves the system's number as it is, and those that make the file -shm larger.
bool no_room(int code, int of_system) {
    return code == SQLITE_IOERR_SHMSIZE || of_system == ENOSPC || of_system == EDQUOT || of_system == EFBIG;
}

verdict judge(int code, int of_system, std::string_view message) {
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {
                errc::unavailable,
                retry_advice::after_delay,
                "another connection holds it locked; end or shorten that transaction, and continue or end a "
                "process that was stopped in one"};
        case SQLITE_INTERRUPT:
            return {errc::cancelled, retry_advice::never, "this process is stopping"};
        case SQLITE_FULL:
            return full;
        case SQLITE_READONLY:
            if (code == SQLITE_READONLY_DBMOVED) {
                return {
                    errc::unavailable,
                    retry_advice::now,
                    "the file was moved, replaced or deleted while it was open"};
            }
            return {
                errc::permission_denied,
                retry_advice::never,
                "this process may not write it; check the mode and owner of the file and of its directory"};
        case SQLITE_PERM:
        case SQLITE_AUTH:
            return {errc::permission_denied, retry_advice::never, "check the mode and owner of the file"};
        case SQLITE_CANTOPEN:
            return {
                errc::permission_denied,
                retry_advice::after_delay,
                "the file, or the -wal and -shm files beside it, cannot be opened; check mode and owner of "
                "the file and of its directory"};
        case SQLITE_NOTADB:
            return {
                errc::corrupt,
                retry_advice::never,
                "it is not a SQLite database, or it is encrypted; check the path"};
        case SQLITE_CORRUPT:
            return {errc::corrupt, retry_advice::never, "the file is damaged; restore it from a backup"};
        case SQLITE_IOERR:
            if (no_room(code, of_system)) return full;
            return {
                errc::unavailable,
                retry_advice::after_delay,
                "the disk failed or the file system is gone; check the system log"};
        case SQLITE_TOOBIG:
            return {errc::invalid_argument, retry_advice::never, "a value is larger than SQLite's limit"};
        case SQLITE_CONSTRAINT:
            // No conflict: that word is for a row which another writer changed, and there one decides anew.
            return {
                errc::invalid_config,
                retry_advice::after_delay,
                "a rule or a trigger of the table forbids it; change that, or the row"};
        case SQLITE_NOMEM:
            return {errc::unavailable, retry_advice::after_delay, "there is not enough memory"};
        case SQLITE_SCHEMA:
            return {errc::unavailable, retry_advice::now, "the tables were changed meanwhile"};
        case SQLITE_ERROR:
            if (names_a_missing_object(message)) {
                return {
                    errc::not_found,
                    retry_advice::never,
                    "the database lacks what was asked for; check the path"};
            }
            break;
        default:
            break;
    }
    return {errc::internal, retry_advice::never, "please report this"};
}

}  // namespace

error make_error(sqlite3* db, int code, std::string_view file, std::string_view doing) {
    const int of_system = errno;
    const std::string_view message = db != nullptr && (sqlite3_errcode(db) & 0xff) == (code & 0xff)
                                         ? sqlite3_errmsg(db)
                                         : sqlite3_errstr(code);
    const auto found = judge(code, of_system, message);
    // A statement that only reads meets it, too, where the file of the log must grow.
    if (found.code == errc::out_of_space) doing = "write";
    return {
        found.code,
        found.retry,
        false,
        fmt::format("cannot {} {}: {}; {}", doing, file, message, found.advice)};
}

}  // namespace millrace::sqlite
