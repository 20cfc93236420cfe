#include "sqlite_outbox_admin.hpp"

#include "outbox_headers.hpp"
#include "outbox_pauses.hpp"
#include "outbox_schema.hpp"

#include <millrace/outbox.hpp>

#include <utility>

#include <fmt/format.h>

namespace millrace {

using sqlite::blob_view;
using sqlite::database;
using sqlite::statement;
using sqlite::transaction_kind;

namespace {

constexpr const char* when_missing = "create it with `millrace outbox init`, or check the path";

// Two rows are of one lane when topic, the bytes of the key, and partition are the same. `p` is a parked
// lane.
#define MILLRACE_SQL_IN_PARKED_LANE                                                                        \
    "p.topic = d.topic AND p.key = CAST(d.key AS BLOB) AND IFNULL(p.partition, -1) = IFNULL(d.partition, " \
    "-1)"

#define MILLRACE_SQL_DEAD(payload)                                                                         \
    "SELECT id, topic, key, " payload                                                                      \
    ", partition, created_at, reason, error, attempts, first_at, last_at FROM outbox_dead WHERE rowid IN " \
    "(SELECT id FROM temp.chosen) ORDER BY id, rowid LIMIT ?"
#define MILLRACE_SQL_OLDER "SELECT 1 FROM outbox_dead e WHERE e.id = d.id AND e.rowid < d.rowid"

wall_time wall(std::int64_t millis) {
    return wall_time{milliseconds{millis}};
}

std::optional<std::string> copy(const std::optional<std::string_view>& bytes) {
    if (!bytes) return std::nullopt;
    return std::string(*bytes);
}

dead_event dead_at(const statement& row) {
    dead_event dead;
    dead.id = row_id{row.integer(0)};
    dead.event.topic = row.text(1);
    dead.event.key = copy(row.maybe_bytes(2));
    dead.event.value = copy(row.maybe_bytes(3));
    if (auto headers = headers_from_json(row.bytes(4)); headers) {
        dead.event.headers = std::move(*headers);
    } else {
        dead.broken_headers = std::move(headers.error().detail);
        dead.stored_headers = row.bytes(4);
    }
    if (!row.is_null(5)) dead.event.partition = static_cast<std::int32_t>(row.integer(5));
    dead.created_at = wall(row.integer(6));
    dead.reason = row.text(7);
    dead.error = row.text(8);
    dead.attempts = static_cast<std::uint32_t>(row.integer(9));
    dead.first_at = wall(row.integer(10));
    dead.last_at = wall(row.integer(11));
    return dead;
}

}  // namespace

result<sqlite_outbox_admin> sqlite_outbox_admin::init(
    const std::string& path, sqlite_outbox_admin_options options
) {
    auto db = database::open(
        path,
        {.mode = sqlite::open_mode::create,
         .busy_timeout = options.busy_timeout,
         .name = std::move(options.name)}
    );
    if (!db) return tl::unexpected(std::move(db.error()));
    if (auto made = outbox_schema::create(db->handle(), db->name()); !made) {
        return tl::unexpected(std::move(made.error()));
    }
    return sqlite_outbox_admin(std::move(*db));
}

result<sqlite_outbox_admin> sqlite_outbox_admin::open(
    const std::string& path, sqlite_outbox_admin_options options
) {
    auto db = database::open(
        path,
        {.mode = options.only_reads ? sqlite::open_mode::to_read : sqlite::open_mode::must_exist,
         .busy_timeout = options.busy_timeout,
         .name = std::move(options.name),
         .when_missing = when_missing}
    );
    if (!db) return tl::unexpected(std::move(db.error()));
    if (auto usable = outbox_schema::check(db->handle(), db->name()); !usable) {
        return tl::unexpected(std::move(usable.error()));
    }
    return sqlite_outbox_admin(std::move(*db));
}

result<std::optional<row_id>> sqlite_outbox_admin::put(std::span<const event> events) {
    auto writing = db_.begin(transaction_kind::immediate);
    if (!writing) return tl::unexpected(std::move(writing.error()));
    auto writer =
        outbox_writer::open(db_.handle(), {.event_bytes_max = outbox_writer_options::event_bytes_limit});
    if (!writer) return tl::unexpected(std::move(writer.error()));
    std::optional<row_id> last;
    for (const auto& e : events) {
        auto added = writer->add(e);
        if (!added) return tl::unexpected(std::move(added.error()));
        last = *added;
    }
    return writing->commit().map([&] { return last; });
}

result<outbox_stats> sqlite_outbox_admin::stats() {
    auto snapshot = db_.begin(transaction_kind::deferred);
    if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
    auto found = db_.prepare(
        "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM outbox_dead), "
        "(SELECT count(*) FROM outbox_parked), "
        "(SELECT " MILLRACE_SQL_NOW " - created_at FROM outbox ORDER BY id LIMIT 1)"
    );
    if (!found) return tl::unexpected(std::move(found.error()));
    const auto row = found->step();
    if (!row) return tl::unexpected(row.error());
    outbox_stats stats;
    stats.backlog = static_cast<std::uint64_t>(found->integer(0));
    stats.dead = static_cast<std::uint64_t>(found->integer(1));
    stats.parked_lanes = static_cast<std::uint64_t>(found->integer(2));
    if (!found->is_null(3)) stats.oldest_age = milliseconds{std::max<std::int64_t>(0, found->integer(3))};
    auto paused = outbox_pauses::read(db_);
    if (!paused) return tl::unexpected(std::move(paused.error()));
    stats.paused = paused->everything;
    stats.paused_topics = std::move(paused->topics);
    return stats;
}

// By row, as an id may stand for several; `oldest`: where ids are named, only the oldest of each.
result<void> sqlite_outbox_admin::select(const dead_selection& which, bool oldest) {
    auto done = db_.execute(
        "CREATE TEMP TABLE IF NOT EXISTS wanted (id INTEGER PRIMARY KEY);"
        "CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY);"
        "CREATE TEMP TABLE IF NOT EXISTS touched (lane INTEGER PRIMARY KEY);"
        "DELETE FROM temp.wanted; DELETE FROM temp.chosen; DELETE FROM temp.touched"
    );
    for (const auto id : which.ids) {
        if (done) done = db_.run("INSERT OR IGNORE INTO temp.wanted (id) VALUES (?)", id.value());
    }
    const auto key = which.key ? std::optional(blob_view{*which.key}) : std::nullopt;
    if (done) {
        done = db_.run(
            "INSERT INTO temp.chosen (id) SELECT rowid FROM outbox_dead d WHERE "
            "(?1 OR (id IN (SELECT id FROM temp.wanted) AND (NOT ?4 OR NOT EXISTS (" MILLRACE_SQL_OLDER
            ")))) AND (?2 IS NULL OR topic = ?2) AND (?3 IS NULL OR CAST(key AS BLOB) = ?3)",
            which.ids.empty(),
            which.topic,
            key,
            oldest
        );
    }
    if (!done) return done;
    return db_.run(
        "INSERT OR IGNORE INTO temp.touched (lane) SELECT p.rowid FROM temp.chosen c, outbox_dead d, "
        "outbox_parked p WHERE d.rowid = c.id AND " MILLRACE_SQL_IN_PARKED_LANE
    );
}

result<std::vector<dead_event>> sqlite_outbox_admin::list_dead(
    const dead_selection& which, std::size_t limit, dead_part part
) {
    auto snapshot = db_.begin(transaction_kind::deferred);
    if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
    if (auto done = select(which, false); !done) return tl::unexpected(std::move(done.error()));
    auto found = db_.prepare(
        part == dead_part::whole ? MILLRACE_SQL_DEAD("value, headers") : MILLRACE_SQL_DEAD("NULL, '[]'")
    );
    if (!found) return tl::unexpected(std::move(found.error()));
    found->with(limit);
    std::vector<dead_event> dead;
    for (;;) {
        const auto row = found->step();
        if (!row) return tl::unexpected(row.error());
        if (!*row) return dead;
        dead.push_back(dead_at(*found));
    }
}

result<void> sqlite_outbox_admin::note_change() {
    return db_.run("UPDATE outbox_meta SET replay_generation = replay_generation + 1");
}

result<std::uint64_t> sqlite_outbox_admin::retry_dead(const dead_selection& which) {
    auto writing = db_.begin(transaction_kind::immediate);
    if (!writing) return tl::unexpected(std::move(writing.error()));
    auto done = select(which, true);
    if (done) {
        done = db_.run(
            "INSERT OR IGNORE INTO temp.chosen (id) SELECT d.rowid FROM outbox_dead d, outbox_parked p "
            "WHERE p.rowid IN (SELECT lane FROM temp.touched) AND " MILLRACE_SQL_IN_PARKED_LANE
        );
    }
    std::vector<row_id> staying;
    if (done) done = leave_what_does_not_fit(staying);
    if (done) done = db_.run("DELETE FROM outbox_parked WHERE rowid IN (SELECT lane FROM temp.touched)");
    if (done) {
        done = db_.run(
            "INSERT INTO outbox (id, topic, key, value, headers, partition, created_at) "
            "SELECT id, topic, key, value, headers, partition, created_at FROM outbox_dead "
            "WHERE rowid IN (SELECT id FROM temp.chosen)"
        );
    }
    if (done) done = db_.run("DELETE FROM outbox_dead WHERE rowid IN (SELECT id FROM temp.chosen)");
    const auto moved = done ? db_.changes() : 0;
    if (done && moved > 0) done = note_change();
    if (done) done = writing->commit();
    if (done && !staying.empty()) return tl::unexpected(dead_that_stay(moved, staying));
    return done.map([&] { return moved; });
}

// A lane goes back as a whole or not at all.
result<void> sqlite_outbox_admin::leave_what_does_not_fit(std::vector<row_id>& staying) {
    auto done = db_.execute(
        "CREATE TEMP TABLE IF NOT EXISTS unfit (id INTEGER PRIMARY KEY); DELETE FROM temp.unfit;"
        "INSERT INTO temp.unfit (id) SELECT d.rowid FROM outbox_dead d WHERE d.rowid IN (SELECT id FROM "
        "temp.chosen) AND (EXISTS (SELECT 1 FROM outbox o WHERE o.id = d.id) OR EXISTS (" MILLRACE_SQL_OLDER
        "));"
        "DELETE FROM temp.touched WHERE lane IN (SELECT p.rowid FROM outbox_parked p, outbox_dead d WHERE "
        "d.rowid IN (SELECT id FROM temp.unfit) AND " MILLRACE_SQL_IN_PARKED_LANE
        ");"
        "INSERT OR IGNORE INTO temp.unfit (id) SELECT d.rowid FROM outbox_dead d, outbox_parked p WHERE "
        "d.rowid IN (SELECT id FROM temp.chosen) AND " MILLRACE_SQL_IN_PARKED_LANE
        " AND p.rowid NOT IN (SELECT lane FROM temp.touched);"
        "DELETE FROM temp.chosen WHERE id IN (SELECT id FROM temp.unfit)"
    );
    if (!done) return done;
    auto rows =
        db_.prepare("SELECT id FROM outbox_dead WHERE rowid IN (SELECT id FROM temp.unfit) ORDER BY id, rowid"
        );
    if (!rows) return tl::unexpected(std::move(rows.error()));
    for (;;) {
        const auto row = rows->step();
        if (!row) return tl::unexpected(row.error());
        if (!*row) return {};
        staying.emplace_back(rows->integer(0));
    }
}

result<std::uint64_t> sqlite_outbox_admin::drop_dead(const dead_selection& which) {
    auto writing = db_.begin(transaction_kind::immediate);
    if (!writing) return tl::unexpected(std::move(writing.error()));
    auto done = select(which, true);
    if (done) done = db_.run("DELETE FROM outbox_dead WHERE rowid IN (SELECT id FROM temp.chosen)");
    const auto dropped = done ? db_.changes() : 0;
    if (done) {
        done = db_.run(
            "DELETE FROM outbox_parked AS p WHERE rowid IN (SELECT lane FROM temp.touched) "
            "AND NOT EXISTS (SELECT 1 FROM outbox_dead d WHERE " MILLRACE_SQL_IN_PARKED_LANE ")"
        );
    }
    if (done && db_.changes() > 0) done = note_change();
    if (done) done = writing->commit();
    return done.map([&] { return dropped; });
}

result<bool> sqlite_outbox_admin::pause(const std::optional<std::string>& topic) {
    return db_.begin(transaction_kind::immediate).and_then([&](sqlite::transaction writing) -> result<bool> {
        auto done = outbox_pauses::add(db_, topic);
        const bool changed = done && db_.changes() > 0;
        if (done) done = writing.commit();
        return done.map([&] { return changed; });
    });
}

result<bool> sqlite_outbox_admin::resume(const std::optional<std::string>& topic) {
    return db_.begin(transaction_kind::immediate).and_then([&](sqlite::transaction writing) -> result<bool> {
        auto done = outbox_pauses::remove(db_, topic);
        const bool changed = done && db_.changes() > 0;
        if (changed) done = note_change();
        if (done) done = writing.commit();
        return done.map([&] { return changed; });
    });
}

}  // namespace millrace
