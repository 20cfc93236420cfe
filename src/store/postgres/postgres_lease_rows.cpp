#include "postgres_lease_rows.hpp"

#include "catalog.hpp"
#include "lease_columns.hpp"
#include "lease_layout.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace millrace::postgres {

namespace {

std::string joined(const std::vector<std::string>& texts) {
    return fmt::format("{}", fmt::join(texts, ", "));
}

/// All statements of one table. The columns begin with those that are part of the key beside stream and
/// group, and the version is the next.
lease_rows::texts texts_of(
    std::string_view schema, std::string_view table, std::span<const std::string_view> columns, bool keyed
) {
    const table_name name{std::string(schema), std::string(table)};
    const auto version_at = keyed ? 1U : 0U;
    const std::string one = keyed ? fmt::format(" AND {} = $3", columns[0]) : "";
    const auto of_version = [&](std::size_t parameter) {
        return fmt::format(" AND {} = ${}", columns[version_at], parameter);
    };
    std::vector<std::string> places;
    std::vector<std::string> changes;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        places.push_back(fmt::format("${}", i + 3));
        if (i >= version_at) changes.push_back(fmt::format("{} = ${}", columns[i], i + 3));
    }
    const auto names = fmt::format("{}", fmt::join(columns, ", "));
    const auto table_sql = name.quoted();
    const std::string of_group = " WHERE stream = $1 AND group_name = $2";
    return {
        name,
        fmt::format("SELECT {} FROM {}{}", names, table_sql, of_group),
        fmt::format("SELECT {} FROM {}{}{}", names, table_sql, of_group, one),
        fmt::format(
            "INSERT INTO {} (stream, group_name, {}) VALUES ($1, $2, {}) ON CONFLICT DO NOTHING",
            table_sql,
            names,
            joined(places)
        ),
        fmt::format(
            "UPDATE {} SET {}{}{}{}",
            table_sql,
            joined(changes),
            of_group,
            one,
            of_version(columns.size() + 3)
        ),
        fmt::format("DELETE FROM {}{}{}{}", table_sql, of_group, one, of_version(keyed ? 4 : 3))};
}

template <class Row, std::size_t Columns>
result<std::vector<Row>> decode_all(
    const rows& found,
    const std::array<std::string_view, Columns>&,
    result<Row> (*decode)(row_values, std::string_view),
    const connection& db
) {
    std::vector<Row> all;
    all.reserve(found.size());
    for (std::size_t row = 0; row < found.size(); ++row) {
        std::array<std::optional<std::string_view>, Columns> values;
        for (std::size_t column = 0; column < Columns; ++column)
            values[column] = found.value(row, static_cast<int>(column));
        auto decoded = decode(values, db.name());
        if (!decoded) return tl::unexpected(std::move(decoded.error()));
        all.push_back(std::move(*decoded));
    }
    return all;
}

template <class Row>
std::optional<lease_row> first_of(const std::vector<Row>& found) {
    return found.empty() ? std::nullopt : std::optional<lease_row>(found.front());
}

statement reading(const std::string& sql) {
    return {sql, effect::reads, "read the leases in"};
}

// At each tick and each heartbeat.
statement reading_again(const std::string& sql) {
    return {sql, effect::reads, "read the leases in", planning::once};
}

statement writing_again(const std::string& sql) {
    return {sql, effect::writes, "write the leases in", planning::once};
}

/// Adds the columns of a row in their order.
struct add_columns {
    statement& to;
    std::string& sequence;  ///< Outlives the statement's run.

