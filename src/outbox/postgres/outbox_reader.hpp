/// The reading half of an outbox in PostgreSQL: rows ahead, gaps, who still writes, and what the table is.
///
/// Plain functions on one connection, called on its thread, with what they remember from one call to the
/// next.
#pragma once

#include "outbox_session.hpp"
#include "port/outbox_source.hpp"
#include "row_decoder.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/outbox_look.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::postgres {

/// The state that rows were read in, beside the reply.
struct fetched {
    fetch_reply reply;
    table_state table;
};

class outbox_reader {
public:
    explicit outbox_reader(table_name table);

    result<fetched> fetch(connection& db, const fetch_request& request);
    result<outbox_start> start(connection& db);
    result<outbox_look> look(connection& db, row_id low_water);

    /// Whether the outbox could be read now; reads no row.
    result<void> check(connection& db);

private:
    struct status {
        table_state table;
        std::string identity;
        std::uint64_t generation{0};
        std::vector<std::string> paused;
        bool all_paused{false};
        row_id drawn;
    };
    struct round;

    /// Runs `work`; after an error the table is looked up anew.
    template <class T, class F>
    result<T> on_table(connection& db, F work);

    result<status> read_status(connection& db, const outbox_session::known& table, const rows& from);
    result<void> look_first(connection& db, const outbox_session::known& table);
    result<fetched> sweep(connection& db, const outbox_session::known& table, const fetch_request& request);
    result<fetched> fetch_from(
        connection& db, const outbox_session::known& table, const fetch_request& request
    );
    result<bool> read_round(
        connection& db, const outbox_session::known& table, const fetch_request& request, round& into
    );
    [[nodiscard]] std::size_t rows_to_ask(std::size_t rows_max, std::size_t bytes_max) const;
    void learn_size(const row_batch& batch);
    [[nodiscard]] id_range around_sequence(row_id mark) const;

    outbox_session session_;
    row_decoder decoder_;
    std::uint64_t connection_{0};
    std::string system_;  ///< The server's identifier.
    std::string identity_;
    std::vector<std::string> paused_;
    bool all_paused_{false};
    row_id drawn_;              ///< As in `fetch_reply`, of late.
    bool looked_{false};        ///< Pauses are known.
    bool changed_{false};       ///< The table is another one, or has other columns.
    int exact_rounds_{0};       ///< To be read exactly, since a large row was met.
    std::size_t row_bytes_{0};  ///< About, of late.
    std::int64_t sweep_ids_;    ///< Of one page of a sweep.
};

}  // namespace millrace::postgres
