/// The writing half of an outbox in PostgreSQL: deletes what was delivered, moves what was given up.
///
/// Each call is one transaction in one round trip, so that a process that is paused within it holds no lock.
/// On a connection of its own, called on its thread.
#pragma once

#include "outbox_session.hpp"
#include "port/outbox_source.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::postgres {

/// What the rows were read from, and so what their ids mean.
struct read_from {
    table_state table;
    std::uint64_t generation{0};
};

class outbox_settling {
public:
    explicit outbox_settling(table_name table) : session_(std::move(table), false) {}

    /// Nothing is deleted when the epoch is not `mine`, or when the table is not the one that was read.
    result<std::uint64_t> remove(
        connection& db,
        const read_from& from,
        const std::vector<id_range>& delivered,
        row_id low_water,
        epoch mine
    );

    result<void> bury(connection& db, const read_from& from, const bury_request& request, epoch mine);

private:
    [[nodiscard]] bool is_time_to_remember(row_id low_water, const read_from& from) const;

    template <class T, class F>
    result<T> on_table(connection& db, const read_from& from, F work);

    result<std::uint64_t> remove_from(
        connection& db,
        const outbox_session::known& table,
        const read_from& from,
        const std::vector<id_range>& delivered,
        row_id low_water,
        epoch mine
    );
    result<void> bury_from(
        connection& db,
        const outbox_session::known& table,
        const read_from& from,
        const bury_request& request,
        epoch mine
    );

    outbox_session session_;
    struct remembered {
        row_id low_water;
        std::uint64_t generation;
        std::string lasting;
        std::chrono::steady_clock::time_point at;
    };
    std::optional<remembered> remembered_;
};

}  // namespace millrace::postgres