    void operator()(const group_row& g) const {
        add(g.version.value(),
            g.format,
            g.write_id.value(),
            g.stream_identity,
            start_names[static_cast<std::size_t>(g.start)],
            g.start_at,
            g.epoch_floor.value());
    }
    void operator()(const worker_row& w) const {
        add(w.incarnation.value(), w.counter.value(), w.worker.value(), w.write_id.value(), w.lease.count());
        add(w.changes, w.process.host, w.process.boot_id, w.process.pid_namespace, w.process.pid);
        add(w.process.start_time, w.updated_at);
    }
    void operator()(const shard_row& s) const {
        std::vector<std::optional<std::string_view>> parents;
        for (const auto& parent : s.parents)
            parents.emplace_back(parent.value());
        add(s.shard.value(), s.version.value(), text_array{parents}, s.owner.value(), s.epoch.value());
        add(s.write_id.value());
        if (s.checkpoint) {
            sequence = s.checkpoint->position.sequence.to_string();
            add(sequence, s.checkpoint->position.sub_sequence, s.checkpoint->arrival);
        } else {
            add(std::nullopt, std::nullopt, std::nullopt);
        }
        add(s.finished_at, s.updated_at);
    }

private:
    template <class... Ts>
    void add(const Ts&... values) const {
        (to.add(values), ...);
    }
};

result<std::int64_t> schema_of(connection& db, const lease_tables_of& tables) {
    const auto found =
        db.run(reading(fmt::format("SELECT value FROM {} WHERE name = 'lease_schema'", tables.meta)));
    if (!found && found.error().code == errc::not_found) return 0;
    if (!found) return tl::unexpected(found.error());
    return found->empty() ? 0 : found->integer(0, 0).value_or(0);
}

error show_sql(error refused, const std::vector<std::string>& sql) {
    if (refused.code == errc::permission_denied) {
        refused.detail += fmt::format(", or let somebody who has it run: {};", fmt::join(sql, "; "));
    }
    return refused;
}

result<void> make_tables(connection& db, std::string_view schema) {
    auto sql = lease_layout(schema);
    // Who may use a schema need not be one who may make it, so it is only made when it is missing.
    const auto there =
        db.run(reading("SELECT to_regnamespace($1) IS NOT NULL").with(quote_identifier(schema)));
    if (!there) return tl::unexpected(there.error());
    if (!there->boolean(0, 0).value_or(false)) {
        sql.insert(sql.begin(), fmt::format("CREATE SCHEMA IF NOT EXISTS {}", quote_identifier(schema)));
    }
    std::vector<statement> all;
    // One at a time: IF NOT EXISTS alone fails when two make the same at once. The number is only ours.
    all.emplace_back(
        "SELECT pg_advisory_xact_lock(7813245091)", effect::reads, "wait to make the lease tables in"
    );
    for (const auto& one : sql)
        all.emplace_back(one, effect::writes, "make the lease tables in");
    auto made = db.run_together(all);
    if (!made) return tl::unexpected(show_sql(std::move(made.error()), sql));
    return {};
}

}  // namespace

result<void> ensure_lease_tables(connection& db, std::string_view schema, bool were_used) {
    const lease_tables_of tables(schema);
    auto found = schema_of(db, tables);
    if (found && *found == 0 && were_used) {
        return fail(
            errc::not_found,
            fmt::format(
                "the lease tables of schema \"{}\" in {}, which this process has used, are gone: restore "
                "them; to begin anew instead, stop all workers of the group first",
                schema,
                db.name()
            )
        );
    }
    if (found && *found == 0) {
        if (auto made = make_tables(db, schema); !made) return made;
        found = schema_of(db, tables);
    }
    if (!found) return tl::unexpected(std::move(found.error()));
    if (*found > lease_schema_known) {
        return fail(
            errc::wrong_version,
            fmt::format(
                "the lease tables of schema \"{}\" in {} have version {}, and this program knows versions up "
                "to {}; use the newer program, or another schema",
                schema,
                db.name(),
                *found,
                lease_schema_known
            )
        );
    }
    return {};
}

lease_rows::lease_rows(std::string_view schema, group_key group)
    : group_(std::move(group)),
      groups_(texts_of(schema, "millrace_group", group_columns, false)),
      workers_(texts_of(schema, "millrace_worker", worker_columns, true)),
      shards_(texts_of(schema, "millrace_shard", shard_columns, true)) {}

result<std::vector<worker_row>> lease_rows::list_workers(connection& db) const {
    const auto found = db.run(reading_again(workers_.list).with(group_.stream, group_.name));
    if (!found) return tl::unexpected(found.error());
    return decode_all(*found, worker_columns, decode_listed_worker, db);
}

