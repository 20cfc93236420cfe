#include "group_driver.hpp"

#include "group/coordinator.hpp"
#include "overload.hpp"
#include "paced_log.hpp"

#include <deque>
#include <map>
#include <utility>
#include <variant>

namespace millrace {

namespace {

constexpr std::string_view state_away = "the state does not answer";

}  // namespace

struct group_driver::impl {
    // A call or an outcome, in order. A listener may call back from within a notification, so it is queued.
    struct work {
        group_event what;
        completion<void> done{};                             // of a persist, release, finish or stop
        std::optional<std::pair<shard_id, epoch>> handle{};  // that must still be good when its turn comes
    };
    struct persist_waiter {
        std::uint64_t ticket;
        completion<void> done;
    };

    impl(
        host& l,
        lease_store& s,
        shard_lister& li,
        session_view* se,
        const group_options& options,
        process_identity self,
        std::function<bool(const process_identity&)> gone,
        group_listener& to
    )
        : loop(l),
          store(s),
          lister(li),
          session(se),
          listener(to),
          drain_limit(options.drain_limit),
          machine(options, std::move(self), std::move(gone), [&l] { return l.random(); }),
          failures(l) {}

    ~impl() {
        if (timer) loop.cancel(timer->first);
        for (auto& [shard, guard] : guards)
            guard->drop();
    }

    void submit(group_event what) { submit_work({std::move(what)}); }
    void submit_work(work next);
    void expect(const group_event& what, completion<void> done);
    void arm();
    [[nodiscard]] mono_time deadline() const;
    [[nodiscard]] result<void> usable(const shard_id& shard, epoch e) const;
    void answer(completion<void> done, result<void> outcome);
    void answer_all(
        std::map<shard_id, std::vector<completion<void>>>& waiting,
        const shard_id& shard,
        const result<void>& outcome
    );
    void drop_guard(const shard_id& shard);
    void use(const shard_id& shard, epoch e, group_event what, bool ends_it, completion<void> done);

    void carry_out(const list_workers&);
    void carry_out(const list_rows&);
    void carry_out(const list_stream&);
    void carry_out(const read_group& a);
    void carry_out(const write_group& a);
    void carry_out(const end_session& a);
    void carry_out(const create_row& a);
    void carry_out(const remove_row& a);
    void carry_out(const set_row_aside& a);
    void carry_out(const write_lease& a);
    void carry_out(const read_lease& a);
    void carry_out(const lease_granted& a);
    void carry_out(const lease_revoked& a);
    void carry_out(const lease_lost& a);
    void carry_out(const lease_persisted& a);
    void carry_out(const lease_released& a);
    void carry_out(const lease_finished& a);
    void carry_out(const members_changed& a);
    void carry_out(const rows_were_changed&);
    void carry_out(const group_failed& a);
    void carry_out(const group_stopped& a);
    void carry_out(const group_note& a);

    host& loop;
    lease_store& store;
    shard_lister& lister;
    session_view* session;
    group_listener& listener;
    const nanoseconds drain_limit;
    coordinator machine;
    paced_log failures;
    group_counters count;
    lifetime alive;

