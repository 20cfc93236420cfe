#include "outbox_schema.hpp"

#include "sqlite_error.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace::outbox_schema {

namespace {

constexpr const char* layout =
    "CREATE TABLE IF NOT EXISTS outbox (\n"
    "    id         INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),\n"
    "    topic      TEXT NOT NULL,\n"
    "    key        BLOB,\n"
    "    value      BLOB,\n"
    "    headers    TEXT,\n"
    "    partition  INTEGER,\n"
    "    created_at INTEGER NOT NULL DEFAULT (" MILLRACE_SQL_NOW
    ")\n"
    ");\n"
    "CREATE TABLE IF NOT EXISTS outbox_dead (\n"
    "    entry      INTEGER PRIMARY KEY,\n"
    "    id         INTEGER NOT NULL,\n"
    "    topic      TEXT NOT NULL,\n"
    "    key        BLOB,\n"
    "    value      BLOB,\n"
    "    headers    TEXT,\n"
    "    partition  INTEGER,\n"
    "    created_at INTEGER NOT NULL,\n"
    "    reason     TEXT NOT NULL,\n"
    "    error      TEXT NOT NULL,\n"
    "    attempts   INTEGER NOT NULL,\n"
    "    first_at   INTEGER NOT NULL,\n"
    "    last_at    INTEGER NOT NULL\n"
    ");\n"
    "CREATE INDEX IF NOT EXISTS outbox_dead_id ON outbox_dead (id);\n"
    "CREATE TABLE IF NOT EXISTS outbox_parked (\n"
    "    topic      TEXT NOT NULL,\n"
    "    key        BLOB NOT NULL,\n"
    "    partition  INTEGER,\n"
    "    parked_at  INTEGER NOT NULL\n"
    ");\n"
    "CREATE UNIQUE INDEX IF NOT EXISTS outbox_parked_lane ON outbox_parked (topic, key, IFNULL(partition, "
    "-1));\n"
    "CREATE TABLE IF NOT EXISTS outbox_meta (\n"
    "    only_one          INTEGER PRIMARY KEY CHECK (only_one = 1),\n"
    "    schema_version    INTEGER NOT NULL,\n"
    "    identity          TEXT NOT NULL,\n"
    "    replay_generation INTEGER NOT NULL\n"
    ");\n"
    "INSERT OR IGNORE INTO outbox_meta (only_one, schema_version, identity, replay_generation)\n"
    "    VALUES (1, 2, lower(hex(randomblob(16))), 0);\n" MILLRACE_SQL_CREATE_PAUSED;

// Up to version 1 an id named one dead letter, although it comes again when the outbox is made anew.
constexpr const char* upgrade_dead =
    "ALTER TABLE outbox_dead RENAME TO outbox_dead_1;\n"
    "CREATE TABLE outbox_dead (entry INTEGER PRIMARY KEY, id INTEGER NOT NULL, topic TEXT NOT NULL, key "
    "BLOB, value BLOB, headers TEXT, partition INTEGER, created_at INTEGER NOT NULL, reason TEXT NOT NULL, "
    "error TEXT NOT NULL, attempts INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL);\n"
    "INSERT INTO outbox_dead (id, topic, key, value, headers, partition, created_at, reason, error, "
    "attempts, first_at, last_at) SELECT id, topic, key, value, headers, partition, created_at, reason, "
    "error, attempts, first_at, last_at FROM outbox_dead_1 ORDER BY id;\n"
    "DROP TABLE outbox_dead_1;\n"
    "CREATE INDEX outbox_dead_id ON outbox_dead (id);\n"
    "UPDATE outbox_meta SET schema_version = 2;\n";

constexpr std::array<std::string_view, 7> columns_needed{
    "id", "topic", "key", "value", "headers", "partition", "created_at"};

/// Runs one statement on a connection that may be an application's: nothing is cached on it. Gives the first
/// column of every row as text.
result<std::vector<std::string>> ask(sqlite3* db, std::string_view file, const char* sql) {
    sqlite3_stmt* raw = nullptr;
    int code = sqlite3_prepare_v2(db, sql, -1, &raw, nullptr);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, &sqlite3_finalize);
    if (code != SQLITE_OK) return tl::unexpected(sqlite::make_error(db, code, file, "read"));
    std::vector<std::string> rows;
    while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
        const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(raw, 0));
        rows.emplace_back(text != nullptr ? text : "");
    }
    if (code != SQLITE_DONE) return tl::unexpected(sqlite::make_error(db, code, file, "read"));
    return rows;
}

