#include "db_thread.hpp"

#include "assert.hpp"
#include "file_identity.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace::sqlite {

namespace {

/// The file of a connection and the write-ahead log beside it.
struct standing_files {
    std::string path;
    std::optional<file_identity> file;
    std::optional<file_identity> log;
};

standing_files files_of(const database& db) {
    standing_files found;
    const char* const path = sqlite3_db_filename(db.handle(), "main");
    if (path == nullptr || *path == '\0') return found;
    found = {path, identity_of(path), identity_of(fmt::format("{}-wal", path))};
    return found;
}

/// SQLite finds the log by its name: it would read, and write, the pages of the former file as if they were
/// of the one that took its place.
result<void> check_log(const standing_files& former) {
    if (!former.log) return {};
    const auto file = identity_of(former.path);
    if (!file || file == former.file) return {};
    const auto log = former.path + "-wal";
    if (identity_of(log) != former.log) return {};
    return fail(
        errc::unavailable,
        fmt::format(
            "\"{0}\" was replaced, but \"{1}\" is that of the file before, whose pages would be written into "
            "the new one; move it, and \"{0}-shm\", away to that file, and all goes on",
            former.path,
            log
        ),
        retry_advice::after_delay
    );
}

struct write_job {
    std::function<result<void>(database&)> run;
    completion<void> done;
};

using outcomes = std::vector<result<void>>;

/// All writes as one transaction.
outcomes run_together(database& db, const std::vector<write_job>& writes) {
    const auto none = [&](error why) { return outcomes(writes.size(), tl::unexpected(std::move(why))); };
    auto open = db.begin(transaction_kind::immediate);
    if (!open) return none(std::move(open.error()));
    outcomes all;
    for (const auto& write : writes) {
        auto done = db.run("SAVEPOINT one_write");
        if (!done) return none(std::move(done.error()));
        all.push_back(write.run(db));
        // Some faults end the whole transaction.
        if (!all.back() && sqlite3_get_autocommit(db.handle()) != 0) return none(all.back().error());
        if (!all.back()) done = db.run("ROLLBACK TO one_write");
        if (done) done = db.run("RELEASE one_write");
        if (!done) return none(std::move(done.error()));
    }
    if (auto done = open->commit(); !done) {
        for (auto& one : all)
            if (one) one = tl::unexpected(done.error());
    }
    return all;
}

}  // namespace

struct db_thread::impl {
    using steady = std::chrono::steady_clock;

    impl(host& h, opener o, db_thread_options given)
        : home(h), open(std::move(o)), options(given), pause(given.watch_max) {}

    void loop();
    void next_task(std::unique_lock<std::mutex>& lock);
    void next_writes(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool writes_are_due() const {
        return !writes.empty() && (stopping || steady::now() >= next_write);
    }
    void run(task what);
    void run(std::vector<write_job> all, bool cancelled);
    void look();
    [[nodiscard]] result<database*> connection();
    void close();

    host& home;
    opener open;
    db_thread_options options;

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<task> tasks;                          // guarded
    std::deque<write_job> writes;                    // guarded
    std::shared_ptr<std::function<void()>> changed;  // guarded; null: nobody watches
    bool stopping{false};                            // guarded
    database* interruptible{nullptr};                // guarded; null while there is no connection

    std::optional<database> db;    // the thread's, as all below
    standing_files former;         // of the latest connection
    std::int64_t seen_version{0};  // of the data, as of the last look
    milliseconds pause;
    steady::time_point next_look{};
    steady::time_point next_write{};
    bool drop_connection{false};

    std::thread thread;
};

db_thread::db_thread(host& home, opener open, db_thread_options options)
    : home_(home), impl_(std::make_unique<impl>(home, std::move(open), options)) {
    MILLRACE_ASSERT(options.watch_min.count() >= 1 && options.watch_min <= options.watch_max);
    impl_->thread = std::thread([this] { impl_->loop(); });
}

db_thread::~db_thread() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
        impl_->changed = nullptr;
        if (impl_->interruptible != nullptr) impl_->interruptible->interrupt();
    }
    impl_->wake.notify_one();
    impl_->thread.join();
}

namespace {

tl::unexpected<error> too_many() {
    return fail(
        errc::unavailable,
        "too many database requests are waiting; the disk is slower than the work, try again later",
        retry_advice::after_delay
    );
}

tl::unexpected<error> given_up() {
    return fail(errc::cancelled, "the request was given up because the process stops");
}

}  // namespace

void db_thread::submit(task what) {
    {
        const std::lock_guard lock(impl_->mutex);
        if (impl_->tasks.size() < impl_->options.jobs_max) {
            impl_->tasks.push_back(std::move(what));
            what = nullptr;
        }
    }
    if (what) return what(too_many());
    impl_->wake.notify_one();
}

