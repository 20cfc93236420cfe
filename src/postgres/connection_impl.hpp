/// What stands behind `connection`: libpq's handle, and waits that end by time or by the stop signal.
///
/// For the .cpp files of this folder.
#pragma once

#include "connection.hpp"
#include "plans.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace millrace::postgres {

using steady = std::chrono::steady_clock;

enum class waited : std::uint8_t { ready, late, stopped };

/// Waits until one of the `poll` events stands on the socket.
[[nodiscard]] waited wait_for(int socket, short events, steady::time_point until, const stop_signal& stop);

/// Asks the server, by a connection apart and without waiting, to cancel what the connection runs.
void request_cancel(PGconn* of);

struct finish {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
};
using handle = std::unique_ptr<PGconn, finish>;

/// Statements up to one Sync: they take effect together, unless a transaction was begun.
struct group {
    std::vector<const statement*> statements;
    bool writes{false};  ///< A lost reply leaves it in doubt.

    enum class part : std::uint8_t {
        whole,   ///< A transaction of its own.
        first,   ///< Begins one.
        further  ///< Of one that an earlier group has begun.
    };
    part of{part::whole};
};

struct connection::impl {
    impl(handle made, std::string name, const stop_signal& stop_by, limits given);

    /// One round trip; a second one without kept plans when the server refuses those.
    result<std::vector<rows>> exchange(const group& what);
    result<std::vector<rows>> roll_back();

    /// Statements of one group, with what must stand before it and, with `commit`, behind it.
    result<std::vector<rows>> run_group(std::span<const statement> batch, const statement* commit);

    void set_limits(limits given);
    [[nodiscard]] const statement& limits_before(std::span<const statement> batch) const;

    handle db;
    std::string name;
    const stop_signal* stop;
    limits present;
    /// What sets the limits: in each transaction, or once in a session that is always the same.
    struct limit_statements {
        explicit limit_statements(const limits& of);
        statement local, local_once;  ///< `once`: where the plans of all statements are kept.
        statement session, session_once;
    };
    limit_statements limits_to_set;
    std::string in_session;  ///< The text that has set what stands in the session; empty: unknown.
    plans kept;
    std::uint64_t number{0};
    std::string last_refusal;  ///< SQLSTATE of the first refusal in the last round trip.

    enum class stage : std::uint8_t {
        none,    ///< Every group is a transaction of its own.
        wanted,  ///< `begin` was called, and nothing was sent.
        open
    };
    stage stage{stage::none};
    isolation level{isolation::read_committed};
    bool wrote{false};  ///< The open transaction has sent a statement that writes.

private:
    struct reply;

    /// What goes to the server for a group: its statements, and before them what prepares them.
    struct step {
        enum class kind : std::uint8_t { clear, prepare, run };
        kind does;
        const statement* what;
        plans::plan* plan{nullptr};  ///< Null: unnamed.
    };

    result<std::vector<rows>> attempt(const group& what, bool with_plans);
    [[nodiscard]] std::vector<step> steps_of(const group& what, bool with_plans);
    bool send(const std::vector<step>& steps);
    /// False: nothing more will come from the server.
    bool flush(steady::time_point until);
    PGresult* next(steady::time_point until);
    void read_group(const std::vector<step>& steps, steady::time_point until, reply& into);
    void read_step(const step& of, steady::time_point until, reply& into);
    void take(const step& of, PGresult* owned, reply& into);
    void note(const statement& what, const PGresult* refusal, reply& into);
    [[nodiscard]] error lost(const group& what) const;
    void close();

    waited gave_up{waited::ready};  ///< Why the connection was closed by this side.
};

}  // namespace millrace::postgres
