/// Writes events into an outbox inside an application's own SQLite transaction.
///
/// Plain SQL does the same (`INSERT INTO outbox (topic, key, value) VALUES (?, ?, ?)`, see
/// docs/outbox-schema.md); the writer adds a prepared statement and checks. It begins and ends no
/// transaction: an event is committed with what the application writes beside it. Threads: as the connection.
#pragma once

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>

#include <cstddef>
#include <memory>

struct sqlite3;
struct sqlite3_stmt;

namespace millrace {

/// Makes the outbox's tables where they are missing; part of the open transaction if there is one.
/// `wrong_version` when a newer program made them; `invalid_config` when a table `outbox` of another shape is
/// there.
[[nodiscard]] result<void> create_outbox(sqlite3* db);

struct outbox_writer_options {
    static constexpr std::size_t event_bytes_limit = 1'000'000'000;  ///< What SQLite takes.

    /// Of topic, key, value and headers together. Keep it below what the sink takes.
    std::size_t event_bytes_max{1'000'000};
};

class outbox_writer {
public:
    /// `db` is the application's and must outlive the writer. `not_found` when it has no outbox.
    [[nodiscard]] static result<outbox_writer> open(sqlite3* db, outbox_writer_options options = {});

    /// Adds one event and returns its id. Errors leave nothing written: `invalid_argument` (no topic, too
    /// large, a header name that is not UTF-8), or what SQLite reports. Writers that must keep an order per
    /// key among themselves get it from the order of their transactions.
    result<row_id> add(const event& what);

private:
    struct finalize {
        void operator()(sqlite3_stmt* statement) const noexcept;
    };
    using prepared = std::unique_ptr<sqlite3_stmt, finalize>;

    outbox_writer(sqlite3* db, prepared insert, outbox_writer_options options)
        : db_(db), insert_(std::move(insert)), options_(options) {}

    sqlite3* db_;
    prepared insert_;
    outbox_writer_options options_;
};

}  // namespace millrace
