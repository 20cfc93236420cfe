/// What people and the command line do with an outbox in SQLite: make it, write to it, look at it, settle its
/// dead letters.
///
/// Synchronous, on a connection of its own; not thread-safe. Relays may run meanwhile. Every function that
/// writes is one durable transaction: all of it, or nothing.
#pragma once

#include "database.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct outbox_stats {
    std::uint64_t backlog{0};
    std::uint64_t dead{0};
    std::uint64_t parked_lanes{0};
    std::optional<wall_time> oldest;  ///< When the row of the lowest id was written.
};

/// A row that was given up, and why.
struct dead_event {
    row_id id;
    millrace::event event;
    std::string broken_headers;  ///< Why the headers cannot be shown; then `event` has none.
    wall_time created_at;
    std::string reason;  ///< Short and stable, such as `refused_record`.
    std::string error;
    std::uint32_t attempts{0};
    wall_time first_at;  ///< When the row was given up first, and last.
    wall_time last_at;
};

/// Which dead letters; what is set must all hold, and nothing set means all.
struct dead_selection {
    std::vector<row_id> ids;  ///< One of these; empty: any.
    std::optional<std::string> topic;
    std::optional<std::string> key;
};

class outbox_admin {
public:
    /// Makes the file and the tables where they are missing; changes nothing where they are there. `name` is
    /// how messages name the file, such as its URL.
    [[nodiscard]] static result<outbox_admin> init(const std::string& path, const std::string& name = {});

    /// `not_found` when the file or its tables are missing.
    [[nodiscard]] static result<outbox_admin> open(const std::string& path, const std::string& name = {});

    /// Returns the id of the last event, which is the highest; nothing for no events. What a sink does not
    /// take is its own verdict, so only SQLite's limit of 1 GB holds.
    result<std::optional<row_id>> put(std::span<const event> events);

    [[nodiscard]] result<outbox_stats> stats();

    /// By id, at most `limit`.
    [[nodiscard]] result<std::vector<dead_event>> list_dead(
        const dead_selection& which, std::size_t limit = 1'000
    );
    [[nodiscard]] result<std::optional<dead_event>> show_dead(row_id id);

    /// Puts rows back under their old ids and un-parks their lanes, and returns how many. Of a parked lane
    /// all dead letters come back, also those that were not asked for: a part of them would be sent out of
    /// order.
    result<std::uint64_t> retry_dead(const dead_selection& which);

    /// Deletes dead letters for good and returns how many. A lane whose last dead letter goes is un-parked.
    result<std::uint64_t> drop_dead(const dead_selection& which);

private:
    explicit outbox_admin(sqlite::database db) : db_(std::move(db)) {}

    /// Notes ids and parked lanes of the selection in temporary tables of the connection.
    result<void> select(const dead_selection& which);

    /// Tells relays that rows came back, or that a lane may go on.
    result<void> note_change();

    sqlite::database db_;
};

}  // namespace millrace
