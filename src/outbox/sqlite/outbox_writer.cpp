#include "outbox_headers.hpp"
#include "outbox_schema.hpp"
#include "record/bytes_text.hpp"
#include "sqlite_error.hpp"

#include <millrace/outbox.hpp>

#include <string>

#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace {

namespace {

std::string file_of(sqlite3* db) {
    const char* const path = sqlite3_db_filename(db, "main");
    return path == nullptr || *path == '\0' ? "the database in memory" : fmt::format("\"{}\"", path);
}

int bind_text(sqlite3_stmt* statement, int at, const std::string& text) {
    return sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

int bind_bytes(sqlite3_stmt* statement, int at, const std::optional<std::string>& bytes) {
    return bytes ? sqlite3_bind_blob64(statement, at, bytes->data(), bytes->size(), SQLITE_STATIC)
                 : sqlite3_bind_null(statement, at);
}

/// A value that SQLite refuses to bind would be written as NULL: the first refusal counts. An application may
/// have lowered SQLITE_LIMIT_LENGTH far below what the writer lets through.
int bind_event(sqlite3_stmt* insert, const event& what, const std::string& headers) {
    int code = bind_text(insert, 1, what.topic);
    if (code == SQLITE_OK) code = bind_bytes(insert, 2, what.key);
    if (code == SQLITE_OK) code = bind_bytes(insert, 3, what.value);
    if (code == SQLITE_OK && !headers.empty()) code = bind_text(insert, 4, headers);
    if (code == SQLITE_OK && what.partition) code = sqlite3_bind_int(insert, 5, *what.partition);
    return code;
}

result<void> check_event(const event& what, std::size_t bytes, std::size_t limit) {
    if (what.topic.empty() || !is_utf8(what.topic)) {
        return fail(errc::invalid_argument, "the event has no topic, or one that is not UTF-8; name a topic");
    }
    if (what.partition && *what.partition < 0) {
        return fail(
            errc::invalid_argument,
            fmt::format("the partition of the event is {}; it must be 0 or more", *what.partition)
        );
    }
    if (bytes <= limit) return {};
    return fail(
        errc::invalid_argument,
        fmt::format(
            "the event for topic \"{}\" has {} bytes, and the limit is {}; store large data elsewhere and "
            "send a reference, or raise event_bytes_max",
            what.topic,
            bytes,
            limit
        )
    );
}

}  // namespace

void outbox_writer::finalize::operator()(sqlite3_stmt* statement) const noexcept {
    sqlite3_finalize(statement);
}

result<void> create_outbox(sqlite3* db) {
    return outbox_schema::create(db, file_of(db));
}

result<outbox_writer> outbox_writer::open(sqlite3* db, outbox_writer_options options) {
    if (options.event_bytes_max == 0 || options.event_bytes_max > outbox_writer_options::event_bytes_limit) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "event_bytes_max is {}; it must be from 1 to {}",
                options.event_bytes_max,
                outbox_writer_options::event_bytes_limit
            )
        );
    }
    const auto file = file_of(db);
    if (auto usable = outbox_schema::check(db, file); !usable) {
        return tl::unexpected(std::move(usable.error()));
    }
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(
        db,
        "INSERT INTO outbox (topic, key, value, headers, partition) VALUES (?, ?, ?, ?, ?)",
        -1,
        SQLITE_PREPARE_PERSISTENT,
        &raw,
        nullptr
    );
    if (code != SQLITE_OK) return tl::unexpected(sqlite::make_error(db, code, file, "use"));
    return outbox_writer(db, prepared(raw), options);
}

result<row_id> outbox_writer::add(const event& what) {
    const auto headers = headers_to_json(what.headers);
    if (!headers) return tl::unexpected(headers.error());
    const auto bytes = what.topic.size() + (what.key ? what.key->size() : 0) +
                       (what.value ? what.value->size() : 0) + headers->size();
    if (auto fine = check_event(what, bytes, options_.event_bytes_max); !fine) {
        return tl::unexpected(std::move(fine.error()));
    }
    auto* const insert = insert_.get();
    int code = bind_event(insert, what, *headers);
    if (code == SQLITE_OK) code = sqlite3_step(insert);
    auto failed = code == SQLITE_DONE ? error{} : sqlite::make_error(db_, code, file_of(db_), "write");
    sqlite3_reset(insert);  // repeats the error of the step
    sqlite3_clear_bindings(insert);
    if (code != SQLITE_DONE) return tl::unexpected(std::move(failed));
    return row_id{sqlite3_last_insert_rowid(db_)};
}

}  // namespace millrace
