#include "application_connection.hpp"
#include "lease_layout.hpp"

#include <millrace/postgres_checkpoint.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <libpq-fe.h>

namespace millrace {

using postgres::effect;
using postgres::rows;
using postgres::run_on;
using postgres::run_script;
using postgres::statement;

namespace {

// The owner acts until a fifth of the lease before its end, and then what it may have left open ends with it.
constexpr int limit_share = 5;

std::int64_t limit_ms(nanoseconds lease) {
    return std::max<std::int64_t>(1, std::chrono::floor<milliseconds>(lease).count() / limit_share);
}

result<void> roll_back_rest(PGconn* db) {
    if (PQtransactionStatus(db) == PQTRANS_IDLE) return {};
    return run_script(db, "ROLLBACK", "roll back an earlier transaction in").map([](const rows&) {});
}

/// The error of a step after which the transaction cannot go on.
tl::unexpected<error> given_up(PGconn* db, error why) {
    if (PQstatus(db) == CONNECTION_OK) static_cast<void>(roll_back_rest(db));
    why.in_doubt = false;  // its COMMIT was never sent
    return tl::unexpected(std::move(why));
}

/// In its own transaction alone, so nothing is left to a pooler's next client.
result<void> begin_limited(PGconn* db, std::string_view mode, std::int64_t lock_ms, std::int64_t idle_ms) {
    const auto begun = run_script(
        db,
        fmt::format(
            "BEGIN{}; SET LOCAL lock_timeout = {}; SET LOCAL idle_in_transaction_session_timeout = {}; "
            "SELECT set_config('synchronous_commit', 'local', true) WHERE "
            "current_setting('synchronous_commit') = 'off'",
            mode,
            lock_ms,
            idle_ms
        ),
        "begin a transaction in"
    );
    if (!begun) return given_up(db, begun.error());
    return {};
}

std::uint64_t random_bits() {
    std::random_device source;
    return (static_cast<std::uint64_t>(source()) << 32U) | source();
}

std::string shown(const std::optional<position>& at) {
    return at ? fmt::format("{}.{}", at->sequence.to_string(), at->sub_sequence) : "the start";
}

/// A position as columns, which a statement refers to.
struct columns_of {
    explicit columns_of(const std::optional<position>& at) {
        if (!at) return;
        sequence = at->sequence.to_string();
        sub_sequence = at->sub_sequence;
    }
    std::optional<std::string> sequence;
    std::optional<std::uint64_t> sub_sequence;
};

}  // namespace

/// What the row says.
struct postgres_checkpoint::standing {
    bool ours{false};
    std::optional<position> at;
};

postgres_checkpoint::postgres_checkpoint(const shard_grant& grant, const checkpoint_place& place)
    : shard_(grant.shard),
      epoch_(grant.epoch),
      owner_(grant.owner),
      place_(place),
      table_(postgres::lease_tables_of(place.schema).shard),
      reached_(grant.checkpoint) {}

result<postgres_checkpoint> postgres_checkpoint::open(const shard_grant& grant) {
    if (grant.place && !grant.owner.value().empty()) return postgres_checkpoint(grant, *grant.place);
    return fail(
        errc::invalid_argument,
        fmt::format(
            "the runtime writes the checkpoints of shard \"{}\"; set `checkpoints` of shard_options to "
            "`handler`",
            grant.shard.value()
        )
    );
}

result<void> postgres_checkpoint::begin(PGconn* db, const delivery& how) {
    if (in_doubt_) {
        return fail(
            errc::conflict,
            fmt::format(
                "the last commit of shard \"{}\" is in doubt; ask `committed` on a new connection first",
                shard_.value()
            )
        );
    }
    pending_.reset();
    if (how.epoch != epoch_ || !how.still_owner()) return tl::unexpected(not_ours());
    if (auto clean = roll_back_rest(db); !clean) return clean;
    const auto limit = limit_ms(place_.lease);
    return begin_limited(db, "", limit, limit);
}

result<void> postgres_checkpoint::advance(PGconn* db, const delivery& how, const record& last) {
    if (has(last)) {
        return given_up(
            db,
            {errc::invalid_argument,
             retry_advice::never,
             false,
             fmt::format(
                 "the checkpoint of shard \"{}\" stands at {}; it cannot move to {}",
                 shard_.value(),
                 shown(reached_),
                 shown(last.position)
             )}
        );
    }
    if (PQtransactionStatus(db) != PQTRANS_INTRANS) {
        const bool failed = PQtransactionStatus(db) == PQTRANS_INERROR;
        return given_up(
            db,
            {errc::unavailable,
             retry_advice::now,
             false,
             rolled_back(failed ? "one of its statements had failed" : "it has not begun on this connection")}
        );
    }
    if (how.epoch != epoch_ || !how.still_owner()) return given_up(db, not_ours());
    const columns_of to(last.position);
    const columns_of from(reached_);
    auto update = statement(
                      fmt::format(
                          "UPDATE {} SET sequence = $1, sub_sequence = $2, arrival = $3, version = version + "
                          "1, write_id = $4, updated_at = statement_timestamp() WHERE stream = $5 AND "
                          "group_name = $6 AND shard = $7 AND owner = $8 AND epoch = $9 AND sequence IS NOT "
                          "DISTINCT FROM $10 AND sub_sequence IS NOT DISTINCT FROM $11",
                          table_
                      ),
                      effect::writes,
                      "write the checkpoint in"
    )
                      .with(to.sequence, to.sub_sequence, last.arrival, random_bits())
                      .with(place_.stream, place_.group, shard_.value(), owner_.value(), epoch_.value())
                      .with(from.sequence, from.sub_sequence);
    const auto done = run_on(db, update);
    if (!done) return given_up(db, done.error());
    if (done->affected() == 1) {
        pending_ = last.position;
        return {};
    }
    const auto now = look(db, false);
    if (!now) return given_up(db, now.error());
    if (!now->ours) return given_up(db, not_ours());
    pending_ = last.position;
    in_doubt_ = true;
    return given_up(
        db,
        {errc::conflict,
         retry_advice::now,
         false,
         fmt::format(
             "the checkpoint of shard \"{}\" stands at {}, and this handler knew of {}; an earlier commit "
             "has landed: ask `committed`",
             shard_.value(),
             shown(now->at),
             shown(reached_)
         )}
    );
}

result<void> postgres_checkpoint::commit(PGconn* db) {
    if (!pending_ || in_doubt_) {
        return fail(errc::invalid_argument, "there is nothing to commit; call `advance` first");
    }
    if (PQtransactionStatus(db) == PQTRANS_IDLE || PQstatus(db) != CONNECTION_OK) {
        pending_.reset();
        return fail(errc::unavailable, rolled_back("its connection was lost"), retry_advice::now);
    }
    const auto done = run_script(db, "COMMIT", "commit the checkpoint in");
    if (done && done->tag() == "COMMIT") {
        reached_ = std::exchange(pending_, std::nullopt);
        return {};
    }
    // Refused, and the connection stands: nothing of it happened. Otherwise nobody has said so.
    if (!done && (done.error().in_doubt || PQstatus(db) != CONNECTION_OK)) {
        in_doubt_ = true;
        auto why = done.error();
        why.in_doubt = true;
        why.detail += "; ask `committed` on a new connection whether it took effect";
        return tl::unexpected(std::move(why));
    }
    pending_.reset();
    if (!done) return tl::unexpected(done.error());
    return fail(errc::unavailable, rolled_back("one of its statements had failed"), retry_advice::now);
}

void postgres_checkpoint::roll_back(PGconn* db) {
    if (in_doubt_) return;
    pending_.reset();
    // A connection that is lost has lost its transaction with it.
    static_cast<void>(roll_back_rest(db));
}

result<bool> postgres_checkpoint::committed(PGconn* db) {
    if (!in_doubt_) return true;
    if (auto clean = roll_back_rest(db); !clean) return tl::unexpected(clean.error());
    const auto now = look(db, true);
    if (!now) return tl::unexpected(now.error());
    const bool in = now->at >= pending_;
    if (!now->ours && !in) return tl::unexpected(not_ours());
    if (now->at < reached_) {
        return fail(
            errc::conflict,
            fmt::format(
                "the checkpoint of shard \"{}\" stands at {}, before {}, which was committed: the server has "
                "lost commits, or somebody wrote the row; stop this worker, so that the shard is read from "
                "there",
                shard_.value(),
                shown(now->at),
                shown(reached_)
            )
        );
    }
    reached_ = now->at;
    in_doubt_ = false;
    return in;
}

/// `waits`: for the end of every transaction that has written the row.
result<postgres_checkpoint::standing> postgres_checkpoint::look(PGconn* db, bool waits) const {
    if (waits) {
        // Longer than the transaction waited for can last, which began earlier.
        const auto limit = limit_ms(place_.lease);
        const auto begun = begin_limited(db, " ISOLATION LEVEL READ COMMITTED", 2 * limit, limit);
        if (!begun) return tl::unexpected(begun.error());
    }
    const auto found = run_on(
        db,
        statement(
            fmt::format(
                "SELECT owner = $1 AND epoch = $2, sequence, sub_sequence FROM {} WHERE stream = $3 AND "
                "group_name = $4 AND shard = $5{}",
                table_,
                waits ? " FOR SHARE" : ""
            ),
            effect::reads,
            "read the checkpoint in"
        )
            .with(owner_.value(), epoch_.value(), place_.stream, place_.group, shard_.value())
    );
    if (!found) return given_up(db, found.error());
    if (waits) static_cast<void>(roll_back_rest(db));
    standing now;
    if (found->empty()) return now;
    now.ours = found->boolean(0, 0).value_or(false);
    if (found->is_null(0, 1)) return now;
    auto sequence = sequence_number::parse(found->text(0, 1));
    if (!sequence) return tl::unexpected(std::move(sequence.error()));
    now.at = position{*sequence, static_cast<std::uint64_t>(found->integer(0, 2).value_or(0))};
    return now;
}

std::string postgres_checkpoint::rolled_back(std::string_view why) const {
    return fmt::format(
        "the transaction of shard \"{}\" was rolled back, since {}; it is tried again", shard_.value(), why
    );
}

error postgres_checkpoint::not_ours() const {
    return {
        errc::not_owner,
        retry_advice::never,
        false,
        fmt::format(
            "shard \"{}\" is no longer this worker's under epoch {}; its records come again where it is",
            shard_.value(),
            epoch_.value()
        )};
}

}  // namespace millrace