    std::deque<work> queue;
    bool running{false};
    std::optional<std::pair<host::timer, mono_time>> timer;
    std::map<shard_id, std::shared_ptr<lease_guard>> guards;
    std::map<shard_id, std::deque<persist_waiter>> persists;
    std::map<shard_id, std::vector<completion<void>>> releases;
    std::map<shard_id, std::vector<completion<void>>> finishes;
    std::vector<completion<void>> stops;
};

mono_time group_driver::impl::deadline() const {
    return session == nullptr ? mono_time::max() : session->deadline(machine.mine());
}

void group_driver::impl::submit_work(work added) {
    queue.push_back(std::move(added));
    if (running) return;
    running = true;
    while (!queue.empty()) {
        auto next = std::move(queue.front());
        queue.pop_front();
        if (next.handle) {
            auto ok = machine.usable(next.handle->first, next.handle->second);
            if (!ok) {
                answer(std::move(next.done), std::move(ok));
                continue;
            }
        }
        const auto now = loop.now();
        if (session != nullptr) session->loop_turned(now);
        const auto actions = machine.step(now, deadline(), next.what);
        if (next.done) expect(next.what, std::move(next.done));
        for (const auto& action : actions)
            std::visit([&](const auto& a) { carry_out(a); }, action);
    }
    running = false;
    arm();
}

// Whoever asked waits for the answer, which may be among the actions of this very step.
void group_driver::impl::expect(const group_event& what, completion<void> done) {
    if (const auto* persist = std::get_if<persist_request>(&what)) {
        persists[persist->shard].push_back({machine.persist_requests(persist->shard), std::move(done)});
    } else if (const auto* release = std::get_if<release_request>(&what)) {
        releases[release->shard].push_back(std::move(done));
    } else if (const auto* finish = std::get_if<finish_request>(&what)) {
        finishes[finish->shard].push_back(std::move(done));
    } else {
        stops.push_back(std::move(done));
    }
}

void group_driver::impl::arm() {
    const auto wake = machine.wake();
    if (timer && timer->second <= wake) return;
    if (timer) loop.cancel(timer->first);
    timer.reset();
    if (wake == mono_time::max()) return;
    const auto id = loop.call_at(wake, alive.guard([this] {
        timer.reset();
        submit(group_tick{});
    }));
    timer = {id, wake};
}

void group_driver::impl::answer(completion<void> done, result<void> outcome) {
    if (done) loop.post([done = std::move(done), outcome = std::move(outcome)] { done(outcome); });
}

void group_driver::impl::answer_all(
    std::map<shard_id, std::vector<completion<void>>>& waiting,
    const shard_id& shard,
    const result<void>& outcome
) {
    const auto found = waiting.extract(shard);
    if (found.empty()) return;
    for (auto& done : found.mapped())
        answer(std::move(done), outcome);
}

void group_driver::impl::drop_guard(const shard_id& shard) {
    if (const auto found = guards.extract(shard); !found.empty()) found.mapped()->drop();
}

result<void> group_driver::impl::usable(const shard_id& shard, epoch e) const {
    return machine.usable(shard, e);
}

void group_driver::impl::use(
    const shard_id& shard, epoch e, group_event what, bool ends_it, completion<void> done
) {
    if (auto ok = usable(shard, e); !ok) return answer(std::move(done), std::move(ok));
    if (ends_it) drop_guard(shard);
    submit_work({std::move(what), std::move(done), std::pair{shard, e}});
}

void group_driver::impl::carry_out(const list_workers&) {
    store.list_workers(alive.guard([this](result<std::vector<worker_row>> outcome) {
        if (outcome) failures.over(state_away);
        submit(workers_listed{std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const list_rows&) {
    store.list_shards(alive.guard([this](result<std::vector<shard_row>> outcome) {
        submit(rows_listed{std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const list_stream&) {
    lister.list_shards(alive.guard([this](result<stream_listing> outcome) {
        submit(stream_listed{std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const read_group& a) {
    store.read(
        std::monostate{}, alive.guard([this, request = a.request](result<std::optional<lease_row>> outcome) {
            if (!outcome) return submit(group_read{request, tl::unexpected(outcome.error())});
            std::optional<group_row> row;
            if (*outcome) row = std::get<group_row>(**outcome);
            submit(group_read{request, std::move(row)});
        })
    );
}

void group_driver::impl::carry_out(const write_group& a) {
    store.write(a.row, a.expected, alive.guard([this, request = a.request](result<void> outcome) {
        submit(group_written{request, std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const end_session& a) {
    store.remove(a.session, a.expected, alive.guard([this, session_id = a.session](result<void> outcome) {
        submit(session_ended_reply{session_id, std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const create_row& a) {
    auto row = a.row;
    row.updated_at = loop.wall();
    store.write(row, std::nullopt, alive.guard([this, row](result<void> outcome) {
        submit(row_created{row, std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const remove_row& a) {
    store.remove(a.shard, a.expected, alive.guard([this, shard = a.shard](result<void> outcome) {
        submit(row_removed{shard, std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const set_row_aside& a) {
    auto row = a.row;
    row.updated_at = loop.wall();
    store.write(row, a.expected, alive.guard([this, row](result<void> outcome) {
        submit(row_set_aside{row, std::move(outcome)});
    }));
}

void group_driver::impl::carry_out(const write_lease& a) {
    auto row = a.row;
    row.updated_at = loop.wall();
    const bool is_checkpoint = guards.contains(a.row.shard);  // else it is taken, finished or given back
    store.write(
        std::move(row),
        a.expected,
        alive.guard([this, is_checkpoint, shard = a.row.shard, lease = a.lease](result<void> outcome) {
            if (outcome && is_checkpoint) ++count.checkpoints_written;
            submit(lease_written{shard, lease, std::move(outcome)});
        })
    );
}

void group_driver::impl::carry_out(const read_lease& a) {
    store.read(
        a.shard,
        alive.guard([this, shard = a.shard, lease = a.lease](result<std::optional<lease_row>> outcome) {
            if (!outcome) return submit(lease_read{shard, lease, tl::unexpected(outcome.error())});
            std::optional<shard_row> row;
            if (*outcome) row = std::get<shard_row>(**outcome);
            submit(lease_read{shard, lease, std::move(row)});
        })
    );
}

void group_driver::impl::carry_out(const lease_granted& a) {
    auto guard = std::make_shared<lease_guard>(loop, session, machine.mine());
    drop_guard(a.row.shard);
    guards[a.row.shard] = guard;
    ++count.leases_taken;
    listener.granted(
        {a.row.shard, a.row.epoch, a.row.checkpoint, a.row.parents, a.start, std::move(guard), machine.mine()}
    );
}

void group_driver::impl::carry_out(const lease_revoked& a) {
    listener.revoke(a.shard);
}

void group_driver::impl::carry_out(const lease_lost& a) {
    drop_guard(a.shard);
    ++count.leases_lost;
    answer_all(releases, a.shard, tl::unexpected(a.why));
    answer_all(finishes, a.shard, tl::unexpected(a.why));
    if (!a.was_releasing) listener.lost(a.shard, a.why);
}

void group_driver::impl::carry_out(const lease_persisted& a) {
    const auto waiting = persists.find(a.shard);
    if (waiting == persists.end()) return;
    while (!waiting->second.empty() && waiting->second.front().ticket <= a.upto) {
        answer(std::move(waiting->second.front().done), a.outcome);
        waiting->second.pop_front();
    }
    if (waiting->second.empty()) persists.erase(waiting);
}

void group_driver::impl::carry_out(const lease_released& a) {
    drop_guard(a.shard);
    ++count.leases_released;
    answer_all(releases, a.shard, {});
}

void group_driver::impl::carry_out(const lease_finished& a) {
    drop_guard(a.shard);
    ++count.shards_finished;
    answer_all(finishes, a.shard, {});
}

void group_driver::impl::carry_out(const members_changed& a) {
    listener.membership(a.index, a.total);
}

void group_driver::impl::carry_out(const rows_were_changed&) {
    if (session != nullptr) session->note_change();
}

void group_driver::impl::carry_out(const group_failed& a) {
    listener.failed(a.why);
}

void group_driver::impl::carry_out(const group_stopped& a) {
    for (auto& done : std::exchange(stops, {}))
        answer(std::move(done), a.outcome);
}

void group_driver::impl::carry_out(const group_note& a) {
    if (!loop.log().enabled(a.level)) return;
    if (a.state_is_away) {
        failures.write_of(state_away, a.level, a.event, {{a.key, a.value}, {"detail", a.detail}}, a.detail);
    } else if (a.again_and_again) {
        failures.write(a.level, a.event, {{a.key, a.value}, {"detail", a.detail}}, a.detail);
    } else {
        loop.log().write(a.level, a.event, {{a.key, a.value}, {"detail", a.detail}});
    }
}

group_driver::group_driver(
    host& loop,
    lease_store& store,
    shard_lister& lister,
    session_view* session,
    group_options options,
    process_identity self,
    std::function<bool(const process_identity&)> process_gone,
    group_listener& listener
)
    : impl_(std::make_unique<impl>(
          loop, store, lister, session, options, std::move(self), std::move(process_gone), listener
      )) {}

group_driver::~group_driver() = default;

void group_driver::start() {
    impl_->submit(group_begin{});
}

void group_driver::stop(completion<void> done) {
    impl_->submit_work({stop_request{}, std::move(done), std::nullopt});
}

bool group_driver::may_act(const shard_id& shard, epoch e) const {
    return impl_->usable(shard, e).has_value() && impl_->loop.now() < impl_->deadline();
}

result<void> group_driver::advance(
    const shard_id& shard, epoch e, checkpoint reached, std::uint64_t records
) {
    auto outcome = impl_->machine.advance(impl_->loop.now(), shard, e, reached, records);
    if (outcome && !impl_->running) impl_->arm();
    return outcome;
}

void group_driver::persist(const shard_id& shard, epoch e, completion<void> done) {
    impl_->use(shard, e, persist_request{shard}, false, std::move(done));
}

void group_driver::finish(const shard_id& shard, epoch e, completion<void> done) {
    impl_->use(shard, e, finish_request{shard, impl_->loop.wall()}, true, std::move(done));
}

void group_driver::release(const shard_id& shard, epoch e, completion<void> done) {
    impl_->use(shard, e, release_request{shard}, true, std::move(done));
}

void group_driver::discover_soon() {
    impl_->submit(discover_request{});
}

std::optional<error> group_driver::contradiction() const {
    return impl_->machine.contradiction();
}

std::optional<error> group_driver::trouble() const {
    return impl_->machine.trouble().first();
}

std::optional<error> group_driver::unreadable() const {
    return impl_->machine.trouble().rows;
}

std::optional<error> group_driver::unreadable_worker() const {
    return impl_->machine.trouble().worker_rows;
}

bool group_driver::stream_is_known() const {
    return impl_->machine.stream_is_known();
}

std::optional<error> group_driver::stream_trouble() const {
    return impl_->machine.trouble().stream;
}

std::optional<stream_moment> group_driver::stream() const {
    return impl_->machine.stream(impl_->loop.now());
}

group_counters group_driver::counters() const {
    return impl_->count;
}

bool group_driver::unlisted(const shard_id& shard) const {
    return impl_->machine.unlisted(shard);
}

nanoseconds group_driver::drain_limit() const {
    return impl_->drain_limit;
}

std::vector<shard_view> group_driver::shards() const {
    std::vector<shard_view> all;
    for (auto& one : impl_->machine.status())
        all.push_back(
            {std::move(one.row),
             one.listed,
             one.ready,
             one.mine,
             one.open_again,
             one.owner_lapsed,
             std::move(one.other)}
        );
    return all;
}

std::size_t group_driver::shards_held() const {
    return impl_->machine.leases_held();
}

bool group_driver::settled() const {
    return impl_->machine.settled();
}

std::uint64_t group_driver::records_at_risk() const {
    return impl_->machine.records_at_risk();
}

void group_driver::session_started(const incarnation& mine) {
    impl_->submit(session_came{mine});
}

void group_driver::session_ended(const incarnation& mine, const error& why) {
    impl_->submit(session_went{mine, why});
}

}  // namespace millrace