result<std::vector<shard_row>> lease_rows::list_shards(connection& db) const {
    const auto found = db.run(reading_again(shards_.list).with(group_.stream, group_.name));
    if (!found) return tl::unexpected(found.error());
    return decode_all(*found, shard_columns, decode_listed_shard, db);
}

result<std::optional<lease_row>> lease_rows::read(connection& db, const lease_key& key) const {
    if (const auto* worker = std::get_if<incarnation>(&key)) {
        const auto found =
            db.run(reading_again(workers_.read).with(group_.stream, group_.name, worker->value()));
        if (!found) return tl::unexpected(found.error());
        return decode_all(*found, worker_columns, decode_worker, db).map(first_of<worker_row>);
    }
    if (const auto* shard = std::get_if<shard_id>(&key)) {
        const auto found =
            db.run(reading_again(shards_.read).with(group_.stream, group_.name, shard->value()));
        if (!found) return tl::unexpected(found.error());
        return decode_all(*found, shard_columns, decode_shard, db).map(first_of<shard_row>);
    }
    const auto found = db.run(reading_again(groups_.read).with(group_.stream, group_.name));
    if (!found) return tl::unexpected(found.error());
    return decode_all(*found, group_columns, decode_group, db).map(first_of<group_row>);
}

result<void> lease_rows::write(connection& db, const lease_row& row, std::optional<version> expected) const {
    const auto& of = std::holds_alternative<worker_row>(row)  ? workers_
                     : std::holds_alternative<shard_row>(row) ? shards_
                                                              : groups_;
    auto change = writing_again(expected ? of.update : of.insert).with(group_.stream, group_.name);
    std::string sequence;
    std::visit(add_columns{change, sequence}, row);
    if (expected) change.add(expected->value());
    return change_one(db, change, of);
}

result<void> lease_rows::remove(connection& db, const lease_key& key, version expected) const {
    const auto* worker = std::get_if<incarnation>(&key);
    const auto* shard = std::get_if<shard_id>(&key);
    const auto& of = worker != nullptr ? workers_ : shard != nullptr ? shards_ : groups_;
    auto change = writing_again(of.remove).with(group_.stream, group_.name);
    if (worker != nullptr) change.add(worker->value());
    if (shard != nullptr) change.add(shard->value());
    change.add(expected.value());
    return change_one(db, change, of);
}

/// A conditional statement has changed one row, or its condition did not hold.
result<void> lease_rows::change_one(connection& db, const statement& what, const texts& of) const {
    auto done = db.run(what);
    if (!done) return tl::unexpected(name_blocker(db, std::move(done.error()), of.table));
    if (done->affected() == 1) return {};
    return fail(errc::conflict, "the row is not as the writer believed; read it again and decide anew");
}

result<std::vector<std::string>> list_groups(
    connection& db, std::string_view schema, std::string_view stream
) {
    const lease_tables_of tables(schema);
    const auto found = db.run(reading(fmt::format(
                                          "SELECT group_name FROM {} WHERE stream = $1 UNION "
                                          "SELECT group_name FROM {} WHERE stream = $1 UNION "
                                          "SELECT group_name FROM {} WHERE stream = $1 ORDER BY 1",
                                          tables.group,
                                          tables.worker,
                                          tables.shard
                                      ))
                                  .with(stream));
    if (!found) return tl::unexpected(found.error());
    std::vector<std::string> names;
    for (std::size_t row = 0; row < found->size(); ++row)
        names.push_back(found->text(row, 0));
    return names;
}

result<std::vector<kept_row>> read_positions(connection& db, const table_name& from, std::string_view under) {
    statement read(
        fmt::format(
            "SELECT shard_id::text, sequence_number::text FROM {} WHERE namespace::text = $1 ORDER BY "
            "shard_id",
            from.quoted()
        ),
        effect::reads,
        fmt::format("read the positions in table {} of", from.shown())
    );
    const auto found = db.run(std::move(read).with(under));
    if (!found) return tl::unexpected(found.error());
    std::vector<kept_row> rows;
    for (std::size_t row = 0; row < found->size(); ++row)
        rows.push_back({found->text(row, 0), found->text(row, 1), ""});
    return rows;
}

}  // namespace millrace::postgres
