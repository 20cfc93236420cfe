#include "pg_thread.hpp"

#include "assert.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace millrace::postgres {

struct pg_thread::impl {
    using steady = std::chrono::steady_clock;

    impl(opener o, pg_thread_options given) : open(std::move(o)), options(given) {}

    void loop();
    [[nodiscard]] result<connection*> present();
    [[nodiscard]] result<connection*> failed(error why);

    opener open;
    pg_thread_options options;
    stop_signal stop;

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<task> tasks;  // guarded

    std::optional<connection> db;  // the thread's, as all below
    std::uint64_t connections{0};
    milliseconds pause{0};
    steady::time_point next_attempt{};
    error last_failure;

    std::thread thread;
};

pg_thread::pg_thread(host& home, opener open, pg_thread_options options)
    : home_(home), impl_(std::make_unique<impl>(std::move(open), options)) {
    MILLRACE_ASSERT(options.reconnect_min.count() >= 1 && options.reconnect_min <= options.reconnect_max);
    impl_->thread = std::thread([this] { impl_->loop(); });
}

pg_thread::~pg_thread() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stop.set();
    }
    impl_->wake.notify_one();
    impl_->thread.join();
}

void pg_thread::submit(task what) {
    {
        const std::lock_guard lock(impl_->mutex);
        if (impl_->tasks.size() < impl_->options.jobs_max) {
            impl_->tasks.push_back(std::move(what));
            what = nullptr;
        }
    }
    if (what) {
        what(fail(
            errc::unavailable,
            "too many requests to PostgreSQL are waiting; the server is slower than the work, try again "
            "later",
            retry_advice::after_delay
        ));
        return;
    }
    impl_->wake.notify_one();
}

void pg_thread::impl::loop() {
    std::unique_lock lock(mutex);
    for (;;) {
        wake.wait(lock, [this] { return stop.is_set() || !tasks.empty(); });
        if (tasks.empty()) return;
        auto next = std::move(tasks.front());
        tasks.pop_front();
        lock.unlock();
        next(present());
        if (db && !db->usable()) db.reset();
        next = nullptr;
        lock.lock();
    }
}

result<connection*> pg_thread::impl::present() {
    if (stop.is_set()) {
        return fail(errc::cancelled, "the request was given up because the process stops");
    }
    if (db && !db->still_open()) db.reset();
    if (db) return &*db;
    if (steady::now() < next_attempt) return tl::unexpected(last_failure);
    auto made = open(stop);
    if (!made) return failed(std::move(made.error()));
    pause = milliseconds{0};
    db.emplace(std::move(*made));
    db->set_number(++connections);
    return &*db;
}

result<connection*> pg_thread::impl::failed(error why) {
    pause = std::clamp(pause * 2, options.reconnect_min, options.reconnect_max);
    next_attempt = steady::now() + pause;
    why.in_doubt = false;  // of the jobs, nothing was sent
    last_failure = why;
    return tl::unexpected(std::move(why));
}

}  // namespace millrace::postgres