void db_thread::run_write(std::function<result<void>(database&)> job, completion<void> done) {
    std::unique_lock lock(impl_->mutex);
    if (impl_->writes.size() >= impl_->options.jobs_max) {
        lock.unlock();
        return home_.post([done = std::move(done)] { done(too_many()); });
    }
    impl_->writes.push_back({std::move(job), std::move(done)});
    lock.unlock();
    impl_->wake.notify_one();
}

void db_thread::after(const error* failed) {
    // A damaged file may be replaced in place by its backup, which an open connection would not notice.
    if (failed != nullptr && failed->code == errc::corrupt) impl_->drop_connection = true;
}

void db_thread::watch(std::function<void()> changed) {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->changed = changed ? std::make_shared<std::function<void()>>(std::move(changed)) : nullptr;
    }
    impl_->wake.notify_one();
}

void db_thread::impl::loop() {
    std::unique_lock lock(mutex);
    for (;;) {
        const auto something = [this] { return stopping || !tasks.empty() || writes_are_due(); };
        const bool watches = changed != nullptr && db;
        auto until = watches ? next_look : steady::time_point::max();
        if (!writes.empty()) until = std::min(until, next_write);
        if (until != steady::time_point::max()) {
            wake.wait_until(lock, until, something);
        } else {
            wake.wait(lock, [&] { return something() || !writes.empty() || (changed != nullptr && db); });
        }
        if (!tasks.empty()) {
            next_task(lock);
        } else if (writes_are_due()) {
            next_writes(lock);
        } else if (stopping) {
            break;
        }
        if (!stopping && changed != nullptr && db && steady::now() >= next_look) {
            lock.unlock();
            look();
            next_look = steady::now() + pause;
            lock.lock();
        }
    }
    interruptible = nullptr;
    lock.unlock();
    db.reset();
}

void db_thread::impl::next_task(std::unique_lock<std::mutex>& lock) {
    auto next = std::move(tasks.front());
    tasks.pop_front();
    const bool cancelled = stopping;
    lock.unlock();
    if (cancelled) {
        next(given_up());
    } else {
        run(std::move(next));
    }
    next = nullptr;
    lock.lock();
}

void db_thread::impl::next_writes(std::unique_lock<std::mutex>& lock) {
    const auto count = std::min(writes.size(), options.writes_at_once);
    std::vector<write_job> all(
        std::make_move_iterator(writes.begin()),
        std::make_move_iterator(writes.begin() + static_cast<std::ptrdiff_t>(count))
    );
    writes.erase(writes.begin(), writes.begin() + static_cast<std::ptrdiff_t>(count));
    const bool cancelled = stopping;
    lock.unlock();
    run(std::move(all), cancelled);
    next_write = steady::now() + options.write_rest;
    lock.lock();
}

void db_thread::impl::run(std::vector<write_job> all, bool cancelled) {
    outcomes how;
    if (cancelled) {
        how.assign(all.size(), given_up());
    } else if (const auto to = connection(); !to) {
        how.assign(all.size(), tl::unexpected(to.error()));
    } else if (all.size() == 1) {
        how.push_back(all.front().run(**to));
    } else {
        how = run_together(**to, all);
    }
    const auto damaged = [](const result<void>& one) { return !one && one.error().code == errc::corrupt; };
    if (std::any_of(how.begin(), how.end(), damaged)) close();
    for (std::size_t i = 0; i < how.size(); ++i)
        home.post([done = std::move(all[i].done), outcome = std::move(how[i])] { done(outcome); });
}

void db_thread::impl::run(task what) {
    what(connection());
    if (std::exchange(drop_connection, false)) close();
}

result<database*> db_thread::impl::connection() {
    if (db && db->moved()) close();
    if (!db) {
        if (auto fits = check_log(former); !fits) return tl::unexpected(std::move(fits.error()));
        auto made = open();
        if (!made) return tl::unexpected(std::move(made.error()));
        auto version = made->integer("PRAGMA data_version");
        if (!version) return tl::unexpected(std::move(version.error()));
        db.emplace(std::move(*made));
        former = files_of(*db);
        seen_version = *version;
        const std::lock_guard lock(mutex);
        interruptible = &*db;
        if (stopping) db->interrupt();
    }
    return &*db;
}

void db_thread::impl::close() {
    {
        const std::lock_guard lock(mutex);
        interruptible = nullptr;
    }
    db.reset();
}

void db_thread::impl::look() {
    const auto version = db->integer("PRAGMA data_version");
    // An error here is met and reported by the next request.
    if (!version || *version == seen_version) {
        pause = std::min(pause * 2, options.watch_max);
        return;
    }
    seen_version = *version;
    pause = options.watch_min;
    std::unique_lock lock(mutex);
    if (changed == nullptr) return;
    const std::weak_ptr<std::function<void()>> watcher = changed;
    lock.unlock();
    home.post([weak = watcher] {
        if (const auto call = weak.lock()) (*call)();
    });
}

}  // namespace millrace::sqlite
