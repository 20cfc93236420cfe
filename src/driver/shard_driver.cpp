#include "shard_driver.hpp"

#include "alarm.hpp"
#include "assert.hpp"
#include "handler_call.hpp"
#include "retry/backoff.hpp"
#include "shard/delivery.hpp"
#include "shard/reader.hpp"
#include "shard_inbox.hpp"

#include <algorithm>
#include <optional>
#include <stop_token>
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

}  // namespace

struct shard_driver::impl {
    impl(const shard_surroundings& surroundings, lease_grant granted, wall_time pin)
        : around(surroundings),
          grant(std::move(granted)),
          still_owner([guard = grant.guard] { return guard->may_act(); }),
          member(around.memory.join()),
          reader(around.options, first_position(grant), pin),
          lease_pause(around.options.backoff_min, around.options.backoff_max),
          inbox(std::make_shared<shard_inbox>(around.loop, [this] { on_reports(); })),
          read_alarm(around.loop),
          work_alarm(around.loop),
          lease_alarm(around.loop) {
        MILLRACE_ASSERT(grant.guard != nullptr);
        work.emplace(around.options, grant.shard);
    }

    ~impl() {
        stop.request_stop();
        inbox->close();
        around.memory.leave(member);
    }

    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;

    [[nodiscard]] mono_time now() const { return around.loop.now(); }
    [[nodiscard]] const std::string& name() const { return grant.shard.value(); }

    void say(log_level level, std::string_view event, std::string detail) const {
        auto& log = around.loop.log();
        if (!log.enabled(level)) return;
        log.write(
            level,
            event,
            {{"shard", name()}, {"epoch", std::to_string(grant.epoch.value())}, {"detail", std::move(detail)}}
        );
    }

    void read_step(const shard_reader::event& what);
    void on_open(result<read_cursor> how);
    void on_read(mono_time sent, read_memory::reservation& room, result<read_reply> how);
    void report(shard_reader::notice what, const error& why);
    void report_gap(const std::string& detail);
    void pump_read();

    void on_reports();
    void take(shard_inbox::report& what);
    void on_returned(const result<handled>& how);
    void pump_work();
    void call_handler(shard_delivery::hand what);
    void bury(shard_delivery::bury what);
    void on_stopped();

    void proceed();
    void revoke();
    void end_lease(bool finished);
    void on_lease_ended(bool finished, const result<void>& how);
    void lost(const error& why);
    void end_now();
    void count();

    shard_surroundings around;
    lease_grant grant;
    std::function<bool()> still_owner;
    read_memory::member member;
    shard_reader reader;
    std::optional<shard_delivery> work;
    backoff lease_pause;
    std::shared_ptr<shard_inbox> inbox;
    alarm read_alarm;
    alarm work_alarm;
    alarm lease_alarm;
    std::stop_source stop;
    lifetime alive;

    std::optional<read_cursor> to_read;  // a read that waits for room
    milliseconds behind{0};              // of the latest read
    bool calling{false};
    bool held_back{false};
    bool draining{false};
    bool ending{false};  // finish or release is under way
    bool ended{false};
    bool stop_said{false};
    bool gap_said{false};
    shard_delivery::counters counted;
};

// Reading.

void shard_driver::impl::read_step(const shard_reader::event& what) {
    const auto out = reader.step(now(), around.loop.random(), what);
    if (out.say != shard_reader::notice::none) report(out.say, std::get<shard_reader::failed>(what).why);
    if (const auto* wait = std::get_if<shard_reader::wait>(&out.next)) {
        read_alarm.set(wait->until, [this] {
            read_step(shard_reader::woken{});
            proceed();
        });
    } else if (const auto* read = std::get_if<shard_reader::read>(&out.next)) {
        to_read = read->cursor;
    } else if (std::holds_alternative<shard_reader::end>(out.next)) {
        work->end_read();
        around.leases.discover_soon();
    } else if (const auto* open = std::get_if<shard_reader::open>(&out.next); open != nullptr && !draining) {
        around.source.open(grant.shard, open->start, alive.guard([this](result<read_cursor> how) {
            on_open(std::move(how));
        }));
    }
}

void shard_driver::impl::on_open(result<read_cursor> how) {
    if (how) {
        read_step(shard_reader::opened{std::move(*how)});
    } else {
        if (how.error().code == errc::throttled) ++around.counters.reads_throttled;
        read_step(shard_reader::failed{std::move(how.error())});
    }
    proceed();
}

void shard_driver::impl::pump_read() {
    const auto& options = around.options;
    if (!to_read || draining || work->stopped()) return;
    // One read ahead of the handler, so that neither waits for the other.
    if (work->unhanded() >= std::max(options.batch_records, options.read_records / 2)) return;
    if (work->in_window() >= options.shard_unacknowledged) return;
    auto room = around.memory.reserve(member, options.read_bytes);
    if (!room) return;
    const auto records =
        std::min<std::uint64_t>(options.read_records, options.shard_unacknowledged - work->in_window());
    const read_limits limits{static_cast<std::size_t>(records), room->bytes()};
    auto cursor = *std::exchange(to_read, std::nullopt);
    ++around.counters.reads;
    around.source.read(
        grant.shard,
        std::move(cursor),
        limits,
        alive.guard([this, sent = now(), room = std::move(room)](result<read_reply> how) {
            on_read(sent, *room, std::move(how));
        })
    );
}

