/// A relay on a real outbox in PostgreSQL with a sink that takes everything at once: what it delivers, in
/// order.
#pragma once

#include "contract/loop_host.hpp"
#include "instant_sink.hpp"
#include "lease_layout.hpp"
#include "postgres_outbox.hpp"
#include "postgres_outbox_admin.hpp"
#include "relay_driver.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace::test {

/// The outcome, or the end of the test.
template <class T>
T sure(result<T> outcome) {
    if (!outcome) throw std::runtime_error(outcome.error().detail);
    if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

/// A schema of its own on a server, gone with the object.
class outbox_place {
public:
    /// `table` is SQL that makes another table than `init` would, with {} for its name.
    explicit outbox_place(std::string url = support::services().postgres, const std::string& table = {})
        : url_(std::move(url)), sql(url_) {
        sql.execute("CREATE SCHEMA " + schema);
        if (!table.empty()) sql.execute(fmt::format(fmt::runtime(table), name));
        sure(postgres_outbox_admin::init(server()));
    }
    outbox_place(const outbox_place&) = delete;
    outbox_place& operator=(const outbox_place&) = delete;
    ~outbox_place() {
        try {
            sql.execute("SET lock_timeout = '5s'; DROP SCHEMA " + schema + " CASCADE");
        } catch (const support::sql_error& e) {
            ADD_FAILURE() << e.what();
        }
    }

    [[nodiscard]] postgres::server server() const { return server_at(url_); }
    [[nodiscard]] postgres::server server_at(const std::string& url) const {
        return sure(
            postgres::parse_server(url + (url.find('?') == std::string::npos ? "?" : "&") + "table=" + name)
        );
    }
    [[nodiscard]] postgres_outbox_admin admin() const { return sure(postgres_outbox_admin::open(server())); }
    [[nodiscard]] support::sql_connection session() const { return support::sql_connection(url_); }

    /// The statement with {} replaced by the table's name.
    [[nodiscard]] std::string on(const std::string& statement) const {
        return fmt::format(fmt::runtime(statement), name);
    }
    void run(const std::string& statement) { sql.execute(on(statement)); }
    std::int64_t put(const std::string& key, const std::string& value = "v") {
        return sql.number(
            on("INSERT INTO {} (topic, key, value) VALUES ('orders', $1, $2) RETURNING id"), {key, value}
        );
    }
    void own(std::uint64_t epoch) {
        sql.query(fmt::format(
            "INSERT INTO {0}.millrace_shard (stream, group_name, shard, parents, owner, epoch, version, "
            "write_id, "
            "updated_at) VALUES ('', 'outbox:{1}', '{2}', '{{}}', '', {3}, 1, 1, now()) ON CONFLICT (stream, "
            "group_name, shard) DO UPDATE SET epoch = {3}",
            schema,
            name,
            postgres::outbox_lease_shard,
            epoch
        ));
    }

private:
    std::string url_;

public:
    support::sql_connection sql;
    std::string schema = support::unique_name("pgoutbox");
    std::string name = schema + ".outbox";
};

/// A relay that holds the lease.
class postgres_relay {
public:
    explicit postgres_relay(
        outbox_place& place, relay_options options = quick(), std::optional<postgres::server> via = {}
    )
        : place_(place),
          source_(home, {.server = via ? *via : place.server()}),
          driver_(home, source_, sink, options, [] { return true; }) {
        driver_.on_stopped([this](const error& why) { stopped = why; });
        place_.own(++epoch_);
        driver_.start(epoch{epoch_});
    }

    /// Sweeps soon, so that tests of it are short.
    [[nodiscard]] static relay_options quick() {
        relay_options options;
        options.sweep_every = std::chrono::milliseconds{300};
        options.sweep_share = 0.5;
        options.delete_delay = std::chrono::milliseconds{1};
        return options;
    }

    bool until(const std::function<bool()>& condition, milliseconds limit = milliseconds{20'000}) {
        return home.run_until(condition, limit);
    }
    bool delivers(std::size_t rows) {
        return until([&] { return sink.log.size() >= rows; });
    }
    /// Everything was delivered and deleted, and no gap is waited for.
    bool settles() {
        return until([&] { return driver_.empty(); });
    }
    /// As a new owner after a take-over.
    void restart() {
        driver_.halt();
        place_.own(++epoch_);
        driver_.start(epoch{epoch_});
    }
    void halt() { driver_.halt(); }
    [[nodiscard]] relay_driver& driver() { return driver_; }
    [[nodiscard]] postgres_outbox& source() { return source_; }

    loop_host home;
    instant_sink sink{home};
    std::optional<error> stopped;

private:
    outbox_place& place_;
    postgres_outbox source_;
    relay_driver driver_;
    static inline std::uint64_t epoch_{0};
};

}  // namespace millrace::test
