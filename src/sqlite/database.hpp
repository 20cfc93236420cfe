/// A connection to a SQLite file, with cached statements and faults in words.
///
/// Not thread-safe, except for `interrupt`; give each thread its own connection, or use `db_thread`.
#pragma once

#include "statement.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;

namespace millrace::sqlite {

enum class open_mode : std::uint8_t {
    read_only,   ///< The file must exist.
    to_read,     ///< As `must_exist`, but a file that this process may not write will do.
    must_exist,  ///< Read and write.
    create       ///< As `must_exist`, but a missing file is made; its directory must exist.
};

/// What a power cut may undo: with `full` nothing that was committed; with `normal` the last transactions.
/// A process that dies undoes nothing under either.
enum class durability : std::uint8_t { normal, full };

struct open_options {
    open_mode mode{open_mode::must_exist};
    milliseconds busy_timeout{2'000};  ///< How long a call waits for other connections before `unavailable`.
    bool wal{true};                    ///< Switch the file to write-ahead logging; ignored when only to read.
    durability sync{durability::full};
    std::int32_t cache_kib{2'048};

    std::string name;            ///< How messages name the database, such as its URL; the path when empty.
    std::string when_missing{};  ///< What to do when there is no such file; "check the path" when empty.
};

enum class transaction_kind : std::uint8_t {
    deferred,  ///< A snapshot for reading.
    immediate  ///< Takes the write lock at once, so that it cannot fail halfway for a lock.
};

class database;

/// Rolls back when it goes out of scope without a `commit`.
class transaction {
public:
    transaction(transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
    transaction& operator=(transaction&&) = delete;
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction();

    /// An error leaves nothing written, unless it is in doubt.
    result<void> commit();

private:
    friend class database;
    explicit transaction(database& db) : db_(&db) {}
    database* db_;
};

class database {
public:
    /// Also reads the file's header, so that a file that is no database fails here.
    [[nodiscard]] static result<database> open(const std::string& path, open_options options);

    database(database&&) noexcept;
    database& operator=(database&&) noexcept;
    database(const database&) = delete;
    database& operator=(const database&) = delete;
    ~database();

    /// A statement from the cache; one use of the same text at a time. Meant for a fixed set of texts.
    [[nodiscard]] result<statement> prepare(std::string_view sql);

    /// Prepares, binds in order and runs to the end.
    template <class... Ts>
    result<void> run(std::string_view sql, const Ts&... values) {
        auto found = prepare(sql);
        if (!found) return tl::unexpected(std::move(found.error()));
        return found->with(values...).run();
    }

    /// Runs a script of statements without parameters.
    result<void> execute(const char* script);

    /// The first column of the first row, 0 when there is no row.
    [[nodiscard]] result<std::int64_t> integer(std::string_view sql);

    [[nodiscard]] result<transaction> begin(transaction_kind kind);

    /// Takes effect from the next transaction.
    result<void> set_durability(durability sync);

    /// Rows changed by the last statement.
    [[nodiscard]] std::uint64_t changes() const;
    [[nodiscard]] std::int64_t last_insert_id() const;

    /// The path now leads to another file, or to none: open it anew.
    [[nodiscard]] bool moved() const;

    /// Ends what runs or waits for a lock, now and from now on. From any thread.
    void interrupt() noexcept;

    [[nodiscard]] sqlite3* handle() const noexcept;
    [[nodiscard]] const std::string& name() const noexcept;

private:
    friend class transaction;
    struct impl;
    explicit database(std::unique_ptr<impl> made);
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::sqlite
