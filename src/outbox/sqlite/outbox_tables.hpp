/// The SQL behind `sqlite_outbox`: plain functions on one connection, called on its thread.
#pragma once

#include "database.hpp"
#include "port/outbox_source.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/outbox_look.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// What the connection has seen of the table, so that a table that was dropped and made anew, or restored, is
/// told from the one whose ids a relay remembers.
class outbox_view {
public:
    /// Call after each opening of the file.
    void reopened() { ++lives_; }

    /// Reads the state of the table within the transaction of `db`; `identity` is valid afterwards.
    result<void> look(sqlite::database& db);

    [[nodiscard]] std::string identity() const;
    [[nodiscard]] std::uint64_t replay_generation() const noexcept { return replay_generation_; }

    /// The identity of the table whose ids the relay goes by.
    void reported(std::string identity) { reported_ = std::move(identity); }
    [[nodiscard]] bool is_as_reported() const { return reported_ == identity(); }

private:
    std::string stored_;
    std::int64_t last_id_{0};
    std::uint64_t lives_{0};
    std::uint64_t replay_generation_{0};
    std::string reported_;
};

namespace outbox_tables {

result<fetch_reply> fetch(sqlite::database& db, outbox_view& view, const fetch_request& request);

/// Nothing is deleted when the epoch is not `mine`, or when the table is not the one that was read.
result<std::uint64_t> remove(
    sqlite::database& db, outbox_view& view, const std::vector<id_range>& delivered, epoch mine
);

result<void> bury(sqlite::database& db, outbox_view& view, const bury_request& request, epoch mine);
result<std::vector<lane_key>> parked_lanes(sqlite::database& db);

/// Whether the outbox could be read now; reads no row of it.
result<void> check(sqlite::database& db);

/// Four steps in an index, whatever the size.
result<outbox_look> look(sqlite::database& db);

}  // namespace outbox_tables

}  // namespace millrace