result<void> run(sqlite3* db, std::string_view file, const char* script) {
    const int code = sqlite3_exec(db, script, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(sqlite::make_error(db, code, file, "change"));
    return {};
}

/// A table `outbox` that is there must be one; `true` when it is, `false` when there is none.
result<bool> check_table(sqlite3* db, std::string_view file) {
    auto found = ask(db, file, "SELECT name FROM pragma_table_info('outbox')");
    if (!found) return tl::unexpected(std::move(found.error()));
    if (found->empty()) return false;
    std::string missing;
    for (const auto needed : columns_needed) {
        if (std::find(found->begin(), found->end(), needed) != found->end()) continue;
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", needed);
    }
    if (!missing.empty()) {
        return fail(
            errc::invalid_config,
            fmt::format(
                "the table outbox in {} is not one of Millrace: it lacks the column(s) {}; use another "
                "database, or rename that table and run `millrace outbox init`",
                file,
                missing
            )
        );
    }
    auto made = ask(
        db, file, "SELECT 1 FROM sqlite_schema WHERE name = 'outbox' AND upper(sql) LIKE '%AUTOINCREMENT%'"
    );
    if (!made) return tl::unexpected(std::move(made.error()));
    if (!made->empty()) return true;
    return fail(
        errc::invalid_config,
        fmt::format(
            "the column id of the table outbox in {} is not AUTOINCREMENT, so ids could come twice; rename "
            "the table and run `millrace outbox init`",
            file
        )
    );
}

result<void> check_encoding(sqlite3* db, std::string_view file) {
    auto encoding = ask(db, file, "PRAGMA encoding");
    if (!encoding) return tl::unexpected(std::move(encoding.error()));
    if (!encoding->empty() && encoding->front() == "UTF-8") return {};
    return fail(
        errc::invalid_config,
        fmt::format("{} keeps text as UTF-16; an outbox needs a database that keeps it as UTF-8", file)
    );
}

/// Nothing when the tables are missing.
result<std::optional<std::int64_t>> version_of(sqlite3* db, std::string_view file) {
    auto version = ask(db, file, "SELECT schema_version FROM outbox_meta");
    if (!version && version.error().code == errc::not_found) return std::nullopt;
    if (!version) return tl::unexpected(std::move(version.error()));
    if (version->empty()) return std::nullopt;
    const std::int64_t found = std::strtoll(version->front().c_str(), nullptr, 10);
    if (found <= version_known) return found;
    return fail(
        errc::wrong_version,
        fmt::format(
            "the outbox in {} has version {}, and this program knows versions up to {}; use the newer "
            "program",
            file,
            found,
            version_known
        )
    );
}

result<void> create_within(sqlite3* db, std::string_view file) {
    const auto version = version_of(db, file);
    if (!version) return tl::unexpected(version.error());
    const auto table = check_table(db, file);
    if (!table) return tl::unexpected(table.error());
    if (version->value_or(version_known) < 2) {
        if (auto done = run(db, file, upgrade_dead); !done) return done;
    }
    if (*version && *table) return run(db, file, MILLRACE_SQL_CREATE_PAUSED);
    auto done = run(db, file, layout);
    if (done && *version) {
        // The table was dropped and is made anew: what a relay remembers of the old one is void.
        done = run(db, file, "UPDATE outbox_meta SET identity = lower(hex(randomblob(16)))");
    }
    return done;
}

}  // namespace

std::string_view script() {
    return layout;
}

result<void> create(sqlite3* db, std::string_view file) {
    if (auto fits = check_encoding(db, file); !fits) return fits;
    // A savepoint works inside a transaction of the application.
    const bool own = sqlite3_get_autocommit(db) != 0;
    auto done = run(db, file, own ? "BEGIN IMMEDIATE" : "SAVEPOINT millrace_create");
    if (!done) return done;
    done = create_within(db, file);
    if (done) done = run(db, file, own ? "COMMIT" : "RELEASE millrace_create");
    if (done) return done;
    // Some faults have ended the transaction already, and then this fails; the first fault is what counts.
    (void)run(db, file, own ? "ROLLBACK" : "ROLLBACK TO millrace_create; RELEASE millrace_create");
    return done;
}

result<void> check(sqlite3* db, std::string_view file) {
    if (auto fits = check_encoding(db, file); !fits) return fits;
    const auto table = check_table(db, file);
    if (!table) return tl::unexpected(table.error());
    const auto version = version_of(db, file);
    if (!version) return tl::unexpected(version.error());
    if (*table && *version) return {};
    return fail(
        errc::not_found, fmt::format("{} has no outbox; create it with `millrace outbox init`", file)
    );
}

result<void> upgrade(sqlite3* db, std::string_view file) {
    const auto version = version_of(db, file);
    if (!version) return tl::unexpected(version.error());
    if (version->value_or(version_known) == version_known) return {};
    return create(db, file);
}

}  // namespace millrace::outbox_schema
