#include "statement.hpp"

#include "assert.hpp"
#include "sqlite_error.hpp"

#include <sqlite3.h>

namespace millrace::sqlite {

statement::statement(statement&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), file_(other.file_), bind_error_(other.bind_error_) {}

statement::~statement() {
    if (handle_ == nullptr) return;
    sqlite3_reset(handle_);  // repeats the error of the last step, which was reported there
    sqlite3_clear_bindings(handle_);
}

void statement::note(int code) {
    MILLRACE_ASSERT(code == SQLITE_OK || code == SQLITE_TOOBIG || code == SQLITE_NOMEM);
    if (code != SQLITE_OK) bind_error_ = code;
}

void statement::bind(int parameter, std::int64_t value) {
    note(sqlite3_bind_int64(handle_, parameter, value));
}

void statement::bind(int parameter, std::string_view text) {
    // A null pointer would bind NULL.
    const char* const data = text.data() != nullptr ? text.data() : "";
    note(sqlite3_bind_text64(handle_, parameter, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void statement::bind(int parameter, blob_view blob) {
    const char* const data = blob.bytes.data() != nullptr ? blob.bytes.data() : "";
    note(sqlite3_bind_blob64(handle_, parameter, data, blob.bytes.size(), SQLITE_STATIC));
}

void statement::bind(int parameter, std::nullopt_t) {
    note(sqlite3_bind_null(handle_, parameter));
}

result<bool> statement::step() {
    const int code = bind_error_ != SQLITE_OK ? bind_error_ : sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    const char* const sql = sqlite3_sql(handle_);
    const std::string_view text(sql != nullptr ? sql : "");
    auto why = make_error(
        sqlite3_db_handle(handle_), code, *file_, sqlite3_stmt_readonly(handle_) != 0 ? "read" : "write"
    );
    // Only the end of a transaction can leave open whether its writes are kept.
    const bool ends_a_transaction =
        text.starts_with("COMMIT") ||
        (sqlite3_stmt_readonly(handle_) == 0 && sqlite3_get_autocommit(sqlite3_db_handle(handle_)) != 0);
    why.in_doubt = ends_a_transaction && (code & 0xff) == SQLITE_IOERR;
    return tl::unexpected(std::move(why));
}

result<void> statement::run() {
    for (;;) {
        auto row = step();
        if (!row) return tl::unexpected(std::move(row.error()));
        if (!*row) return {};
    }
}

void statement::reset() {
    sqlite3_reset(handle_);
    bind_error_ = SQLITE_OK;
}

value_type statement::type(int column) const {
    switch (sqlite3_column_type(handle_, column)) {
        case SQLITE_INTEGER:
            return value_type::integer;
        case SQLITE_FLOAT:
            return value_type::real;
        case SQLITE_TEXT:
            return value_type::text;
        case SQLITE_BLOB:
            return value_type::blob;
        default:
            return value_type::null;
    }
}

std::int64_t statement::integer(int column) const {
    return sqlite3_column_int64(handle_, column);
}

std::string_view statement::bytes(int column) const {
    // Text comes as it is stored, which `database::open` has made sure is UTF-8; numbers are formatted.
    const void* const data = sqlite3_column_blob(handle_, column);
    if (data == nullptr) return "";
    return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

std::optional<std::string_view> statement::maybe_bytes(int column) const {
    const auto found = bytes(column);
    if (found.empty() && is_null(column)) return std::nullopt;
    return found;
}

std::optional<std::int64_t> statement::maybe_integer(int column) const {
    if (is_null(column)) return std::nullopt;
    return integer(column);
}

}  // namespace millrace::sqlite
