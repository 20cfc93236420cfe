#include "outbox_relay.hpp"

#include "start_checks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr nanoseconds look_every = std::chrono::seconds{1};
constexpr nanoseconds standby_look_every = std::chrono::seconds{10};
constexpr nanoseconds look_again_after = std::chrono::seconds{1};

// A silence that whoever watches readiness should know of; shorter ones are everyday.
constexpr nanoseconds unready_after = std::chrono::seconds{5};

}  // namespace

outbox_relay::outbox_relay(
    event_loop& loop, const relay_settings& settings, std::string address, std::function<void()> changed
)
    : loop_(loop),
      settings_(settings),
      address_(std::move(address)),
      changed_(std::move(changed)),
      log_(loop),
      progress_at_(loop.now()),
      started_(loop.now()),
      measured_at_(loop.now()) {}

result<std::unique_ptr<outbox_relay>> outbox_relay::open(
    event_loop& loop,
    const relay_settings& settings,
    const url& outbox,
    const url& sink,
    std::shared_ptr<schemas> coding,
    std::function<void()> changed
) {
    std::unique_ptr<outbox_relay> made(new outbox_relay(loop, settings, outbox.given, std::move(changed)));
    auto source = open_outbox(outbox, loop, settings.lease);
    if (!source) return tl::unexpected(std::move(source.error()));
    sink_options room;
    room.window_rows = settings.tuning.client_window_rows;
    room.window_bytes = settings.tuning.client_window_bytes;
    room.idle_partition = settings.idle_partition;
    if (!settings.outbox_id.empty()) room.outbox = settings.outbox_id;
    auto target = open_sink(sink, loop, room);
    if (!target) return tl::unexpected(std::move(target.error()));
    made->source_ = std::move(source->source);
    made->look_at_outbox_ = std::move(source->look);
    made->check_outbox_ = std::move(source->check);
    made->sink_ = std::move(target->sink);
    made->look_at_sink_ = std::move(target->look);
    if (coding) {
        made->sink_ = coding->around(std::move(made->sink_));
        made->coding_ = std::move(coding);
    }
    auto* const self = made.get();
    made->driver_ =
        std::make_unique<relay_driver>(loop, *made->source_, *made->sink_, settings.tuning, [self] {
            return self->leading_ && self->by_->may_act(self->seat_);
        });
    made->driver_->on_stopped([self](const error& why) { self->stopped(why); });
    return made;
}

void outbox_relay::attach(leadership& by, std::size_t seat) {
    by_ = &by;
    seat_ = seat;
}

void outbox_relay::lead(epoch mine) {
    epoch_ = mine;
    draining_ = suspended_ = false;
    progress_at_ = loop_.now();
    set_leading(true, leadership_change::kind::acquired, {});
    if (!ended_) driver_->start(mine);
}

void outbox_relay::give_back(std::function<void()> done) {
    draining_ = true;
    driver_->drain(alive_.guard([this, done = std::move(done)](const result<void>& drained) {
        if (!leading_ || !draining_) return;  // lost meanwhile
        if (!drained) {
            loop_.log().write(
                log_level::warning, "relay.drain", {{"outbox", address_}, {"why", drained.error().detail}}
            );
        }
        set_leading(false, leadership_change::kind::given_back, {});
        done();
    }));
}

void outbox_relay::lost(const error& why) {
    loop_.log().write(log_level::warning, "relay.lost", {{"outbox", address_}, {"why", why.detail}});
    set_leading(false, leadership_change::kind::lost, why.detail);
    driver_->halt();
}

/// The outbox refused this epoch, or the `stop` policy met a row that the sink
/// refuses; then the lease is kept, so that no other relay runs into that row.
void outbox_relay::stopped(const error& why) {
    if (why.code != errc::not_owner) {
        ended_ = why;
        return changed_();
    }
    if (!leading_) return;
    if (draining_) return driver_->halt();
    driver_->halt();
    log_.write(log_level::warning, "relay.refused", {{"outbox", address_}, {"why", why.detail}}, why.detail);
    set_leading(false, leadership_change::kind::lost, why.detail);
    by_->refused(seat_);
}

void outbox_relay::give_up(const error& why) {
    if (!ended_) ended_ = why;
    driver_->halt();
    set_leading(false, leadership_change::kind::lost, why.detail);
    changed_();
}

void outbox_relay::set_leading(bool leads, leadership_change::kind what, const std::string& why) {
    if (leading_ == leads) return;
    leading_ = leads;
    draining_ = suspended_ = seen_waiting_ = false;
    // Where nobody can look at the rows, what was seen of them still grows older.
    if (what != leadership_change::kind::lost && !settings_.once) seen_.reset();
    look_due_ = loop_.now();
    changed_();
    if (settings_.on_leadership) settings_.on_leadership({address_, what, epoch_, why});
}

void outbox_relay::retire() {
    retired_ = true;
    sink_->wind_down();
}

