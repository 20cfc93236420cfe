#include "database.hpp"

#include "assert.hpp"
#include "sqlite_error.hpp"
#include "text/one_line.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace::sqlite {

namespace {

struct close_connection {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
struct finalize {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>{}(text);
    }
};

constexpr std::array<int, 7> lock_waits_ms{1, 1, 2, 2, 5, 5, 10};  // the last one repeats

int lock_wait_ms(int round) {
    return lock_waits_ms[std::min(static_cast<std::size_t>(round), lock_waits_ms.size() - 1)];
}

int waited_ms(int rounds) {
    int total = 0;
    for (int round = 0; round < rounds; ++round)
        total += lock_wait_ms(round);
    return total;
}

/// What SQLite would answer with "unable to open database file", told apart.
result<void> check_path(const std::string& path, const open_options& options) {
    namespace fs = std::filesystem;
    std::error_code ignored;  // what cannot be told is left to SQLite
    const auto status = fs::status(path, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        const auto* const kind = fs::is_directory(status) ? "a directory" : "a device, a pipe or a socket";
        return fail(
            errc::invalid_config, fmt::format("cannot open {}: it is {}; name a file", options.name, kind)
        );
    }
    if (fs::exists(status) || status.type() == fs::file_type::none) return {};
    const auto directory = fs::path(path).parent_path();
    if (!directory.empty() && fs::status(directory, ignored).type() == fs::file_type::not_found) {
        return fail(
            errc::not_found,
            fmt::format(
                "cannot open {}: the directory \"{}\" does not exist; create it or check the path",
                options.name,
                directory.string()
            )
        );
    }
    if (options.mode == open_mode::create) return {};
    return fail(
        errc::not_found,
        fmt::format("cannot open {}: the file does not exist; {}", options.name, options.when_missing)
    );
}

}  // namespace

struct database::impl {
    open_options options;
    std::unique_ptr<sqlite3, close_connection> db;
    std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, finalize>, text_hash, std::equal_to<>>
        cache;
    std::atomic<bool> interrupted{false};

    static int on_busy(void* self, int rounds) {
        const auto& me = *static_cast<impl*>(self);
        if (me.interrupted.load(std::memory_order_relaxed)) return 0;
        if (waited_ms(rounds) >= me.options.busy_timeout.count()) return 0;
        sqlite3_sleep(lock_wait_ms(rounds));
        return 1;
    }
};

transaction::~transaction() {
    if (db_ == nullptr) return;
    // Some faults have ended the transaction already; then there is nothing to roll back.
    if (sqlite3_get_autocommit(db_->handle()) == 0) (void)db_->run("ROLLBACK");
}

result<void> transaction::commit() {
    MILLRACE_ASSERT(db_ != nullptr);
    auto done = db_->run("COMMIT");
    if (done) db_ = nullptr;
    return done;
}

database::database(std::unique_ptr<impl> made) : impl_(std::move(made)) {}
database::database(database&&) noexcept = default;
database& database::operator=(database&&) noexcept = default;
database::~database() = default;

sqlite3* database::handle() const noexcept {
    return impl_->db.get();
}
const std::string& database::name() const noexcept {
    return impl_->options.name;
}

