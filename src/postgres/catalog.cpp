#include "catalog.hpp"

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

/// Of the oldest transaction but ours that has more than read the table.
constexpr const char* blocker_sql =
    "SELECT l.pid, coalesce(a.state, ''), floor(extract(epoch FROM clock_timestamp() - "
    "a.xact_start))::bigint, to_char(a.query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
    "FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid "
    "WHERE l.locktype = 'relation' AND l.relation = to_regclass($1) AND l.granted "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND l.mode <> 'AccessShareLock' AND l.pid IS DISTINCT FROM pg_backend_pid() "
    "ORDER BY a.xact_start LIMIT 1";

std::string blocker_of(const rows& found, const table_name& table) {
    const auto pid = found.integer(0, 0);
    if (!pid) return fmt::format("; a prepared transaction holds a lock on {}", table.shown());
    auto text = fmt::format("; pid {} holds a lock on {}", *pid, table.shown());
    if (const auto seconds = found.integer(0, 2)) text += fmt::format(" since {} s", *seconds);
    if (const auto state = found.text(0, 1); !state.empty()) text += fmt::format(" and is {}", state);
    if (const auto query = found.text(0, 3); !query.empty())
        text += fmt::format("; its present or latest statement began at {}", query);
    return text;
}

}  // namespace

result<found_table> find_table(connection& db, const table_name& given, std::string_view advice) {
    auto found =
        db.run(statement(
                   "SELECT c.oid, n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON "
                   "n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
                   effect::reads,
                   fmt::format("look for table \"{}\" in", given.shown())
        )
                   .with(given.quoted()));
    if (!found) return tl::unexpected(std::move(found.error()));
    const auto oid = found->empty() ? std::nullopt : found->integer(0, 0);
    if (!oid) {
        return fail(
            errc::not_found,
            fmt::format("there is no table \"{}\" in {}; {}", given.shown(), db.name(), advice),
            retry_advice::after_delay
        );
    }
    return found_table{*oid, {found->text(0, 1), found->text(0, 2)}};
}

error name_blocker(connection& db, error refused, const table_name& table) {
    const auto state = db.last_refusal();
    if (!db.usable() || (state != "55P03" && state != "57014")) return refused;
    const auto found =
        db.run(statement(blocker_sql, effect::reads, "look for locks in").with(table.quoted()));
    if (found && !found->empty()) refused.detail += blocker_of(*found, table);
    return refused;
}

}  // namespace millrace::postgres