void shard_driver::impl::on_read(mono_time sent, read_memory::reservation& room, result<read_reply> how) {
    if (!how) {
        if (how.error().code == errc::throttled) ++around.counters.reads_throttled;
        read_step(shard_reader::failed{std::move(how.error())});
        return proceed();
    }
    const auto records = how->records->records();
    behind = how->behind;
    shard_reader::records got{std::move(how->next), std::nullopt, how->behind, sent};
    if (!records.empty()) {
        got.last = records.back().position;
        around.counters.records_read += records.size();
        around.counters.bytes_read += how->records->bytes();
        work->push(room.count(std::move(how->records)));
    }
    read_step(got);
    proceed();
}

void shard_driver::impl::report_gap(const std::string& detail) {
    if (std::exchange(gap_said, true)) return;
    ++around.counters.gaps_reported;
    say(log_level::warning, "shard.gap", detail);
}

void shard_driver::impl::report(shard_reader::notice what, const error& why) {
    switch (what) {
        case shard_reader::notice::none:
            break;
        case shard_reader::notice::gap:
            report_gap(
                "the stream no longer holds the record after the last position (" + why.detail +
                "); reading goes on at the oldest record, and those between are lost to this group"
            );
            break;
        case shard_reader::notice::shard_gone:
            say(log_level::warning,
                "shard.gone",
                "the stream no longer has the shard (" + why.detail + "); what was not read of it is lost");
            break;
        case shard_reader::notice::failing:
            say(log_level::error,
                "shard.read_failing",
                fmt::format(
                    "{}: {}; attempt {} in a row, tried again with back-off",
                    name_of(why.code),
                    why.detail,
                    reader.failures()
                ));
            break;
    }
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
        say(log_level::warning, "shard.record_failed", one->why.detail);
        work->fail(now(), around.loop.random(), one->which, one->why);
    } else if (const auto* call = std::get_if<shard_inbox::returned>(&what)) {
        on_returned(call->how);
    } else {
        work->not_called();
    }
}

void shard_driver::impl::on_returned(const result<handled>& how) {
    if (!how) say(log_level::warning, "shard.handler_failed", how.error().detail);
    work->returned(now(), around.loop.random(), how);
}

void shard_driver::impl::pump_work() {
    if (held_back || calling || !work->pending()) return;
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
    around.dead_letters->put(
        std::move(what.batch), what.at, std::move(what.why), alive.guard([this](const result<void>& how) {
            if (!how) say(log_level::error, "shard.dead_letter_failed", how.error().detail);
            work->buried(now(), around.loop.random(), how);
            proceed();
        })
    );
}

void shard_driver::impl::on_stopped() {
    if (std::exchange(stop_said, true)) return;
    ++around.counters.shards_stopped;
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
    if (const auto moved = work->take_progress()) {
        const auto kept = around.leases.advance(grant.shard, grant.epoch, moved->reached, moved->records);
        if (!kept) say(log_level::warning, "shard.advance_refused", kept.error().detail);
        if (ended) return;  // the group may have found out just now
    }
    count();
    if (work->stopped()) on_stopped();
    if (work->finished()) return end_lease(true);
    if (draining && work->settled()) return end_lease(false);
    pump_work();
    pump_read();
}

void shard_driver::impl::revoke() {
    if (ended || ending || std::exchange(draining, true)) return;
    around.handler.revoked(grant.shard);
    stop.request_stop();
    work->drain();
    to_read.reset();
    read_alarm.cancel();
    work_alarm.cancel();
    lease_alarm.set(now() + around.options.drain_limit, [this] {
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
        if (finished) around.handler.finished(grant.shard);
        return end_now();
    }
    const auto& why = how.error();
    if (why.code == errc::already_finished || why.code == errc::already_released) return end_now();
    if (why.code == errc::not_owner || why.code == errc::conflict) return lost(why);
    say(log_level::warning, finished ? "shard.finish_failed" : "shard.release_failed", why.detail);
    lease_alarm.set(now() + lease_pause.next(around.loop.random()), [this, finished] {
        end_lease(finished);
    });
}

void shard_driver::impl::lost(const error& why) {
    if (ended) return;
    say(log_level::info, "shard.lost", why.detail);
    around.handler.lost(grant.shard);
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
    counted = is;
}

shard_driver::shard_driver(const shard_surroundings& around, lease_grant grant, wall_time pin)
    : impl_(std::make_unique<impl>(around, std::move(grant), pin)) {}

shard_driver::~shard_driver() = default;

void shard_driver::start(bool held_back) {
    impl_->held_back = held_back;
    impl_->around.handler.assigned({impl_->grant.shard, impl_->grant.epoch, [&] {
                                        const auto& at = impl_->grant.checkpoint;
                                        return at ? std::optional(at->position) : std::nullopt;
                                    }()});
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

milliseconds shard_driver::behind() const {
    return impl_->ended ? milliseconds{0} : impl_->behind;
}

bool shard_driver::idle() const {
    if (impl_->calling || impl_->draining || impl_->ending || impl_->ended) return false;
    if (impl_->work->stopped()) return true;
    return impl_->reader.at_tip() && impl_->work->in_window() == 0;
}

}  // namespace millrace
