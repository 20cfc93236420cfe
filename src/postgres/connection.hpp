/// A connection to PostgreSQL on which every wait has an end.
///
/// Statements travel in pipelines: many in one round trip, parameters and rows in binary. Where the first
/// round trip shows that no pooler stands between, limits are set once and plans are kept in the server's
/// session. Otherwise nothing is, so that it also works through a PgBouncer that pools transactions: limits
/// are set anew within each transaction. Not thread-safe; only the stop signal may be set from elsewhere.
#pragma once

#include "rows.hpp"
#include "server.hpp"
#include "statement.hpp"
#include "stop_signal.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace::postgres {

/// When a commit is confirmed. A server that is set to wait for a standby still does so under `durable`.
enum class durability : std::uint8_t {
    of_server,  ///< As the server, database or role is configured.
    durable,    ///< On disk, also where the configuration says `synchronous_commit = off`.
    relaxed     ///< A crash of the server may undo the last commits.
};

/// Hold in every transaction. The server ends what takes longer; keep all below the lease time.
struct limits {
    milliseconds statement{2'000};
    milliseconds lock{1'000};                 ///< Waiting for a lock of another transaction.
    milliseconds idle_in_transaction{2'000};  ///< Between two statements of one transaction.

    /// On this side, for a whole round trip: then the server is asked to cancel, and the connection is
    /// closed.
    milliseconds reply{4'000};

    durability commit{durability::of_server};

    /// Rows are found by indexes, whatever the statistics say: they mislead where a table fills and empties.
    bool by_index{false};

    bool operator==(const limits&) const = default;
};

/// For what must be over before a lease is: whoever takes over must not wait for locks of its last owner.
[[nodiscard]] limits limits_below(nanoseconds lease) noexcept;

enum class isolation : std::uint8_t { read_committed, repeatable_read };

class connection;

/// Rolls back when it goes out of scope without a `commit`. Sent with the first statement.
class transaction {
public:
    transaction(transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
    transaction& operator=(transaction&&) = delete;
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction();

    /// An error leaves nothing written, unless it is in doubt.
    result<void> commit();

    /// As `commit`, with the last statements in the same round trip.
    result<std::vector<rows>> commit_with(std::span<const statement> last);

private:
    friend class connection;
    explicit transaction(connection& c) : connection_(&c) {}
    connection* connection_;
};

class connection {
public:
    /// Tries each host for the time of `connect_timeout`. `stop` must outlive the connection.
    [[nodiscard]] static result<connection> open(
        const server& where, const stop_signal& stop, limits given = {}
    );

    connection(connection&&) noexcept;
    connection& operator=(connection&&) noexcept;
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// One round trip, one transaction of its own (or a part of the one that was begun).
    [[nodiscard]] result<rows> run(const statement& what);

    /// One round trip, one transaction: all or nothing.
    [[nodiscard]] result<std::vector<rows>> run_together(std::span<const statement> batch);

    /// One at a time.
    [[nodiscard]] transaction begin(isolation level = isolation::read_committed);

    /// From the next transaction on.
    void set_limits(limits given);
    [[nodiscard]] const limits& present_limits() const noexcept;

    /// False: nothing can be run any more; make a new one.
    [[nodiscard]] bool usable() const noexcept;

    /// What was remembered with it is not to be trusted any more; its owner makes a new one.
    void close() noexcept;

    /// Looks, without waiting, whether the server has closed it.
    [[nodiscard]] bool still_open();

    /// The SQLSTATE of the server's first refusal in the last round trip; empty when there was none.
    [[nodiscard]] const std::string& last_refusal() const noexcept;

    /// Which connection of its owner this is, 1 for the first: what was remembered of an earlier one is void.
    [[nodiscard]] std::uint64_t number() const noexcept;
    void set_number(std::uint64_t number) noexcept;

    [[nodiscard]] const std::string& name() const noexcept;  ///< Of the server, for messages.

    struct impl;

private:
    friend class transaction;
    explicit connection(std::unique_ptr<impl> made);
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::postgres
