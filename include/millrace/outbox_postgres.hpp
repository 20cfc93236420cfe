/// Writes events into an outbox inside an application's own PostgreSQL transaction. Part of the component
/// `postgres`.
///
/// Plain SQL and the SQL function `outbox_put` do the same (docs/outbox-schema.md). The writer begins and
/// ends no transaction: an event is committed with what the application writes beside it. Each event is one
/// round trip on the application's connection, which must not be in pipeline mode. Threads: as the
/// connection.
#pragma once

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

struct pg_conn;  // libpq's PGconn

namespace millrace {

struct postgres_outbox_writer_options {
    static constexpr std::size_t event_bytes_limit = 1'000'000'000;  ///< What PostgreSQL takes.

    std::string table{"outbox"};  ///< `table` or `schema.table`.

    /// Of topic, key, value and headers together. Keep it below what the sink takes.
    std::size_t event_bytes_max{1'000'000};

    /// Writers of one topic and key wait for each other until the end of their transactions, from before the
    /// id is drawn: then events of a key come in the order of commits. Without it, transactions that write
    /// one key at the same time have no order among themselves.
    bool serialise_keys{false};
};

class postgres_outbox_writer {
public:
    /// `db` is the application's and must outlive the writer. `not_found` when it has no such outbox.
    [[nodiscard]] static result<postgres_outbox_writer> open(
        pg_conn* db, postgres_outbox_writer_options options = {}
    );

    /// Adds one event and returns its id. `invalid_argument` (no topic, too large, what the table has no
    /// column for) sends nothing; what PostgreSQL refuses fails the open transaction, as any statement does.
    result<row_id> add(const event& what);

private:
    postgres_outbox_writer(
        pg_conn* db,
        std::string insert,
        bool has_headers,
        bool has_partition,
        postgres_outbox_writer_options options
    )
        : db_(db),
          insert_(std::move(insert)),
          has_headers_(has_headers),
          has_partition_(has_partition),
          options_(std::move(options)) {}

    pg_conn* db_;
    std::string insert_;
    bool has_headers_;
    bool has_partition_;
    postgres_outbox_writer_options options_;
};

}  // namespace millrace
