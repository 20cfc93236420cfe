#include "session_driver.hpp"

#include "overload.hpp"
#include "paced_log.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace millrace {

struct session_driver::impl {
    impl(
        host& k,
        lease_store& s,
        session_options options,
        process_identity self,
        lapse_observer::process_gone gone,
        session_listener& l
    )
        : keeper(k),
          store(s),
          listener(l),
          worker(options.worker),
          machine(std::move(options), std::move(self), std::move(gone), [&k] { return k.random(); }),
          failures(k) {}

    ~impl() {
        if (timer) keeper.cancel(*timer);
    }

    void step(const session_machine::event& what);
    void carry_out(const session_machine::action& what);
    void write(const session_machine::write& what);
    void read(const session_machine::read& what);
    void list();
    void remove(const session_machine::remove& what);
    void waits(const session_machine::waits& what);
    void started(const session_machine::started& what);
    void lost(const session_machine::lost& what);
    void stopped(const session_machine::stopped& what);
    void say_failure(const error& why);
    void arm();

    host& keeper;
    lease_store& store;
    session_listener& listener;
    worker_id worker;
    session_machine machine;
    paced_log failures;
    std::optional<mono_time> failing_since;  // sent then, and no heartbeat has been written since
    lifetime alive;
    std::optional<host::timer> timer;
    std::vector<completion<void>> stop_done;

    // Shared with the loop and the handler threads.
    mutable std::mutex mutex;
    incarnation session;                   // guarded by `mutex`
    mono_time deadline{mono_time::min()};  // guarded by `mutex`
    std::atomic<std::int64_t> turned{mono_time::min().time_since_epoch().count()};
    std::atomic<bool> wants_turn{false};
    std::atomic<bool> change_posted{false};
};

void session_driver::impl::step(const session_machine::event& what) {
    machine.loop_turned(mono_time{nanoseconds{turned.load()}});
    const auto actions = machine.step(keeper.now(), what);
    // The deadline first: whoever hears of the end must already be refused.
    {
        const std::scoped_lock lock(mutex);
        session = machine.session();
        deadline = machine.deadline().value_or(mono_time::min());
    }
    for (const auto& action : actions)
        carry_out(action);
    wants_turn.store(machine.waits_for_loop(keeper.now()));
    arm();
}

void session_driver::impl::arm() {
    if (timer) keeper.cancel(*std::exchange(timer, std::nullopt));
    const auto wake = machine.wake(keeper.now());
    if (!wake) return;
    timer = keeper.call_at(*wake, alive.guard([this] {
        timer.reset();
        step(session_machine::timer{});
    }));
}

void session_driver::impl::carry_out(const session_machine::action& what) {
    std::visit(
        overload{
            [&](const session_machine::write& a) { write(a); },
            [&](const session_machine::read& a) { read(a); },
            [&](const session_machine::list&) { list(); },
            [&](const session_machine::remove& a) { remove(a); },
            [&](const session_machine::waits& a) { waits(a); },
            [&](const session_machine::started& a) { started(a); },
            [&](const session_machine::lost& a) { lost(a); },
            [&](const session_machine::stopped& a) { stopped(a); },
        },
        what
    );
}

void session_driver::impl::write(const session_machine::write& what) {
    auto row = what.row;
    row.updated_at = keeper.wall();
    store.write(std::move(row), what.expected, alive.guard([this, sent = keeper.now()](result<void> outcome) {
        if (outcome) {
            failing_since.reset();
        } else {
            failing_since = failing_since.value_or(sent);
            say_failure(outcome.error());
        }
        step(session_machine::write_done{std::move(outcome)});
    }));
}

void session_driver::impl::read(const session_machine::read& what) {
    store.read(what.session, alive.guard([this](result<std::optional<lease_row>> outcome) {
        if (!outcome) return step(session_machine::read_done{tl::unexpected(outcome.error())});
        std::optional<worker_row> row;
        if (*outcome) row = std::get<worker_row>(**outcome);
        step(session_machine::read_done{std::move(row)});
    }));
}

