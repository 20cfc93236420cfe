/// A thread with a SQLite connection of its own, for a host that must not block.
///
/// Jobs run in the order in which they were given; their outcomes are posted to the host. While nothing is to
/// be done, the thread looks for commits of other connections. All functions belong to the host's thread.
/// The connection is opened for the first job, and anew when the file was replaced or an attempt failed.
#pragma once

#include "database.hpp"
#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace millrace::sqlite {

struct db_thread_options {
    std::size_t jobs_max{1'024};  ///< Waiting; above, a job completes with `unavailable`.

    /// Between two looks for changes, right after a change and when all is quiet; at least 1 ms, at most 10
    /// ms. A look costs some 10 microseconds.
    milliseconds watch_min{2};
    milliseconds watch_max{10};

    /// Of `run_write`: so many at most are one transaction, and so long at least the file is left to others
    /// between two of them. Who waits for its lock looks every 10 ms at the latest.
    std::size_t writes_at_once{256};
    milliseconds write_rest{5};
};

class db_thread {
public:
    using opener = std::function<result<database>()>;

    /// `open` runs on the thread. The host must outlive this object.
    db_thread(host& home, opener open, db_thread_options options = {});

    /// Ends a wait for a lock, lets the present job return and completes the waiting ones with `cancelled`.
    ~db_thread();
    db_thread(const db_thread&) = delete;
    db_thread& operator=(const db_thread&) = delete;

    /// Runs `job` on the thread and posts its outcome: exactly once, never inside this call.
    template <class T>
    void run(std::function<result<T>(database&)> job, completion<T> done) {
        submit([this, job = std::move(job), done = std::move(done)](result<database*> db) mutable {
            auto outcome = db ? job(**db) : result<T>(tl::unexpected(std::move(db.error())));
            after(outcome ? nullptr : &outcome.error());
            home_.post([done = std::move(done), outcome = std::make_shared<result<T>>(std::move(outcome))] {
                done(std::move(*outcome));
            });
        });
    }

    /// As `run`, for a write that stands for itself, of which many come from many processes. All that wait
    /// are one transaction with one sync, in order; other jobs are done before them. A write that fails
    /// leaves nothing and the others are kept.
    void run_write(std::function<result<void>(database&)> job, completion<void> done);

    /// Posts `changed` to the host soon after another connection, of any process, has committed since the
    /// connection was opened; never for this thread's own commits. An empty function ends it.
    void watch(std::function<void()> changed);

private:
    using task = std::function<void(result<database*>)>;

    void submit(task what);
    void after(const error* failed);

    struct impl;
    host& home_;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::sqlite
