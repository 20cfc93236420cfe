#include "outbox_session.hpp"

#include "lease_layout.hpp"
#include "text/shell.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

/// Makers of tables wait for each other: at the same time, CREATE TABLE IF NOT EXISTS fails.
constexpr const char* one_at_a_time = "SELECT pg_advisory_xact_lock(1296911730, 0)";

result<bool> all_there(connection& db, const outbox_layout& layout) {
    const relay_tables tables(layout.table.schema);
    const lease_tables_of leases(layout.table.schema);
    std::string sql = "SELECT pg_is_in_recovery()";
    for (const auto* const table :
         {&tables.outbox,
          &tables.low_water,
          &tables.dead,
          &tables.parked,
          &tables.paused,
          &leases.meta,
          &leases.group,
          &leases.worker,
          &leases.shard}) {
        sql += fmt::format(", to_regclass({}) IS NOT NULL", quote_literal(*table));
    }
    const auto found = db.run({std::move(sql), effect::reads, "look for the relay's tables in"});
    if (!found) return tl::unexpected(found.error());
    constexpr int tables_count = 9;
    if (found->boolean(0, 0).value_or(false)) {
        return fail(
            errc::unavailable,
            fmt::format("{} is a standby, which takes no writes; name the primary, or promote it", db.name()),
            retry_advice::after_delay
        );
    }
    for (int i = 1; i <= tables_count; ++i) {
        if (!found->boolean(0, i).value_or(false)) return false;
    }
    return true;
}

struct versions {
    std::int64_t written;
    std::int64_t readable_by;
};

/// Nothing when the row of the outbox is missing.
result<std::optional<versions>> versions_of(connection& db, const outbox_layout& layout) {
    const relay_tables tables(layout.table.schema);
    const auto found = db.run(
        {fmt::format(
             "SELECT schema_version, readable_by FROM {} WHERE outbox = {}",
             tables.outbox,
             quote_literal(layout.table.table)
         ),
         effect::reads,
         "read the version of the outbox in"}
    );
    if (!found) return tl::unexpected(found.error());
    if (found->empty()) return std::nullopt;
    return versions{found->integer(0, 0).value_or(0), found->integer(0, 1).value_or(0)};
}

/// The command stands first: logs cut what is long.
error without_right(connection& db, const outbox_layout& layout, error why) {
    const auto asked = db.run({"SELECT current_user::text", effect::reads, "ask for the role in"});
    const auto url = fmt::format(
        "{}{}table={}", db.name(), db.name().find('?') == std::string::npos ? '?' : '&', layout.table.shown()
    );
    why.detail = fmt::format(
        "let the owner give psql what `millrace outbox init --outbox {} --print --relay-role {}` prints: the "
        "relay's own tables are missing in schema {}, and this role may not make them ({})",
        shell_quoted(url),
        shell_quoted(asked && !asked->empty() ? asked->text(0, 0) : "ROLE"),
        layout.table.schema,
        why.detail
    );
    return why;
}

result<void> make(connection& db, const outbox_layout& layout) {
    std::vector<statement> all;
    all.emplace_back(one_at_a_time, effect::writes, "wait for others that make tables in");
    for (auto& sql : relay_tables_layout(layout.table))
        all.emplace_back(std::move(sql), effect::writes, "make the relay's tables in");
    auto done = db.begin().commit_with(all);
    if (done) return {};
    if (done.error().code == errc::permission_denied) {
        return tl::unexpected(without_right(db, layout, std::move(done.error())));
    }
    return tl::unexpected(std::move(done.error()));
}

}  // namespace

result<void> ensure_relay_tables(connection& db, const outbox_layout& layout) {
    const auto there = all_there(db, layout);
    if (!there) return tl::unexpected(there.error());
    std::optional<versions> version;
    if (*there) {
        const auto found = versions_of(db, layout);
        if (!found) return tl::unexpected(found.error());
        version = *found;
    }
    if (!version) return make(db, layout);
    if (version->written < outbox_schema_known) {
        // Without the right to it the old layout serves on; `outbox init` upgrades it.
        auto done = make(db, layout);
        if (!done && done.error().code != errc::permission_denied) return done;
    }
    if (version->readable_by <= outbox_schema_known) return {};
    return fail(
        errc::wrong_version,
        fmt::format(
            "the outbox {} in {} can be read from layout {} on, and this program knows {}; use a newer "
            "program",
            layout.table.shown(),
            db.name(),
            version->readable_by,
            outbox_schema_known
        ),
        retry_advice::after_delay
    );
}

result<const outbox_session::known*> outbox_session::use(connection& db) {
    if (connection_ != db.number()) known_.reset();
    connection_ = db.number();
    if (!known_) {
        auto layout = find_layout(db, given_);
        if (!layout) return tl::unexpected(std::move(layout.error()));
        if (makes_tables_) {
            if (auto made = ensure_relay_tables(db, *layout); !made)
                return tl::unexpected(std::move(made.error()));
        }
        known_.emplace(std::move(*layout));
    }
    return &*known_;
}

}  // namespace millrace::postgres