void session_driver::impl::list() {
    store.list_workers(alive.guard([this, sent = keeper.now()](result<std::vector<worker_row>> outcome) {
        if (!outcome) {
            failing_since = failing_since.value_or(sent);
            say_failure(outcome.error());
        }
        step(session_machine::list_done{std::move(outcome)});
    }));
}

void session_driver::impl::remove(const session_machine::remove& what) {
    store.remove(what.session, what.expected, alive.guard([this](result<void> outcome) {
        step(session_machine::remove_done{std::move(outcome)});
    }));
}

void session_driver::impl::say_failure(const error& why) {
    const auto failing = fmt::format(
        "{:.1f}s", std::chrono::duration<double>(keeper.now() - failing_since.value_or(keeper.now())).count()
    );
    failures.write(
        log_level::warning,
        "session.heartbeat_failed",
        {{"worker", worker.value()},
         {"code", std::string(name_of(why.code))},
         {"failing_for", failing},
         {"detail", why.detail}},
        fmt::format("failing for {}: {}", failing, why.detail)
    );
}

void session_driver::impl::waits(const session_machine::waits& what) {
    const auto& elder = what.elder;
    keeper.log().write(
        log_level::info,
        "session.waiting",
        {{"worker", worker.value()},
         {"why",
          fmt::format(
              "process {} on host \"{}\" has this worker id; this one takes no shards until that session has "
              "ended or has not been renewed for {} ms, and stops when it is renewed",
              elder.process.pid,
              elder.process.host,
              std::chrono::floor<milliseconds>(elder.lease).count()
          )}}
    );
}

void session_driver::impl::started(const session_machine::started& what) {
    keeper.log().write(
        log_level::info, "session.started", {{"worker", worker.value()}, {"session", what.session.value()}}
    );
    listener.session_started(what.session);
}

void session_driver::impl::lost(const session_machine::lost& what) {
    keeper.log().write(
        what.why.code == errc::worker_id_taken ? log_level::error : log_level::warning,
        "session.ended",
        {{"worker", worker.value()}, {"session", what.session.value()}, {"why", what.why.detail}}
    );
    listener.session_ended(what.session, what.why);
}

void session_driver::impl::stopped(const session_machine::stopped& what) {
    if (what.outcome) {
        keeper.log().write(log_level::info, "session.stopped", {{"worker", worker.value()}});
    } else {
        keeper.log().write(
            log_level::warning,
            "session.stopped",
            {{"worker", worker.value()}, {"why", what.outcome.error().detail}}
        );
    }
    for (auto& done : std::exchange(stop_done, {})) {
        keeper.post(alive.guard([done = std::move(done), outcome = what.outcome] { done(outcome); }));
    }
}

session_driver::session_driver(
    host& keeper,
    lease_store& store,
    session_options options,
    process_identity self,
    lapse_observer::process_gone gone,
    session_listener& listener
)
    : impl_(std::make_unique<impl>(
          keeper, store, std::move(options), std::move(self), std::move(gone), listener
      )) {}

session_driver::~session_driver() = default;

void session_driver::start() {
    impl_->step(session_machine::begin{});
}

void session_driver::stop(completion<void> done) {
    impl_->stop_done.push_back(std::move(done));
    impl_->step(session_machine::end{});
}

mono_time session_driver::deadline(const incarnation& of) const {
    const std::scoped_lock lock(impl_->mutex);
    return of == impl_->session ? impl_->deadline : mono_time::min();
}

void session_driver::note_change() {
    if (impl_->change_posted.exchange(true)) return;
    impl_->keeper.post(impl_->alive.guard([self = impl_.get()] {
        self->change_posted.store(false);
        self->step(session_machine::rows_changed{});
    }));
}

void session_driver::loop_turned(mono_time now) {
    impl_->turned.store(now.time_since_epoch().count());
    if (!impl_->wants_turn.exchange(false)) return;
    impl_->keeper.post(impl_->alive.guard([self = impl_.get()] { self->step(session_machine::timer{}); }));
}

}  // namespace millrace
