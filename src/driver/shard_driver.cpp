// The other half of a shard: carries out `shard_delivery` on the pool, and keeps the lease.
#include "shard_driver.hpp"

#include "assert.hpp"
#include "handler_call.hpp"
#include "shard_driver_impl.hpp"

#include <utility>

#include <fmt/core.h>

namespace millrace {

namespace {

// How soon a lease whose deadline has passed is looked at again: a late heartbeat may renew it.
constexpr nanoseconds deadline_recheck = std::chrono::milliseconds{20};

start_position first_position(const lease_grant& grant) {
    if (grant.checkpoint) return from::after{grant.checkpoint->position};
    return grant.start;
}

std::string not_stored(const std::string& which, const error& why) {
    return fmt::format(
        "{} finds no place among the dead letters, and nothing more of this shard is handed over until it "
        "does: {}{}",
        which,
        why.detail,
        why.retry == retry_advice::never ? "; if they can never take it, run the group with a handler that "
                                           "accepts it, or with another place "
                                           "for the dead letters"
                                         : ""
    );
}

}  // namespace

shard_driver::impl::impl(const shard_surroundings& surroundings, lease_grant granted)
    : around(surroundings),
      grant(std::move(granted)),
      still_owner([guard = grant.guard] { return guard->may_act(); }),
      member(around.memory.join()),
      reader(around.options, first_position(grant)),
      lease_pause(around.options.backoff_min, around.options.backoff_max),
      assign_pause(around.options.retry_min, around.options.retry_max),
      inbox(std::make_shared<shard_inbox>(around.loop, [this] { on_reports(); })),
      read_alarm(around.loop),
      work_alarm(around.loop),
      lease_alarm(around.loop) {
    MILLRACE_ASSERT(grant.guard != nullptr);
    so_far.shard = grant.shard;
    so_far.epoch = grant.epoch;
    looked_at = now();
    work.emplace(around.options, grant.shard);
}

shard_driver::impl::~impl() {
    stop.request_stop();
    inbox->close();
    around.memory.leave(member);
}

void shard_driver::impl::say(log_level level, std::string_view event, std::string detail) const {
    auto& log = around.loop.log();
    if (!log.enabled(level)) return;
    log.write(
        level,
        event,
        {{"shard", name()}, {"epoch", std::to_string(grant.epoch.value())}, {"detail", std::move(detail)}}
    );
}

void shard_driver::impl::say_failure(log_level level, std::string_view event, const std::string& detail)
    const {
    if (!around.failures.enabled(level)) return;
    around.failures.write(
        level,
        event,
        {{"shard", name()}, {"epoch", std::to_string(grant.epoch.value())}, {"detail", detail}},
        detail
    );
}

// Handling.

void shard_driver::impl::on_reports() {
    for (auto& what : inbox->take())
        take(what);
    proceed();
}

void shard_driver::impl::take(shard_inbox::report& what) {
    const bool over = std::holds_alternative<shard_inbox::returned>(what) ||
                      std::holds_alternative<shard_inbox::skipped>(what);
    if (over) calling = false;
    if (ended) {
        if (over) around.loop.post(around.ended);
        return;
    }
    if (const auto* range = std::get_if<shard_inbox::acknowledged>(&what)) {
        work->acknowledge(range->first, range->last);
    } else if (const auto* one = std::get_if<shard_inbox::failed>(&what)) {
        say_failure(log_level::warning, "shard.record_failed", one->why.detail);
        work->fail(now(), around.loop.random(), one->which, one->why);
    } else if (const auto* call = std::get_if<shard_inbox::returned>(&what)) {
        on_returned(call->how);
    } else {
        work->not_called();
    }
}

void shard_driver::impl::on_returned(const result<handled>& how) {
    if (!how && !work->ended_early(how.error()))
        say_failure(log_level::warning, "shard.handler_failed", how.error().detail);
    work->returned(now(), around.loop.random(), how);
}

// A handler that throws here has failed, but no record is to blame: it is said, and the shard goes on.
bool shard_driver::impl::noted(const result<void>& how) {
    if (how) return true;
    ++around.counters.handler_failures;
    say_failure(log_level::warning, "shard.handler_failed", how.error().detail);
    return false;
}

bool shard_driver::impl::tell(std::string_view function, void (record_handler::*what)(const shard_id&)) {
    return noted(call_handler_safely(grant.shard, function, [&]() -> result<void> {
        (around.handler.*what)(grant.shard);
        return {};
    }));
}

// Nothing is handed over before the handler has taken the shard: it is told again after a pause.
void shard_driver::impl::assign() {
    const auto how = call_handler_safely(grant.shard, "assigned", [&]() -> result<void> {
        const auto& at = grant.checkpoint;
        around.handler.assigned(
            {grant.shard,
             grant.epoch,
             at ? std::optional(at->position) : std::nullopt,
             grant.owner,
             around.place}
        );
        return {};
    });
    assigned = noted(how);
    if (assigned) return;
    assign_at = now() + assign_pause.next(around.loop.random());
    if (around.options.on_failure != failure_policy::stop) return;
    work->stop(how.error());
    on_stopped();
}

void shard_driver::impl::pump_work() {
    if (held_back || calling || !work->pending()) return;
    if (!assigned) {
        if (now() >= assign_at) assign();
        if (work->stopped()) return;
        if (!assigned) return work_alarm.set(assign_at, [this] { proceed(); });
    }
    if (!still_owner()) {
        work_alarm.set(now() + deadline_recheck, [this] { proceed(); });
        return;
    }
    auto next = work->next(now());
    if (auto* hand = std::get_if<shard_delivery::hand>(&next)) {
        call_handler(std::move(*hand));
    } else if (auto* lost_record = std::get_if<shard_delivery::bury>(&next)) {
        bury(std::move(*lost_record));
    } else if (const auto* wait = std::get_if<shard_delivery::wait>(&next)) {
        work_alarm.set(wait->until, [this] { proceed(); });
    }
}

void shard_driver::impl::call_handler(shard_delivery::hand what) {
    calling = true;
    auto call = std::make_shared<handler_call>(handler_call{
        around.handler,
        inbox,
        what.batch,
        delivery{
            grant.epoch,
            what.attempt,
            stop.get_token(),
            still_owner,
            make_acknowledger(inbox, what.batch->records().size(), what.first, std::move(what.places))}});
    around.pool.run([call = std::move(call)] { call->run(); });
}

void shard_driver::impl::bury(shard_delivery::bury what) {
    const auto& at = what.batch->records()[what.at].position;
    auto which = fmt::format("the record at {}.{}", at.sequence.to_string(), at.sub_sequence);
    auto told = fmt::format("{} goes to the dead letters, its failure was: {}", which, what.why.detail);
    around.dead_letters->put(
        std::move(what.batch),
        what.at,
        std::move(what.why),
        alive.guard([this, told = std::move(told), which = std::move(which)](const result<void>& how) {
            if (how) {
                say_failure(log_level::warning, "shard.record_dead_lettered", told);
            } else {
                say_failure(log_level::error, "shard.dead_letter_failed", not_stored(which, how.error()));
            }
            work->buried(now(), around.loop.random(), how);
            proceed();
        })
    );
}

void shard_driver::impl::on_stopped() {
    if (std::exchange(stop_said, true)) return;
    ++around.counters.shards_stopped;
    to_open.reset();
    to_read.reset();
    read_alarm.cancel();
    say(log_level::error,
        "shard.stopped",
        "the handler failed (" + work->stopped()->detail +
            "); by policy nothing more of this shard is handed over until it is taken anew");
}

// The lease.

void shard_driver::impl::proceed() {
    if (ended || ending) return;
    const auto moved = work->take_progress();
    if (moved || work->in_window() == 0) waiting_since.reset();
    if (work->in_window() > 0 && !waiting_since) waiting_since = now();
    if (moved && !around.place) {
        const auto kept = around.leases.advance(grant.shard, grant.epoch, moved->reached, moved->records);
        if (!kept) say_failure(log_level::warning, "shard.advance_refused", kept.error().detail);
        if (ended) return;  // the group may have found out just now
    }
    count();
    if (work->stopped()) on_stopped();
    if (work->finished()) {
        if (gone && !draining) (void)tell("revoked", &record_handler::revoked);
        return end_lease(!gone);
    }
    if (draining && work->settled()) return end_lease(false);
    pump_work();
    pump_open();
    pump_read();
}

void shard_driver::impl::revoke() {
    if (ended || ending || std::exchange(draining, true)) return;
    (void)tell("revoked", &record_handler::revoked);
    stop.request_stop();
    work->drain();
    to_open.reset();
    to_read.reset();
    read_alarm.cancel();
    work_alarm.cancel();
    lease_alarm.set(now() + around.leases.drain_limit(), [this] {
        on_reports();  // what was acknowledged in time counts, also when the loop was not told yet
        if (ended || ending) return;
        say(log_level::warning,
            "shard.drain_limit",
            "the handler did not settle its records within the drain limit; they come again elsewhere");
        end_lease(false);
    });
    proceed();
}

void shard_driver::impl::end_lease(bool finished) {
    ending = true;
    lease_alarm.cancel();
    read_alarm.cancel();
    work_alarm.cancel();
    auto done = alive.guard([this, finished](const result<void>& how) { on_lease_ended(finished, how); });
    if (finished) {
        around.leases.finish(grant.shard, grant.epoch, std::move(done));
    } else {
        around.leases.release(grant.shard, grant.epoch, std::move(done));
    }
}

void shard_driver::impl::on_lease_ended(bool finished, const result<void>& how) {
    if (ended) return;
    if (how) {
        if (finished) (void)tell("finished", &record_handler::finished);
        return end_now();
    }
    const auto& why = how.error();
    if (why.code == errc::already_finished || why.code == errc::already_released) return end_now();
    if (why.code == errc::not_owner || why.code == errc::conflict) return lost(why);
    say_failure(log_level::warning, finished ? "shard.finish_failed" : "shard.release_failed", why.detail);
    lease_alarm.set(now() + lease_pause.next(around.loop.random()), [this, finished] {
        end_lease(finished);
    });
}

void shard_driver::impl::lost(const error& why) {
    if (ended) return;
    say(log_level::info, "shard.lost", why.detail);
    (void)tell("lost", &record_handler::lost);
    end_now();
}

void shard_driver::impl::end_now() {
    count();
    ended = true;
    stop.request_stop();
    alive.renew();
    read_alarm.cancel();
    work_alarm.cancel();
    lease_alarm.cancel();
    to_open.reset();
    to_read.reset();
    work.emplace(around.options, grant.shard);  // lets go of all memory
    counted = {};
    if (!calling) around.loop.post(around.ended);
}

void shard_driver::impl::count() {
    const auto& is = work->totals();
    auto& sum = around.counters;
    sum.records_handed += is.handed - counted.handed;
    sum.records_acknowledged += is.acknowledged - counted.acknowledged;
    sum.records_dead_lettered += is.dead_lettered - counted.dead_lettered;
    sum.handler_failures += is.failures - counted.failures;
    so_far.records_acknowledged = is.acknowledged;
    counted = is;
}

shard_driver::shard_driver(const shard_surroundings& around, lease_grant grant)
    : impl_(std::make_unique<impl>(around, std::move(grant))) {}

shard_driver::~shard_driver() = default;

void shard_driver::start(bool held_back) {
    impl_->held_back = held_back;
    impl_->assign();
    impl_->read_step(shard_reader::started{});
    impl_->proceed();
}

void shard_driver::call_freed() {
    if (!std::exchange(impl_->held_back, false)) return;
    impl_->proceed();
}

void shard_driver::revoke() {
    impl_->revoke();
}

void shard_driver::lost(const error& why) {
    impl_->lost(why);
}

void shard_driver::source_changed() {
    if (impl_->ended || impl_->ending || impl_->draining || impl_->work->stopped()) return;
    impl_->read_step(shard_reader::changed{});
    impl_->proceed();
}

void shard_driver::memory_turn() {
    impl_->proceed();
}

void shard_driver::possible_gap() {
    impl_->report_gap(
        "the record at the checkpoint arrived longer ago than the stream keeps records; some after it may be "
        "lost to this group"
    );
}

read_memory::member shard_driver::memory_member() const {
    return impl_->member;
}

const shard_id& shard_driver::shard() const {
    return impl_->grant.shard;
}

bool shard_driver::ended() const {
    return impl_->ended;
}

bool shard_driver::over() const {
    return impl_->ended && !impl_->calling;
}

shard_progress shard_driver::progress() const {
    auto all = impl_->so_far;
    all.failing = impl_->failing();
    if (impl_->waiting_since) all.blocked = impl_->now() - *impl_->waiting_since;
    if (const auto stream = impl_->around.leases.stream(); stream && stream->retention) {
        // What was not read is as old as the latest look, and what that look left.
        const auto unread = impl_->now() - impl_->looked_at + all.behind;
        const auto oldest = impl_->work->oldest_arrival();
        const auto age = oldest ? nanoseconds{stream->now - *oldest} : unread;
        all.retention_left = *stream->retention - age;
    }
    all.behind += std::chrono::floor<milliseconds>(all.failing);
    return all;
}

std::optional<error> shard_driver::trouble() const {
    return impl_->trouble();
}

const error* shard_driver::damage() const {
    const bool busy = impl_->calling || impl_->draining || impl_->ending || impl_->ended;
    return busy || impl_->work->in_window() > 0 || !impl_->damage ? nullptr : &*impl_->damage;
}

bool shard_driver::idle() const {
    if (impl_->calling || impl_->draining || impl_->ending || impl_->ended) return false;
    if (impl_->work->stopped()) return true;
    return impl_->awaiting || (impl_->reader.at_tip() && impl_->work->in_window() == 0);
}

}  // namespace millrace
