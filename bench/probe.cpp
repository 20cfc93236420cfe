#include "probe.hpp"

#include "sqlite_raw.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace millrace::bench {

namespace {

std::string_view column(sqlite3_stmt* row, int index) {
    return {
        static_cast<const char*>(sqlite3_column_blob(row, index)),
        static_cast<std::size_t>(sqlite3_column_bytes(row, index))};
}

struct moved_row {
    sqlite3_int64 id;
    std::string key;
    std::string value;
};

void bind_bytes(sqlite3_stmt* statement, int index, const std::string& bytes) {
    sqlite3_bind_blob(statement, index, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
}

/// The append alone: the record table of the local stream without its bookkeeping.
void append(
    sqlite3* db,
    sqlite3_stmt* insert,
    const std::vector<moved_row>& rows,
    const std::vector<sqlite3_int64>& shards
) {
    execute(db, "BEGIN IMMEDIATE");
    for (const auto& row : rows) {
        sqlite3_bind_int64(insert, 1, shards[static_cast<std::size_t>(row.id) % shards.size()]);
        sqlite3_bind_int64(insert, 2, row.id);
        sqlite3_bind_int64(insert, 3, 1'767'225'600'000);
        bind_bytes(insert, 4, row.key);
        bind_bytes(insert, 5, row.value);
        check(db, sqlite3_step(insert));
        sqlite3_reset(insert);
    }
    execute(db, "COMMIT");
}

std::vector<sqlite3_int64> shards_of(sqlite3* db) {
    std::vector<sqlite3_int64> shards;
    const auto list = prepare(db, "SELECT id FROM millrace_stream_shard ORDER BY id");
    while (sqlite3_step(list.get()) == SQLITE_ROW)
        shards.push_back(sqlite3_column_int64(list.get(), 0));
    return shards;
}

}  // namespace

std::uint64_t probe_drain(
    const std::string& outbox, const std::string& streams, const probe_batches& batches
) {
    const auto from = open(outbox, "NORMAL");
    const auto to = open(streams, "FULL");
    const auto shards = shards_of(to.get());
    const auto read = prepare(
        from.get(),
        "SELECT id, key, value, topic, headers, partition FROM outbox WHERE id > ? ORDER BY id LIMIT ?"
    );
    const auto remove = prepare(from.get(), "DELETE FROM outbox WHERE id BETWEEN ? AND ?");
    const auto insert = prepare(
        to.get(),
        "INSERT INTO millrace_stream_record (shard, sequence, arrival, key, data) VALUES (?, ?, ?, ?, ?)"
    );
    std::uint64_t moved = 0;
    for (sqlite3_int64 after = 0;;) {
        std::vector<moved_row> rows;
        sqlite3_bind_int64(read.get(), 1, after);
        sqlite3_bind_int(read.get(), 2, batches.fetch_rows);
        while (sqlite3_step(read.get()) == SQLITE_ROW) {
            rows.push_back(
                {sqlite3_column_int64(read.get(), 0),
                 std::string(column(read.get(), 1)),
                 std::string(column(read.get(), 2))}
            );
        }
        sqlite3_reset(read.get());
        if (rows.empty()) return moved;
        append(to.get(), insert.get(), rows, shards);
        for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(batches.delete_rows)) {
            const auto last = std::min(rows.size(), at + static_cast<std::size_t>(batches.delete_rows)) - 1;
            sqlite3_bind_int64(remove.get(), 1, rows[at].id);
            sqlite3_bind_int64(remove.get(), 2, rows[last].id);
            check(from.get(), sqlite3_step(remove.get()));
            sqlite3_reset(remove.get());
        }
        after = rows.back().id;
        moved += rows.size();
    }
}

std::uint64_t probe_consume(const std::string& streams, const probe_batches& batches) {
    const auto db = open(streams, "NORMAL");
    const auto read = prepare(
        db.get(),
        "SELECT sequence, arrival, key, data, headers FROM millrace_stream_record WHERE shard = ? AND "
        "sequence > ? "
        "ORDER BY sequence LIMIT ?"
    );
    std::uint64_t records = 0;
    std::string bytes;
    for (const auto shard : shards_of(db.get())) {
        for (sqlite3_int64 after = 0;;) {
            int got = 0;
            bytes.clear();
            sqlite3_bind_int64(read.get(), 1, shard);
            sqlite3_bind_int64(read.get(), 2, after);
            sqlite3_bind_int(read.get(), 3, batches.read_records);
            while (sqlite3_step(read.get()) == SQLITE_ROW) {
                after = sqlite3_column_int64(read.get(), 0);
                bytes.append(column(read.get(), 2))
                    .append(column(read.get(), 3))
                    .append(column(read.get(), 4));
                ++got;
            }
            sqlite3_reset(read.get());
            records += static_cast<std::uint64_t>(got);
            if (got == 0) break;
        }
    }
    return records;
}

}  // namespace millrace::bench