void outbox_relay::beat() {
    watch_deadline();
    watch_progress();
    if (settings_.once) watch_leader();
    if (!looking_ && !retired_ && loop_.now() >= look_due_) look_now();
    note_silence();
    measure();
}

/// A read may be large, so it takes long until one times out and tells why.
void outbox_relay::note_silence() {
    if (!leading_ || missing_ || !lasts(driver_->reach().outbox.silent_since)) return;
    note(fail(
        errc::unavailable,
        fmt::format("the outbox {} does not answer; see whether its server can be reached", address_),
        retry_advice::after_delay
    ));
}

/// A process that was paused, or has lost its way to the store, is told of the
/// end of its lease late or never: nothing may wait in a client for that.
void outbox_relay::watch_deadline() {
    if (!leading_ || ended_) return;
    const bool may_act = by_->may_act(seat_);
    if (!may_act && !suspended_) {
        suspended_ = true;
        loop_.log().write(
            log_level::warning,
            "relay.suspended",
            {{"outbox", address_},
             {"detail", "the deadline of the leadership has passed; nothing is sent until it is confirmed"}}
        );
        driver_->halt();
    } else if (may_act && suspended_ && !draining_) {
        suspended_ = false;
        loop_.log().write(log_level::info, "relay.resumed", {{"outbox", address_}});
        driver_->start(epoch_);
    }
}

void outbox_relay::watch_progress() {
    const auto counters = driver_->counters();
    const auto progress = counters.acknowledged + counters.deleted + counters.buried;
    const bool waits = leading_ ? !driver_->empty() : missing_.has_value();
    if (waits && progress == progress_) return;
    progress_ = progress;
    progress_at_ = loop_.now();
}

/// Who runs with `once` beside a live relay must see why it waits.
void outbox_relay::watch_leader() {
    behind_another_ = !leading_ && by_->behind_another(seat_);
    if (!behind_another_ || waiting_said_) return;
    by_->name_other(seat_, alive_.guard([this](const std::string& leader) {
        if (std::exchange(waiting_said_, true)) return;
        loop_.log().write(
            log_level::info,
            "relay.behind_another",
            {{"outbox", address_},
             {"leader", leader},
             {"detail", "this relay ends once the outbox is empty, and takes over if the other ends before"}}
        );
    }));
}

bool outbox_relay::done_by_another() const {
    return !leading_ && behind_another_ && waiting_said_ && seen_waiting_ && !missing_ && seen_->backlog == 0;
}

bool outbox_relay::damaged() const {
    const auto why = trouble();
    return why && why->code == errc::corrupt;
}

bool outbox_relay::stuck_for(nanoseconds span) const {
    return loop_.now() - progress_at_ >= span;
}

void outbox_relay::look(looks done) {
    struct both {
        std::optional<result<void>> outbox;
        std::optional<result<void>> sink;
    };
    looking_ = true;
    const auto found = std::make_shared<both>();
    const auto ended = [this, found, done = std::move(done)] {
        if (!found->outbox || !found->sink) return;
        looking_ = false;
        sink_missing_ = *found->outbox && !*found->sink;
        done(*found->outbox, *found->sink);
    };
    check_outbox_(alive_.guard([found, ended](const result<void>& outcome) {
        found->outbox = outcome;
        ended();
    }));
    look_at_sink_(alive_.guard([found, ended](const result<void>& outcome) {
        found->sink = outcome;
        ended();
    }));
}

/// While it leads, the sink's answers to what is sent tell more than a look; who does not answer is asked
/// why.
void outbox_relay::look_now() {
    if (leading_ && !sink_is_missed()) return look_at_rows({});
    if (leading_) see_rows([](const result<void>&) {});  // a sink that is not there is slow to say so
    // What was seen is kept where the lead was lost meanwhile: an absent sink is slow to say so.
    look([this, led = leading_](const result<void>& outbox, const result<void>& sink) {
        const bool of_another = !led && !leading_ && !settings_.once && by_->behind_another(seat_);
        if (outbox && of_another) seen_.reset();
        if (!outbox || of_another) return note(outbox ? sink : outbox);
        look_at_rows(sink);
    });
}

bool outbox_relay::sink_is_missed() const {
    return sink_missing_ || lasts(driver_->reach().sink.silent_since);
}

bool outbox_relay::lasts(const std::optional<mono_time>& since) const {
    return since && loop_.now() - *since >= unready_after;
}

void outbox_relay::look_at_rows(const result<void>& sink) {
    looking_ = true;
    see_rows([this, sink](const result<void>& seen) {
        looking_ = false;
        note(seen ? sink : seen);
    });
}

void outbox_relay::see_rows(completion<void> done) {
    look_at_outbox_(alive_.guard([this, done = std::move(done)](const result<outbox_look>& seen) {
        if (seen) {
            seen_ = *seen;
            seen_at_ = loop_.now();
        }
        seen_waiting_ = seen && !leading_;
        done(seen.map([](const outbox_look&) {}));
    }));
}

