#include "lease_tables.hpp"

#include "lease_row_reader.hpp"
#include "port/lease_fields.hpp"
#include "sqlite_lease_store.hpp"
#include "table_check.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::lease_tables {

namespace {

using sqlite::database;
using sqlite::statement;

constexpr const char* layout = R"(
CREATE TABLE IF NOT EXISTS millrace_meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO millrace_meta (name, value) VALUES ('lease_schema', 1);

CREATE TABLE IF NOT EXISTS millrace_group (
    stream          TEXT NOT NULL,
    group_name      TEXT NOT NULL,
    format          INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    write_id        INTEGER NOT NULL,
    stream_identity TEXT NOT NULL,
    start           TEXT NOT NULL,
    start_at        INTEGER,
    epoch_floor     INTEGER NOT NULL,
    PRIMARY KEY (stream, group_name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS millrace_worker (
    stream        TEXT NOT NULL,
    group_name    TEXT NOT NULL,
    incarnation   TEXT NOT NULL,
    worker        TEXT NOT NULL,
    counter       INTEGER NOT NULL,
    write_id      INTEGER NOT NULL,
    lease_ns      INTEGER NOT NULL,
    changes       INTEGER NOT NULL,
    host          TEXT NOT NULL,
    boot_id       TEXT NOT NULL,
    pid_namespace TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    start_time    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (stream, group_name, incarnation)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS millrace_shard (
    stream       TEXT NOT NULL,
    group_name   TEXT NOT NULL,
    shard        TEXT NOT NULL,
    parents      TEXT NOT NULL,
    owner        TEXT NOT NULL,
    epoch        INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    write_id     INTEGER NOT NULL,
    sequence     TEXT,
    sub_sequence INTEGER,
    arrival      INTEGER,
    finished_at  INTEGER,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (stream, group_name, shard)
) WITHOUT ROWID;
)";

std::int64_t millis(wall_time t) {
    return t.time_since_epoch().count();
}

std::optional<std::int64_t> millis(const std::optional<wall_time>& t) {
    if (!t) return std::nullopt;
    return millis(*t);
}

std::string parents_to_json(const std::vector<shard_id>& parents) {
    boost::json::array names;
    for (const auto& parent : parents)
        names.emplace_back(parent.value());
    return boost::json::serialize(names);
}

/// Steps through all rows of a prepared, bound statement.
template <class Row, class Convert>
result<std::vector<Row>> collect(result<statement> found, Convert convert) {
    if (!found) return tl::unexpected(std::move(found.error()));
    std::vector<Row> rows;
    for (;;) {
        auto more = found->step();
        if (!more) return tl::unexpected(std::move(more.error()));
        if (!*more) return rows;
        result<Row> row = convert(*found);
        if (!row) return tl::unexpected(std::move(row.error()));
        rows.push_back(std::move(*row));
    }
}

template <class... Ts>
result<statement> prepare(database& db, const std::string& sql, const Ts&... values) {
    auto found = db.prepare(sql);
    if (found) found->with(values...);
    return found;
}

/// A conditional statement has changed one row, or its condition did not hold.
result<void> one_changed(database& db, result<void> done) {
    if (!done || db.changes() == 1) return done;
    return fail(errc::conflict, "the row is not as the writer believed; read it again and decide anew");
}

/// Writes a row of any kind: a new one, or in place of the one of the version expected.
struct write_row {
    database& db;
    const group_key& group;
    std::optional<version> expected;

    result<void> operator()(const group_row& g) const {
        return write(
            "INSERT INTO millrace_group (stream, group_name, format, version, write_id, stream_identity, "
            "start, start_at, epoch_floor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO "
            "NOTHING",
            "UPDATE millrace_group SET (format, version, write_id, stream_identity, start, start_at, "
            "epoch_floor) = (?3, ?4, ?5, ?6, ?7, ?8, ?9) "
            "WHERE stream = ?1 AND group_name = ?2 AND version = ?10",
            g.format,
            g.version.value(),
            g.write_id.value(),
            g.stream_identity,
            start_names[static_cast<std::size_t>(g.start)],
            millis(g.start_at),
            g.epoch_floor.value()
        );
    }
    result<void> operator()(const worker_row& w) const {
        return write(
            "INSERT INTO millrace_worker (stream, group_name, incarnation, worker, counter, write_id, "
            "lease_ns, changes, host, boot_id, pid_namespace, pid, start_time, updated_at) VALUES "
            "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING",
            "UPDATE millrace_worker SET (worker, counter, write_id, lease_ns, changes, host, boot_id, "
            "pid_namespace, pid, start_time, updated_at) = "
            "(?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) "
            "WHERE stream = ?1 AND group_name = ?2 AND incarnation = ?3 AND counter = ?15",
            w.incarnation.value(),
            w.worker.value(),
            w.counter.value(),
            w.write_id.value(),
            w.lease.count(),
            w.changes,
            w.process.host,
            w.process.boot_id,
            w.process.pid_namespace,
            w.process.pid,
            w.process.start_time,
            millis(w.updated_at)
        );
    }
    result<void> operator()(const shard_row& s) const {
        const auto at = columns_of(s);
        return write(
            "INSERT INTO millrace_shard (stream, group_name, shard, parents, owner, epoch, version, "
            "write_id, sequence, sub_sequence, arrival, finished_at, updated_at) VALUES "
            "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING",
            "UPDATE millrace_shard SET (parents, owner, epoch, version, write_id, sequence, sub_sequence, "
            "arrival, finished_at, updated_at) = (?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
            "WHERE stream = ?1 AND group_name = ?2 AND shard = ?3 AND version = ?14",
            s.shard.value(),
            parents_to_json(s.parents),
            s.owner.value(),
            s.epoch.value(),
            s.version.value(),
            s.write_id.value(),
            at.sequence,
            at.sub_sequence,
            at.arrival,
            millis(s.finished_at),
            millis(s.updated_at)
        );
    }

private:
    template <class... Ts>
    [[nodiscard]] result<void> write(std::string_view insert, std::string_view update, const Ts&... values)
        const {
        if (expected) return db.run(update, group.stream, group.name, values..., expected->value());
        return db.run(insert, group.stream, group.name, values...);
    }

    struct checkpoint_columns {
        std::optional<std::string> sequence;
        std::optional<std::uint64_t> sub_sequence;
        std::optional<std::int64_t> arrival;
    };
    static checkpoint_columns columns_of(const shard_row& s) {
        if (!s.checkpoint) return {};
        const auto& at = s.checkpoint->position;
        return {at.sequence.to_string(), at.sub_sequence, millis(s.checkpoint->arrival)};
    }
};

/// A file may hold tables of another program under these names.
result<void> check_tables(database& db) {
    for (const auto& [table, columns] :
         {std::pair{"millrace_group", columns_of_row<group_row>()},
          std::pair{"millrace_worker", columns_of_row<worker_row>()},
          std::pair{"millrace_shard", columns_of_row<shard_row>()}}) {
        const auto all = fmt::format("stream, group_name, {}", columns);
        if (auto ours = sqlite::check_columns(db, table, all); !ours) return ours;
    }
    return {};
}

result<std::int64_t> schema_of(database& db) {
    if (auto ours = sqlite::check_columns(db, "millrace_meta", "name, value"); !ours) {
        return tl::unexpected(std::move(ours.error()));
    }
    auto known = db.integer("SELECT value FROM millrace_meta WHERE name = 'lease_schema'");
    if (!known && known.error().code == errc::not_found) return 0;  // no table yet
    return known;
}

constexpr auto known = sqlite_lease_store::schema_known;

/// The version of tables that can be used, 0 for none.
result<std::int64_t> usable_schema(database& db) {
    auto found = schema_of(db);
    if (!found) return found;
    if (*found > known) {
        return fail(
            errc::wrong_version,
            fmt::format(
                "the lease tables in {} have version {}, and this program knows versions up to {}; use the "
                "newer program, or another file",
                db.name(),
                *found,
                known
            )
        );
    }
    if (auto ours = check_tables(db); !ours) return tl::unexpected(std::move(ours.error()));
    return found;
}

}  // namespace

result<void> check(database& db) {
    const auto found = usable_schema(db);
    if (!found) return tl::unexpected(found.error());
    if (*found > 0) return {};
    return fail(errc::not_found, fmt::format("{} knows no group; one is made at its first start", db.name()));
}

result<void> ensure(database& db) {
    const auto found = usable_schema(db);
    if (!found) return tl::unexpected(found.error());
    if (*found == known) return {};
    auto writing = db.begin(sqlite::transaction_kind::immediate);
    if (!writing) return tl::unexpected(std::move(writing.error()));
    if (auto made = db.execute(layout); !made) return made;
    return writing->commit();
}

result<std::vector<std::string>> list_groups(database& db, std::string_view stream) {
    static const std::string sql =
        "SELECT group_name FROM millrace_group WHERE stream = ?1 "
        "UNION SELECT group_name FROM millrace_worker WHERE stream = ?1 "
        "UNION SELECT group_name FROM millrace_shard WHERE stream = ?1";
    auto found = db.prepare(sql);
    if (found) found->with(stream);
    return collect<std::string>(std::move(found), [](const statement& row) { return row.text(0); });
}

result<std::vector<worker_row>> list_workers(database& db, const group_key& group) {
    static const auto sql = fmt::format(
        "SELECT {} FROM millrace_worker WHERE stream = ? AND group_name = ?", columns_of_row<worker_row>()
    );
    return collect<worker_row>(prepare(db, sql, group.stream, group.name), [&](const statement& from) {
        worker_row row;
        if (const auto read = read_into(row, db.name(), from); !read) row.unreadable = read.error().detail;
        if (from.type(0) != sqlite::value_type::text) row.incarnation = incarnation{};
        return result<worker_row>(std::move(row));
    });
}

result<std::vector<shard_row>> list_shards(database& db, const group_key& group) {
    static const auto sql = fmt::format(
        "SELECT {} FROM millrace_shard WHERE stream = ? AND group_name = ?", columns_of_row<shard_row>()
    );
    return collect<shard_row>(prepare(db, sql, group.stream, group.name), [&](const statement& row) {
        auto read = row_at<shard_row>(db.name(), row);
        const bool is_named = row.type(0) == sqlite::value_type::text;
        if (read) return read;
        return result<shard_row>(
            unreadable_row(is_named ? shard_id{row.text(0)} : foreign_row(row.text(0)), read.error())
        );
    });
}

result<std::optional<lease_row>> read(database& db, const group_key& group, const lease_key& key) {
    static const auto worker_sql = fmt::format(
        "SELECT {} FROM millrace_worker WHERE stream = ? AND group_name = ? AND incarnation = ?",
        columns_of_row<worker_row>()
    );
    static const auto shard_sql = fmt::format(
        "SELECT {} FROM millrace_shard WHERE stream = ? AND group_name = ? AND shard = ?",
        columns_of_row<shard_row>()
    );
    static const auto group_sql = fmt::format(
        "SELECT {} FROM millrace_group WHERE stream = ? AND group_name = ?", columns_of_row<group_row>()
    );

    const auto rows = [&]() -> result<std::vector<lease_row>> {
        if (const auto* worker = std::get_if<incarnation>(&key)) {
            return collect<lease_row>(
                prepare(db, worker_sql, group.stream, group.name, worker->value()),
                [&](const statement& row) { return row_at<worker_row>(db.name(), row); }
            );
        }
        if (const auto* shard = std::get_if<shard_id>(&key)) {
            return collect<lease_row>(
                prepare(db, shard_sql, group.stream, group.name, shard->value()),
                [&](const statement& row) { return row_at<shard_row>(db.name(), row); }
            );
        }
        return collect<lease_row>(
            prepare(db, group_sql, group.stream, group.name),
            [&](const statement& row) { return row_at<group_row>(db.name(), row); }
        );
    }();
    return rows.map([](const std::vector<lease_row>& found) {
        return found.empty() ? std::nullopt : std::optional(found.front());
    });
}

result<void> write(
    database& db, const group_key& group, const lease_row& row, std::optional<version> expected
) {
    return one_changed(db, std::visit(write_row{db, group, expected}, row));
}

result<void> remove(database& db, const group_key& group, const lease_key& key, version expected) {
    const auto done = [&] {
        if (const auto* worker = std::get_if<incarnation>(&key)) {
            return db.run(
                "DELETE FROM millrace_worker WHERE stream = ? AND group_name = ? AND incarnation = ? AND "
                "counter = ?",
                group.stream,
                group.name,
                worker->value(),
                expected.value()
            );
        }
        if (const auto* shard = std::get_if<shard_id>(&key)) {
            return db.run(
                "DELETE FROM millrace_shard WHERE stream = ? AND group_name = ? AND shard = ? AND version = "
                "?",
                group.stream,
                group.name,
                shard->value(),
                expected.value()
            );
        }
        return db.run(
            "DELETE FROM millrace_group WHERE stream = ? AND group_name = ? AND version = ?",
            group.stream,
            group.name,
            expected.value()
        );
    }();
    return one_changed(db, done);
}

}  // namespace millrace::lease_tables