namespace {

int open_flags(open_mode mode) {
    constexpr int common = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    switch (mode) {
        case open_mode::read_only:
            return common | SQLITE_OPEN_READONLY;
        case open_mode::to_read:  // SQLite itself does with a file that it may only read
        case open_mode::must_exist:
            return common | SQLITE_OPEN_READWRITE;
        case open_mode::create:
            return common | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    }
    return common;
}

/// Several processes may switch a new file at once; SQLite does not wait for the lock that this needs.
result<void> switch_to_wal(database& db, milliseconds patience) {
    // For some of the locks it does wait, so the time is what counts.
    const auto until = std::chrono::steady_clock::now() + patience;
    for (int rounds = 0;; ++rounds) {
        auto done = db.run("PRAGMA journal_mode=WAL");
        if (done || done.error().code != errc::unavailable || std::chrono::steady_clock::now() >= until)
            return done;
        sqlite3_sleep(lock_wait_ms(rounds));
    }
}

result<void> check_encoding(database& db) {
    auto found = db.prepare("PRAGMA encoding");
    if (!found) return tl::unexpected(std::move(found.error()));
    const auto row = found->step();
    if (!row) return tl::unexpected(row.error());
    if (found->bytes(0) == "UTF-8") return {};
    return fail(
        errc::invalid_config,
        fmt::format("{} keeps text as UTF-16, and only UTF-8 can be used; make another database", db.name())
    );
}

result<void> configure(database& db, const open_options& options) {
    const bool reads = options.mode == open_mode::to_read || options.mode == open_mode::read_only;
    if (!reads && sqlite3_db_readonly(db.handle(), "main") != 0) {
        return fail(
            errc::permission_denied,
            fmt::format(
                "cannot write {}: the file is read-only for this process; check mode and owner of the file "
                "and of its directory",
                options.name
            )
        );
    }
    // What is no database shows here, and before anything is said of a change.
    auto done = db.integer("SELECT count(*) FROM sqlite_schema").map([](auto) {});
    if (done) done = db.execute(fmt::format("PRAGMA cache_size=-{}", options.cache_kib).c_str());
    if (done) done = check_encoding(db);
    if (!done || reads) return done;
    if (options.wal) done = switch_to_wal(db, options.busy_timeout);
    if (done) done = db.set_durability(options.sync);
    return done;
}

/// A database in WAL mode that nobody has open: also a reader needs the files beside it.
error cannot_begin_to_read(const std::string& name) {
    return {
        errc::permission_denied,
        retry_advice::after_delay,
        false,
        fmt::format(
            "cannot read {}: no process has it open, and this one may not make the files -wal and -shm "
            "beside it that reading needs, too; let it write to the directory, or try again while a relay or "
            "a worker has the file open",
            name
        )};
}

}  // namespace

result<database> database::open(const std::string& path, open_options options) {
    options.name = one_line(options.name.empty() ? fmt::format("\"{}\"", path) : options.name);
    if (options.when_missing.empty()) options.when_missing = "check the path";
    if (auto fits = check_path(path, options); !fits) return tl::unexpected(std::move(fits.error()));

    auto made = std::make_unique<impl>();
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw, open_flags(options.mode), nullptr);
    made->db.reset(raw);
    if (code != SQLITE_OK) return tl::unexpected(make_error(raw, code, options.name, "open"));
    made->options = options;
    sqlite3_busy_handler(raw, &impl::on_busy, made.get());

    database db(std::move(made));
    auto done = configure(db, options);
    if (done) return db;
    std::error_code ignored;
    const bool nobody = !std::filesystem::exists(path + "-shm", ignored);
    const bool reads = options.mode == open_mode::to_read || options.mode == open_mode::read_only;
    if (reads && nobody && done.error().code == errc::permission_denied)
        return tl::unexpected(cannot_begin_to_read(options.name));
    return tl::unexpected(std::move(done.error()));
}

result<statement> database::prepare(std::string_view sql) {
    const auto found = impl_->cache.find(sql);
    if (found != impl_->cache.end()) {
        MILLRACE_ASSERT(sqlite3_stmt_busy(found->second.get()) == 0);
        return statement(found->second.get(), &impl_->options.name);
    }
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(
        handle(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &raw, nullptr
    );
    if (code != SQLITE_OK) return tl::unexpected(make_error(handle(), code, name(), "use"));
    impl_->cache.emplace(sql, raw);
    return statement(raw, &impl_->options.name);
}

result<void> database::execute(const char* script) {
    const int code = sqlite3_exec(handle(), script, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(make_error(handle(), code, name(), "change"));
    return {};
}

result<std::int64_t> database::integer(std::string_view sql) {
    auto found = prepare(sql);
    if (!found) return tl::unexpected(std::move(found.error()));
    return found->step().map([&](bool row) { return row ? found->integer(0) : 0; });
}

result<transaction> database::begin(transaction_kind kind) {
    return run(kind == transaction_kind::immediate ? "BEGIN IMMEDIATE" : "BEGIN").map([this] {
        return transaction(*this);
    });
}

result<void> database::set_durability(durability sync) {
    return run(sync == durability::full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
}

std::uint64_t database::changes() const {
    return static_cast<std::uint64_t>(sqlite3_changes64(handle()));
}

std::int64_t database::last_insert_id() const {
    return sqlite3_last_insert_rowid(handle());
}

bool database::moved() const {
    int answer = 0;
    const int code = sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &answer);
    return code == SQLITE_OK && answer != 0;
}

void database::interrupt() noexcept {
    impl_->interrupted.store(true, std::memory_order_relaxed);
    sqlite3_interrupt(handle());
}

}  // namespace millrace::sqlite
