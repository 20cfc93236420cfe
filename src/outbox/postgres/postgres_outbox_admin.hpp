/// `outbox_admin` on an outbox in PostgreSQL.
#pragma once

#include "connection.hpp"
#include "outbox_layout.hpp"
#include "port/outbox_admin.hpp"
#include "relay_tables.hpp"
#include "server.hpp"
#include "stop_signal.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace millrace {

class postgres_outbox_admin final : public outbox_admin {
public:
    /// For a lock that another process holds, and for a host that says nothing.
    static constexpr milliseconds wait_default{10'000};

    /// Makes or upgrades the table, its function and the relay's tables; changes nothing where they are
    /// there.
    [[nodiscard]] static result<postgres_outbox_admin> init(
        const postgres::server& where, milliseconds wait = wait_default
    );

    /// `not_found` when there is no such table. The relay's tables are made where they are missing, unless it
    /// `only_puts`: then an application's rights will do.
    [[nodiscard]] static result<postgres_outbox_admin> open(
        const postgres::server& where, milliseconds wait = wait_default, bool only_puts = false
    );

    /// What `init` would do, and the least rights of two roles, for psql. When no server answers, what it
    /// would do to an empty schema.
    [[nodiscard]] static result<std::string> script(
        const postgres::server& where, std::string_view writer, std::string_view relay
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
    postgres_outbox_admin(
        std::unique_ptr<postgres::stop_signal> stop, postgres::connection db, postgres::outbox_layout layout
    );

    struct putting_back {
        std::uint64_t moved;
        std::vector<row_id> staying;
        bool
            parked_meanwhile;  ///< A relay parked some of `staying` while this ran: another round moves them.
    };
    [[nodiscard]] result<putting_back> put_back(const dead_selection& which);

    /// Tells relays that rows came back, or that a lane or topic may go on.
    [[nodiscard]] postgres::statement note_change() const;

    std::unique_ptr<postgres::stop_signal> stop_;
    postgres::connection db_;
    postgres::outbox_layout layout_;
    postgres::relay_tables tables_;
    std::string name_;  ///< The outbox, as an SQL literal.
};

}  // namespace millrace
