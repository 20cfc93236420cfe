/// Writes a shard's checkpoint inside the handler's own PostgreSQL transaction, so that what the handler
/// writes beside it happens exactly once. Part of the component `postgres`.
///
/// For `checkpoint_writer::handler` (options.hpp). The group's state must be in the database that the effects
/// are in. The order is `begin`, the effects, `advance`, `commit`, all on one connection and without another
/// statement between the last two: until the end of the transaction the row is locked, also for a worker that
/// is to take over. Whatever fails, the handler returns the error, and its records come again. One object a
/// grant, made in `record_handler::assigned`. Not thread-safe: it is for the calls of `handle` of its shard,
/// which never overlap. The connection must not be in pipeline mode.
#pragma once

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/names.hpp>
#include <millrace/position.hpp>
#include <millrace/record.hpp>

#include <optional>
#include <string>
#include <string_view>

struct pg_conn;  // libpq's PGconn

namespace millrace {

class postgres_checkpoint {
public:
    /// `invalid_argument` when the grant is of a group whose checkpoints the runtime writes.
    [[nodiscard]] static result<postgres_checkpoint> open(const shard_grant& grant);

    /// Up to here everything is committed.
    [[nodiscard]] const std::optional<position>& reached() const noexcept { return reached_; }

    /// Whether the record's effects are committed already, so that it is to be skipped: it was delivered
    /// again after a later record of its batch, or the acknowledgement, failed.
    [[nodiscard]] bool has(const record& one) const noexcept { return reached_ && one.position <= *reached_; }

    /// Begins the handler's transaction on an open connection. A fifth of the lease limits each wait for a
    /// lock and each pause between its statements (`lock_timeout`, `idle_in_transaction_session_timeout`),
    /// so that a process that is stopped holds nothing for longer; narrow them if you like.
    /// `not_owner` when the shard is no longer ours, `conflict` while a commit is `in_doubt`.
    [[nodiscard]] result<void> begin(pg_conn* db, const delivery& how);

    /// Moves the checkpoint to this record: all up to it have had their effects, here or earlier. The last
    /// statement before `commit`. Errors roll back: `not_owner` when another worker has the shard;
    /// `conflict` when the row does not stand at `reached`, then ask `committed`.
    [[nodiscard]] result<void> advance(pg_conn* db, const delivery& how, const record& last);

    /// Commits what `advance` ended. An error that is not in doubt: nothing of it happened. When the reply is
    /// lost the error is in doubt: ask `committed` before anything else.
    [[nodiscard]] result<void> commit(pg_conn* db);

    /// Ends what `begin` began after an effect has failed; the next `begin` would, too, but on its connection
    /// alone.
    void roll_back(pg_conn* db);

    /// A commit's reply was lost, or the row was not as expected: `committed` tells.
    [[nodiscard]] bool in_doubt() const noexcept { return in_doubt_; }

    /// Whether what the last `advance` ended is committed, read on another connection, or the same after
    /// PQreset. It waits for the end of the transaction in doubt, so the answer is final; true also when it
    /// was in doubt no more. `not_owner` when it is not and never will be by this worker, `unavailable` when
    /// it cannot be told yet.
    [[nodiscard]] result<bool> committed(pg_conn* db);

private:
    postgres_checkpoint(const shard_grant& grant, const checkpoint_place& place);
    struct standing;
    [[nodiscard]] result<standing> look(pg_conn* db, bool waits) const;
    [[nodiscard]] std::string rolled_back(std::string_view why) const;
    [[nodiscard]] error not_ours() const;

    shard_id shard_;
    millrace::epoch epoch_;
    incarnation owner_;
    checkpoint_place place_;
    std::string table_;  // quoted
    std::optional<position> reached_;
    std::optional<position> pending_;  // of the transaction under way, or in doubt
    bool in_doubt_{false};
};

}  // namespace millrace