void outbox_relay::note(const result<void>& outcome) {
    const bool was_missing = missing_.has_value();
    looked_ = true;
    missing_ = outcome ? std::nullopt : std::optional{outcome.error()};
    const bool often = leading_ || settings_.once;
    look_due_ = loop_.now() + (missing_ ? look_again_after : often ? look_every : standby_look_every);
    if (missing_) {
        log_.write_change(
            log_level::warning,
            "relay.waits",
            {{"outbox", address_},
             {"code", std::string(name_of(missing_->code))},
             {"detail", missing_->detail}},
            missing_->detail
        );
    } else if (was_missing) {
        log_.ended("relay.waits");
        loop_.log().write(log_level::info, "relay.waits_no_more", {{"outbox", address_}});
    }
}

void outbox_relay::measure() {
    if (!settings_.on_throughput) return;
    const auto now = loop_.now();
    const auto total = driver_->counters().acknowledged;
    if (total == measured_ || now - measured_at_ < settings_.throughput_every) return;
    settings_.on_throughput({address_, total - measured_, now - measured_at_, total, now - started_});
    measured_ = total;
    measured_at_ = now;
}

seat_reach outbox_relay::reach() const {
    auto now = driver_->reach();
    if (!leading_) now = {.sink = {}, .outbox = {by_->raising_since(seat_), std::nullopt}};
    return now;
}

std::string outbox_relay::why_not_ready() const {
    if (ended_) return ended_->detail;
    if (missing_) return missing_->detail;
    if (!looked_) return "outbox or sink have not answered yet";
    // Until its deadline, who leads is held to what it gets done.
    const auto cut_off = by_->trouble(seat_);
    if (cut_off && !(leading_ && by_->may_act(seat_))) return cut_off->detail;
    if (suspended_) return "the deadline of its leadership has passed; it waits for the confirmation";
    if (!by_->joined()) return "it has not joined those yet that lead or would take over";
    if (!leading_) return {};
    if (driver_->counters().awaiting > 0) {
        if (const auto trouble = coding_->trouble()) return trouble->detail;
    }
    const auto seconds_from = [&](mono_time since) {
        return (loop_.now() - since) / std::chrono::seconds{1};
    };
    if (const auto silent = driver_->reach().sink.silent_since; lasts(silent)) {
        auto why = fmt::format("the sink has not answered for {} s", seconds_from(*silent));
        if (const auto cause = sink_->trouble()) why += ": " + cause->detail;
        return why;
    }
    const auto late = driver_->late();
    if (!late || !lasts(late->since)) return {};
    if (late->why) return late->why->detail;
    return fmt::format(
        "the outbox has not answered a {} for {} s; see who holds a lock on its table",
        late->what,
        seconds_from(late->since)
    );
}

std::optional<error> outbox_relay::trouble() const {
    if (ended_) return ended_;
    if (driver_->counters().awaiting > 0) {
        if (auto why = coding_->trouble()) return why;
    }
    if (auto why = driver_->last_error()) return why;
    if (auto why = by_->trouble(seat_)) return why;
    if (missing_ || !driver_->reach().sink.silent_since) return missing_;
    return sink_->trouble();
}

/// What waits grows older also where nobody can look at it; that nothing waits holds for a moment only.
std::optional<outbox_look> outbox_relay::rows_seen() const {
    auto rows = seen_;
    const auto since = loop_.now() - seen_at_;
    if (!rows || since < 2 * look_every) return rows;
    if (rows->oldest_age) {
        *rows->oldest_age += since;
    } else if (since >= unready_after + (leading_ ? look_every : standby_look_every)) {
        rows.reset();
    }
    return rows;
}

relay_status outbox_relay::status() const {
    const auto counters = driver_->counters();
    relay_status now;
    now.address = address_;
    now.leading = leading_;
    now.epoch = epoch_;
    now.published = counters.published;
    now.acknowledged = counters.acknowledged;
    now.deleted = counters.deleted;
    now.retried = counters.retried;
    now.buried = counters.buried;
    now.first_buried = driver_->first_buried();
    now.in_flight = counters.in_flight;
    now.gaps = counters.gaps;
    // Whoever leads tells of the rows; of an outbox that nobody reaches, whoever has led last.
    const bool cut_off = missing_ || by_->trouble(seat_);
    if (leading_ || settings_.once || cut_off || !by_->behind_another(seat_)) now.outbox = rows_seen();
    now.duplicates_at_risk = counters.duplicates_at_risk;
    now.bytes_in_memory = counters.bytes_in_memory;
    now.awaiting = counters.awaiting;
    if (coding_) now.schemas = coding_->status();
    now.not_ready = why_not_ready();
    now.ready = now.not_ready.empty();
    now.last_error = trouble();
    return now;
}

}  // namespace millrace
