/// A thread with a connection of its own, for a host that must not block.
///
/// Jobs run in the order in which they were given; their outcomes are posted to the host. The connection is
/// made for the first job, and anew when it was lost; while the server cannot be reached, jobs fail without
/// waiting between the attempts. All functions belong to the host's thread.
#pragma once

#include "connection.hpp"
#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace millrace::postgres {

struct pg_thread_options {
    std::size_t jobs_max{1'024};  ///< Waiting; above, a job completes with `unavailable`.

    /// Between two attempts to connect: doubles from the first to the last.
    milliseconds reconnect_min{50};
    milliseconds reconnect_max{1'000};
};

class pg_thread {
public:
    /// Makes a connection and whatever must hold before the first job, such as tables.
    using opener = std::function<result<connection>(const stop_signal&)>;

    /// `open` runs on the thread. The host must outlive this object.
    pg_thread(host& home, opener open, pg_thread_options options = {});

    /// Ends what the present job waits for, and completes the waiting ones with `cancelled`.
    ~pg_thread();
    pg_thread(const pg_thread&) = delete;
    pg_thread& operator=(const pg_thread&) = delete;

    /// Runs `job` on the thread and posts its outcome: exactly once, never inside this call. By
    /// `connection::number` a job sees that what it remembers is of an earlier connection.
    template <class T>
    void run(std::function<result<T>(connection&)> job, completion<T> done) {
        submit([&home = home_, job = std::move(job), done = std::move(done)](result<connection*> db) mutable {
            auto outcome = db ? job(**db) : result<T>(tl::unexpected(std::move(db.error())));
            home.post([done = std::move(done), outcome = std::make_shared<result<T>>(std::move(outcome))] {
                done(std::move(*outcome));
            });
        });
    }

private:
    using task = std::function<void(result<connection*>)>;

    void submit(task what);

    struct impl;
    host& home_;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::postgres
