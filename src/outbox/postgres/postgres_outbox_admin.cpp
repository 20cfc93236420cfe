#include "postgres_outbox_admin.hpp"

#include "outbox_put.hpp"
#include "outbox_session.hpp"
#include "postgres_outbox_schema.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace millrace {

using postgres::connection;
using postgres::effect;
using postgres::outbox_layout;
using postgres::quote_literal;
using postgres::statement;

namespace {

/// People wait for it, and it may count many rows.
postgres::limits patient(milliseconds wait) {
    return {
        .statement = milliseconds{600'000},
        .lock = std::max(wait, milliseconds{1}),  // 0 would be for ever
        .idle_in_transaction = milliseconds{60'000},
        .reply = milliseconds{610'000},
        .commit = postgres::durability::durable};
}

/// Gives a host that says nothing no longer than `wait`, or the 2 s that libpq needs at least.
postgres::server with_wait(postgres::server where, milliseconds wait) {
    const auto most = std::max<std::int64_t>(2, std::chrono::ceil<std::chrono::seconds>(wait).count());
    for (auto& [keyword, value] : where.parameters) {
        std::int64_t given = 0;
        if (keyword != "connect_timeout") continue;
        (void)std::from_chars(value.data(), value.data() + value.size(), given);
        if (given <= 0 || given > most) value = std::to_string(most);
    }
    return where;
}

postgres::table_name table_of(const postgres::server& where) {
    return where.table.value_or(postgres::table_name{"", "outbox"});
}

}  // namespace

postgres_outbox_admin::postgres_outbox_admin(
    std::unique_ptr<postgres::stop_signal> stop, connection db, outbox_layout layout
)
    : stop_(std::move(stop)),
      db_(std::move(db)),
      layout_(std::move(layout)),
      tables_(layout_.table.schema),
      name_(quote_literal(layout_.table.table)) {}

result<postgres_outbox_admin> postgres_outbox_admin::init(const postgres::server& where, milliseconds wait) {
    auto stop = std::make_unique<postgres::stop_signal>();
    auto db = connection::open(with_wait(where, wait), *stop, patient(wait));
    if (!db) return tl::unexpected(std::move(db.error()));
    auto made = postgres::create_outbox(*db, table_of(where));
    if (!made) return tl::unexpected(std::move(made.error()));
    return postgres_outbox_admin(std::move(stop), std::move(*db), std::move(*made));
}

result<postgres_outbox_admin> postgres_outbox_admin::open(
    const postgres::server& where, milliseconds wait, bool only_puts
) {
    auto stop = std::make_unique<postgres::stop_signal>();
    auto db = connection::open(with_wait(where, wait), *stop, patient(wait));
    if (!db) return tl::unexpected(std::move(db.error()));
    auto found = postgres::find_layout(*db, table_of(where));
    if (!found) return tl::unexpected(std::move(found.error()));
    if (!only_puts) {
        if (auto usable = postgres::ensure_relay_tables(*db, *found); !usable) {
            return tl::unexpected(std::move(usable.error()));
        }
    }
    return postgres_outbox_admin(std::move(stop), std::move(*db), std::move(*found));
}

result<std::string> postgres_outbox_admin::script(
    const postgres::server& where, std::string_view writer, std::string_view relay
) {
    const postgres::stop_signal never;
    auto db = connection::open(where, never, patient(wait_default));
    if (db) return postgres::outbox_script(*db, table_of(where), writer, relay);
    return "-- The server could not be asked: this is for a table that is not there yet.\n" +
           postgres::outbox_script(table_of(where), writer, relay);
}

result<std::optional<row_id>> postgres_outbox_admin::put(std::span<const event> events) {
    return postgres::put_events(db_, layout_, events);
}

result<outbox_stats> postgres_outbox_admin::stats() {
    const auto created = layout_.created ? "o." + layout_.created->name : "NULL::timestamptz";
    std::vector<statement> batch;
    batch.emplace_back(
        fmt::format(
            "SELECT (SELECT count(*) FROM {0}), (SELECT count(*) FROM {1} WHERE outbox = {3}), (SELECT "
            "count(*) FROM {2} WHERE outbox = {3}), (SELECT (extract(epoch FROM clock_timestamp() - {4}) * "
            "1000000)::bigint FROM {0} o ORDER BY o.id LIMIT 1)",
            layout_.table.quoted(),
            tables_.dead,
            tables_.parked,
            name_,
            created
        ),
        effect::reads,
        "count the outbox in"
    );
    batch.emplace_back(
        fmt::format(
            "SELECT topic FROM {} WHERE outbox = {} ORDER BY topic COLLATE \"C\"", tables_.paused, name_
        ),
        effect::reads,
        "read the pauses of the outbox in"
    );
    auto reading = db_.begin(postgres::isolation::repeatable_read);
    const auto found = reading.commit_with(batch);
    if (!found) return tl::unexpected(found.error());
    const auto& counts = found->front();
    const auto count = [&](int column) {
        return static_cast<std::uint64_t>(counts.integer(0, column).value_or(0));
    };
    outbox_stats stats;
    stats.backlog = count(0);
    stats.dead = count(1);
    stats.parked_lanes = count(2);
    if (const auto micros = counts.integer(0, 3)) {
        stats.oldest_age = std::chrono::microseconds{std::max<std::int64_t>(0, *micros)};
    }
    const auto& paused = found->back();
    for (std::size_t i = 0; i < paused.size(); ++i) {
        auto topic = paused.text(i, 0);
        if (topic.empty()) {
            stats.paused = true;
        } else {
            stats.paused_topics.push_back(std::move(topic));
        }
    }
    return stats;
}

statement postgres_outbox_admin::note_change() const {
    return {
        fmt::format(
            "UPDATE {} SET replay_generation = replay_generation + 1 WHERE outbox = {}", tables_.outbox, name_
        ),
        effect::writes,
        "tell the relays of a change in"};
}

result<bool> postgres_outbox_admin::pause(const std::optional<std::string>& topic) {
    const auto done =
        db_.run(statement(
                    fmt::format(
                        "INSERT INTO {} (outbox, topic, paused_at) VALUES ({}, $1, clock_timestamp()) ON "
                        "CONFLICT DO NOTHING",
                        tables_.paused,
                        name_
                    ),
                    effect::writes,
                    "pause the outbox in"
        )
                    .with(topic.value_or("")));
    if (!done) return tl::unexpected(done.error());
    return done->affected() > 0;
}

result<bool> postgres_outbox_admin::resume(const std::optional<std::string>& topic) {
    auto resuming = db_.begin();
    const auto ended =
        db_.run(statement(
                    fmt::format("DELETE FROM {} WHERE outbox = {} AND topic = $1", tables_.paused, name_),
                    effect::writes,
                    "resume the outbox in"
        )
                    .with(topic.value_or("")));
    if (!ended) return tl::unexpected(ended.error());
    const auto note = note_change();
    const bool was = ended->affected() > 0;
    const auto done = was ? resuming.commit_with({&note, 1}) : resuming.commit_with({});
    if (!done) return tl::unexpected(done.error());
    return was;
}

}  // namespace millrace
