#include "dataset.hpp"

#include "sqlite_raw.hpp"

#include <filesystem>

#include <fmt/format.h>

namespace millrace::bench {

void fill_outbox(const std::string& path, const dataset& data) {
    const auto db = open(path, "OFF");
    const auto insert = prepare(db.get(), "INSERT INTO outbox (topic, key, value) VALUES ('bench', ?, ?)");
    const std::string value(data.value_bytes, 'v');
    execute(db.get(), "BEGIN");
    for (std::uint64_t row = 0; row < data.rows; ++row) {
        const auto key = fmt::format("key-{}", row * 7919 % data.keys);
        sqlite3_bind_blob(insert.get(), 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
        sqlite3_bind_blob(insert.get(), 2, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
        check(db.get(), sqlite3_step(insert.get()));
        sqlite3_reset(insert.get());
    }
    execute(db.get(), "COMMIT");
    execute(db.get(), "PRAGMA wal_checkpoint(TRUNCATE)");
}

void remove_database(const std::string& path) {
    for (const auto* suffix : {"", "-wal", "-shm"})
        std::filesystem::remove(path + suffix);
}

void copy_database(const std::string& from, const std::string& to) {
    remove_database(to);
    std::filesystem::copy_file(from, to);
}

}  // namespace millrace::bench
