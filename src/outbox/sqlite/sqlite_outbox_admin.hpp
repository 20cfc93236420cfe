/// `outbox_admin` on a SQLite file.
#pragma once

#include "database.hpp"
#include "port/outbox_admin.hpp"

#include <millrace/time.hpp>

#include <memory>
#include <string>

namespace millrace {

struct sqlite_outbox_admin_options {
    std::string name;                  ///< How messages name the file, such as its URL; the path when empty.
    milliseconds busy_timeout{5'000};  ///< How long a call waits for other writers before `unavailable`.
    bool only_reads{false};            ///< Then the file need not be writable.
};

class sqlite_outbox_admin final : public outbox_admin {
public:
    /// Makes the file and the tables where they are missing; changes nothing where they are there.
    [[nodiscard]] static result<sqlite_outbox_admin> init(
        const std::string& path, sqlite_outbox_admin_options options = {}
    );

    /// `not_found` when the file or its tables are missing.
    [[nodiscard]] static result<sqlite_outbox_admin> open(
        const std::string& path, sqlite_outbox_admin_options options = {}
    );

    result<std::optional<row_id>> put(std::span<const event> events) override;
    [[nodiscard]] result<outbox_stats> stats() override;
    [[nodiscard]] result<std::vector<dead_event>> list_dead(
        const dead_selection& which, std::size_t limit = 1'000, dead_part part = dead_part::whole
    ) override;
    result<std::uint64_t> retry_dead(const dead_selection& which) override;
    result<std::uint64_t> drop_dead(const dead_selection& which) override;
    result<bool> pause(const std::optional<std::string>& topic) override;
    result<bool> resume(const std::optional<std::string>& topic) override;

private:
    explicit sqlite_outbox_admin(sqlite::database db) : db_(std::move(db)) {}

    /// Notes ids and parked lanes of the selection in temporary tables of the connection.
    result<void> select(const dead_selection& which, bool oldest);
    result<void> leave_what_does_not_fit(std::vector<row_id>& staying);

    /// Tells relays that rows came back, or that a lane may go on.
    result<void> note_change();

    sqlite::database db_;
};

}  // namespace millrace
