#include "local_schema.hpp"

#include "table_check.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace millrace::local {

namespace {

// How a sentence about a missing file ends.
constexpr const char* create_advice =
    "create a stream in it with `millrace stream create --stream local:PATH/STREAM --shards N`";

// AUTOINCREMENT: the number of a removed shard must never name another one in the memory of a running
// process. Records have rowids, though files from before have none: a large record would become an inner cell
// of the one tree there is WITHOUT ROWID, and each append that passes it reads it whole.
constexpr const char* tables = R"sql(
CREATE TABLE IF NOT EXISTS millrace_stream_format (
    version INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS millrace_stream (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    identity      TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    retention_ms  INTEGER,
    next_sequence INTEGER NOT NULL DEFAULT 1,
    next_shard    INTEGER NOT NULL DEFAULT 0,
    last_arrival  INTEGER NOT NULL,
    topology      INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS millrace_stream_shard (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    stream           INTEGER NOT NULL REFERENCES millrace_stream (id),
    number           INTEGER NOT NULL,
    parent           INTEGER,
    second_parent    INTEGER,
    hash_from        TEXT    NOT NULL,
    hash_to          TEXT    NOT NULL,
    first_sequence   INTEGER NOT NULL,
    last_sequence    INTEGER NOT NULL DEFAULT 0,
    trimmed_sequence INTEGER NOT NULL DEFAULT 0,
    last_arrival     INTEGER NOT NULL DEFAULT 0,
    records          INTEGER NOT NULL DEFAULT 0,
    bytes            INTEGER NOT NULL DEFAULT 0,
    closed_at        INTEGER,
    UNIQUE (stream, number)
);
CREATE TABLE IF NOT EXISTS millrace_stream_record (
    shard    INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    arrival  INTEGER NOT NULL,
    key      BLOB,
    data     BLOB,
    headers  BLOB,
    PRIMARY KEY (shard, sequence)
);
)sql";

constexpr std::string_view count_formats =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'millrace_stream_format'";

/// A file may hold tables of another program under these names.
result<void> check_tables(sqlite::database& db) {
    constexpr std::pair<std::string_view, std::string_view> known[] = {
        {"millrace_stream_format", "version"},
        {"millrace_stream",
         "id, name, identity, created_at, retention_ms, next_sequence, next_shard, last_arrival, topology"},
        {"millrace_stream_shard",
         "id, stream, number, parent, second_parent, hash_from, hash_to, first_sequence, last_sequence, "
         "trimmed_sequence, last_arrival, records, bytes, closed_at"},
        {"millrace_stream_record", "shard, sequence, arrival, key, data, headers"},
    };
    for (const auto& [table, columns] : known) {
        if (auto ours = sqlite::check_columns(db, table, columns); !ours) return ours;
    }
    return {};
}

/// One that is missing is found at once, not by the first record.
result<void> look_into_tables(sqlite::database& db) {
    for (const auto* look :
         {"SELECT 1 FROM millrace_stream LIMIT 0",
          "SELECT 1 FROM millrace_stream_shard LIMIT 0",
          "SELECT 1 FROM millrace_stream_record LIMIT 0"}) {
        if (auto there = db.run(look); !there) return tl::unexpected(damaged(std::move(there.error())));
    }
    return {};
}

/// A stream behind a file, where the file alone belongs.
result<void> check_is_no_stream(const std::string& file) {
    std::error_code ignored;  // what cannot be told is left to the opening
    const auto parent = std::filesystem::path(file).parent_path();
    if (!std::filesystem::is_regular_file(parent, ignored)) return {};
    return fail(
        errc::not_found,
        fmt::format(
            "cannot open local:{0}: \"{1}\" is a file and no directory; a sink is the file alone, local:{1}, "
            "and the topic of each event names its stream",
            file,
            parent.string()
        )
    );
}

}  // namespace

error damaged(error why) {
    if (why.code != errc::not_found) return why;
    why.code = errc::corrupt;
    why.detail += "; a file of streams without it is damaged: restore it from a backup";
    return why;
}

result<void> create_schema(sqlite::database& db) {
    auto present = db.integer(count_formats);
    if (!present) return tl::unexpected(std::move(present.error()));
    if (*present != 0) return check_schema(db);

    if (auto ours = check_tables(db); !ours) return ours;
    auto change = db.begin(sqlite::transaction_kind::immediate);
    if (!change) return tl::unexpected(std::move(change.error()));
    if (auto made = db.execute(tables); !made) return made;
    auto noted = db.run(
        "INSERT INTO millrace_stream_format (version) SELECT ?1 "
        "WHERE NOT EXISTS (SELECT 1 FROM millrace_stream_format)",
        format_known
    );
    if (!noted) return noted;
    if (auto done = change->commit(); !done) return done;
    return check_schema(db);
}

result<void> check_schema(sqlite::database& db) {
    auto present = db.integer(count_formats);
    if (!present) return tl::unexpected(std::move(present.error()));
    if (*present == 0) {
        return fail(errc::not_found, fmt::format("{} holds no streams; {}", db.name(), create_advice));
    }
    // The columns of another version may well be others.
    if (auto ours = sqlite::check_columns(db, "millrace_stream_format", "version"); !ours) return ours;
    auto version = db.integer("SELECT max(version) FROM millrace_stream_format");
    if (!version) return tl::unexpected(std::move(version.error()));
    if (*version == format_known) {
        if (auto ours = check_tables(db); !ours) return ours;
        return look_into_tables(db);
    }
    return fail(
        errc::wrong_version,
        fmt::format(
            "the streams in {} have format {}, and this program knows format {}; use the version of millrace "
            "that wrote them",
            db.name(),
            *version,
            format_known
        )
    );
}

result<sqlite::database> open_streams(
    const std::string& file, sqlite::open_mode mode, milliseconds busy_timeout
) {
    if (auto fits = check_is_no_stream(file); !fits) return tl::unexpected(std::move(fits.error()));
    auto db = sqlite::database::open(
        file,
        {.mode = mode,
         .busy_timeout = busy_timeout,
         .name = fmt::format("local:{}", file),
         .when_missing = create_advice}
    );
    if (!db) return db;
    // Where it is on by default, whatever is trimmed is written once more, as zeros, through the WAL.
    if (auto set = db->execute("PRAGMA secure_delete = OFF"); !set) return tl::unexpected(set.error());
    const auto usable = mode == sqlite::open_mode::create ? create_schema(*db) : check_schema(*db);
    if (!usable) return tl::unexpected(usable.error());
    return db;
}

}  // namespace millrace::local
