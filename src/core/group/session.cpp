#include "group/session.hpp"

#include "assert.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

// More writes than this are never in doubt at once unless the store answers nothing for several leases; a
// forgotten one then only costs a heartbeat more.
constexpr std::size_t unproved_max = 8;

// One heartbeat of a process that is already gone can land late; a second one proves that it lives.
constexpr int moves_of_the_living = 2;

// Of two newcomers that see each other, each would stop for the other. The one with the lower incarnation
// waits for more moves: by then the other has stopped, unless it takes no notice.
constexpr int moves_of_an_elder = 6;

// Parts of a heartbeat between two attempts.
constexpr int retry_pause = 4;
constexpr int doubt_pause = 10;
constexpr int list_pause = 2;

std::string name_of_process(const process_identity& process) {
    return fmt::format("process {} on host \"{}\"", process.pid, process.host);
}

}  // namespace

result<void> session_options::validate() const {
    const auto full = resolved();
    if (worker.value().empty()) return fail(errc::invalid_argument, "the worker id is empty; give it a name");
    if (lease < std::chrono::milliseconds{100} || lease > std::chrono::hours{1}) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "a lease of {} ms is out of range; choose from 100 ms to 1 h", lease.count() / 1'000'000
            )
        );
    }
    if (full.margin < nanoseconds{0} || full.heartbeat <= nanoseconds{0} ||
        full.margin + full.heartbeat >= lease) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "margin ({} ms) and heartbeat ({} ms) leave nothing of the lease ({} ms); choose smaller "
                "ones",
                full.margin.count() / 1'000'000,
                full.heartbeat.count() / 1'000'000,
                lease.count() / 1'000'000
            )
        );
    }
    return {};
}

session_options session_options::resolved() const {
    auto full = *this;
    if (full.margin == nanoseconds{0}) full.margin = lease / 5;
    if (full.heartbeat == nanoseconds{0}) full.heartbeat = lease / 5;
    return full;
}

session_machine::session_machine(
    session_options options,
    process_identity self,
    lapse_observer::process_gone gone,
    std::function<std::uint64_t()> random
)
    : options_(options.resolved()),
      self_(std::move(self)),
      on_this_machine_(self_, std::move(gone)),
      random_(std::move(random)) {}

std::vector<session_machine::action> session_machine::step(mono_time now, const event& what) {
    std::visit([&](const auto& happened) { on(now, happened); }, what);
    check_limits(now);
    request_next(now);
    return std::exchange(actions_, {});
}

void session_machine::loop_turned(mono_time when) {
    loop_turned_ = std::max(loop_turned_, when);
}

bool session_machine::waits_for_loop(mono_time now) const {
    return phase_ == phase::over && now - loop_turned_ > options_.lease;
}

std::optional<mono_time> session_machine::wake(mono_time now) const {
    const bool idle = outstanding_ == request::none;
    switch (phase_) {
        case phase::idle:
        case phase::stopped:
            return std::nullopt;
        case phase::live: {
            auto next = *deadline_;
            if (!idle) return next;
            const auto heartbeat = changes_unsent_ ? now : next_heartbeat_;
            next = std::min(next, std::max(retry_at_, must_read_ ? now : heartbeat));
            const bool watching = !namesakes_ || !namesakes_->empty();
            return watching ? std::min(next, std::max(next_list_, retry_at_)) : next;
        }
        case phase::over:
            if (!idle) return std::nullopt;
            if (waits_for_loop(now)) return now + options_.heartbeat;
            return row_may_exist_ ? std::max(retry_at_, clear_at_) : retry_at_;
        case phase::looking:
            return idle ? std::optional{next_list_} : std::nullopt;
        case phase::registering:
        case phase::stopping:
            break;
    }
    return idle ? std::optional{retry_at_} : std::nullopt;
}

// Sends what is due, if nothing is outstanding.
void session_machine::request_next(mono_time now) {
    if (outstanding_ != request::none || phase_ == phase::idle || phase_ == phase::stopped) return;
    if (now < retry_at_) return;
    if (phase_ == phase::over) {
        if (waits_for_loop(now)) return;
        if (!row_may_exist_) register_anew(now);
    }
    if (phase_ == phase::over || phase_ == phase::stopping) return clear_own_row(now);
    const bool looking = phase_ == phase::looking;
    if (must_read_) {
        outstanding_ = request::read;
        actions_.emplace_back(read{session_});
    } else if (phase_ == phase::registering || (!looking && (changes_unsent_ || now >= next_heartbeat_))) {
        send_heartbeat(now);
    } else if ((looking || !namesakes_ || !namesakes_->empty()) && now >= next_list_) {
        outstanding_ = request::list;
        actions_.emplace_back(list{});
    }
}

// What has the id already is seen before there is a row: others would make room for it, and it would take
// shards that it has to give up again.
void session_machine::register_anew(mono_time now) {
    phase_ = phase::looking;
    wait_told_ = false;
    session_ = incarnation{fmt::format("{:016x}{:016x}", random_(), random_())};
    known_.reset();
    creations_ = 0;
    unproved_.clear();
    must_read_ = false;
    ever_confirmed_ = false;
    namesakes_.reset();
    retry_at_ = now;
    next_list_ = now;
}

void session_machine::send_heartbeat(mono_time now) {
    // Each attempt to create the row has a counter of its own: whoever saw an earlier one, ended it and
    // missed that must not take the next one for the same, silent session.
    const auto counter = known_ ? version{known_->value() + 1} : version{++creations_};
    worker_row row{
        options_.worker, session_, counter, write_id{random_()}, options_.lease, changes_, self_, {}};
    if (unproved_.size() == unproved_max) unproved_.erase(unproved_.begin());
    unproved_.push_back({row.write_id, now});
    changes_unsent_ = false;
    row_may_exist_ = true;
    next_heartbeat_ = now + options_.heartbeat;
    outstanding_ = request::write;
    actions_.emplace_back(write{std::move(row), known_});
}

// Removes the row of a session that is over, once whatever was begun under it has had its margin.
void session_machine::clear_own_row(mono_time now) {
    if (phase_ == phase::stopping && now >= give_up_at_) {
        return finish_stop(fail(
            errc::unavailable,
            fmt::format(
                "worker \"{}\" could not be deregistered within its lease; its session lapses by itself",
                options_.worker.value()
            )
        ));
    }
    if (phase_ == phase::over && now < clear_at_) return;
    if (must_read_ || !known_) {
        outstanding_ = request::read;
        actions_.emplace_back(read{session_});
    } else {
        outstanding_ = request::remove;
        actions_.emplace_back(remove{session_, *known_});
    }
}

// What a reply proves about a write counts from the moment when that write was sent.
void session_machine::confirm(mono_time now, version counter, mono_time sent) {
    known_ = counter;
    must_read_ = false;
    unproved_.clear();
    retry_at_ = now;
    ever_confirmed_ = true;
    trouble_.clear();
    if (phase_ != phase::live && phase_ != phase::registering) return;
    const auto until = sent + options_.lease - options_.margin;
    if (phase_ == phase::live) {
        deadline_ = std::max(*deadline_, until);
    } else if (until > now) {
        phase_ = phase::live;
        deadline_ = until;
        actions_.emplace_back(started{session_});
    }
}

// Our row as it was read while a write was in doubt. Only a write id of ours proves a write.
void session_machine::adopt(mono_time now, const worker_row& row) {
    if (phase_ == phase::live && known_ && row.counter < *known_) {
        // Counters only grow: our row was ended, and an attempt to create it landed after that.
        known_ = row.counter;
        return lose(
            now,
            fmt::format(
                "the session of worker \"{}\" was ended by another worker; it registers anew",
                options_.worker.value()
            ),
            false
        );
    }
    const auto proved = std::find_if(unproved_.begin(), unproved_.end(), [&](const unproved& u) {
        return u.id == row.write_id;
    });
    if (proved != unproved_.end()) return confirm(now, row.counter, proved->sent);
    known_ = row.counter;
    must_read_ = false;
    next_heartbeat_ = now;
    const bool live = phase_ == phase::live || phase_ == phase::registering;
    retry_at_ = live ? now + options_.heartbeat / doubt_pause : now;
}

void session_machine::lose(mono_time now, std::string why, bool row_is_gone) {
    clear_at_ = std::min(now, *deadline_) + options_.margin;
    deadline_.reset();
    phase_ = phase::over;
    row_may_exist_ = !row_is_gone;
    must_read_ = true;
    retry_at_ = now;
    actions_.emplace_back(lost{session_, {errc::not_owner, retry_advice::never, false, std::move(why)}});
}

void session_machine::row_gone(mono_time now) {
    row_may_exist_ = false;
    if (phase_ == phase::over) {
        retry_at_ = now;
    } else if (!ever_confirmed_ && !unproved_.empty()) {
        finish_stop(fail(
            errc::unavailable,
            "the registration was never confirmed and may still appear; such a session lapses by itself",
            retry_advice::never,
            true
        ));
    } else {
        finish_stop({});
    }
}

void session_machine::stop_now(mono_time now) {
    deadline_.reset();
    phase_ = phase::stopping;
    give_up_at_ = now + options_.lease;
    retry_at_ = now;
    if (!row_may_exist_ && outstanding_ == request::none) finish_stop({});
}

void session_machine::finish_stop(result<void> outcome) {
    phase_ = phase::stopped;
    if (!std::exchange(stop_reported_, true)) actions_.emplace_back(stopped{std::move(outcome)});
}

// A request on our row failed: when it may have happened anyway, or was refused, the row decides.
void session_machine::judge(mono_time now, const error& why) {
    trouble_ = why.detail;
    // Where the table is gone, so is the row.
    if (phase_ == phase::stopping && why.code == errc::not_found && !why.in_doubt) return finish_stop({});
    if (why.in_doubt || why.code == errc::conflict) {
        must_read_ = true;
        retry_at_ = now;
    } else {
        if (phase_ == phase::live) next_heartbeat_ = now;
        retry_at_ = now + options_.heartbeat / retry_pause;
    }
}

void session_machine::check_limits(mono_time now) {
    if (phase_ != phase::live) return;
    if (now >= *deadline_) {
        lose(
            now,
            fmt::format(
                "no heartbeat of worker \"{}\" was confirmed in time ({}); its shards are given up and it "
                "registers anew",
                options_.worker.value(),
                trouble_.empty() ? "the store of the leases has not answered" : trouble_
            ),
            false
        );
    } else if (now - loop_turned_ > options_.lease) {
        lose(
            now,
            fmt::format(
                "the event loop of worker \"{}\" has not turned for a lease time; its shards are given up "
                "until it does",
                options_.worker.value()
            ),
            false
        );
    }
}

void session_machine::watch_namesakes(mono_time now, const std::vector<worker_row>& rows) {
    std::map<incarnation, namesake> still;
    for (const auto& row : rows) {
        if (row.worker != options_.worker || row.incarnation == session_ || !row.unreadable.empty()) continue;
        if (!namesakes_) {
            still[row.incarnation] = {row.counter};
        } else if (const auto known = namesakes_->find(row.incarnation); known != namesakes_->end()) {
            auto seen = known->second;
            if (row.counter != seen.counter) ++seen.moves;
            seen.counter = row.counter;
            still[row.incarnation] = seen;
            const bool waits_for_us = phase_ != phase::looking && session_ < row.incarnation;
            const auto enough = waits_for_us ? moves_of_an_elder : moves_of_the_living;
            if (seen.moves >= enough) {
                auto why = fmt::format(
                    "worker id \"{}\" is in use by {}, so {} stops; give one of them another id",
                    options_.worker.value(),
                    name_of_process(row.process),
                    name_of_process(self_)
                );
                actions_.emplace_back(lost{
                    session_, {errc::worker_id_taken, retry_advice::never, false, std::move(why)}});
                stop_reported_ = true;
                return stop_now(now);
            }
        }
    }
    namesakes_ = std::move(still);
}

void session_machine::register_if_free(mono_time now, const std::vector<worker_row>& rows) {
    const auto elder = std::find_if(rows.begin(), rows.end(), [this](const worker_row& row) {
        return row.worker == options_.worker && row.unreadable.empty() && !on_this_machine_.gone_here(row);
    });
    if (elder != rows.end()) {
        if (!std::exchange(wait_told_, true)) actions_.emplace_back(waits{*elder});
        return;
    }
    phase_ = phase::registering;
    namesakes_.reset();  // one that registers at this moment is seen by the listings to come
    next_list_ = now;
}

void session_machine::on(mono_time now, const begin&) {
    MILLRACE_ASSERT(phase_ == phase::idle);
    loop_turned_ = std::max(loop_turned_, now);
    register_anew(now);
}

void session_machine::on(mono_time now, const end&) {
    if (phase_ == phase::idle) return finish_stop({});
    stop_reported_ = false;
    if (phase_ == phase::stopped) return finish_stop({});
    if (phase_ != phase::stopping) stop_now(now);
}

void session_machine::on(mono_time /*now*/, const rows_changed&) {
    ++changes_;
    changes_unsent_ = true;
}

void session_machine::on(mono_time /*now*/, const timer&) const {}

void session_machine::on(mono_time now, const write_done& reply) {
    MILLRACE_ASSERT(outstanding_ == request::write);
    outstanding_ = request::none;
    if (!reply.outcome) return judge(now, reply.outcome.error());
    confirm(now, known_ ? version{known_->value() + 1} : version{creations_}, unproved_.back().sent);
}

void session_machine::on(mono_time now, const read_done& reply) {
    MILLRACE_ASSERT(outstanding_ == request::read);
    outstanding_ = request::none;
    if (!reply.outcome) {
        // A row of ours that cannot be read is left behind: the next session has one of its own.
        if (reply.outcome.error().code == errc::corrupt && phase_ != phase::live) {
            if (phase_ == phase::registering) return register_anew(now);
            return row_gone(now);
        }
        trouble_ = reply.outcome.error().detail;
        must_read_ = true;
        retry_at_ = now + options_.heartbeat / retry_pause;
        return;
    }
    const auto& row = *reply.outcome;
    if (row) return adopt(now, *row);
    switch (phase_) {
        case phase::registering:
            // Nothing of ours there yet; should an earlier attempt land now, the next one is refused and we
            // read again. Once it was seen, its absence means that somebody ended it.
            must_read_ = false;
            retry_at_ = now + options_.heartbeat / doubt_pause;
            if (known_) register_anew(now);
            break;
        case phase::live:
            lose(
                now,
                fmt::format(
                    "the row of worker \"{}\" is gone: another worker ended its session, or the state was "
                    "emptied; it registers anew",
                    options_.worker.value()
                ),
                true
            );
            break;
        default:
            row_gone(now);
    }
}

void session_machine::on(mono_time now, const list_done& reply) {
    MILLRACE_ASSERT(outstanding_ == request::list);
    outstanding_ = request::none;
    if (phase_ == phase::stopping && !row_may_exist_) return finish_stop({});
    if (phase_ != phase::live && phase_ != phase::looking) return;
    next_list_ = now + options_.heartbeat / list_pause;
    if (!reply.outcome) return;
    watch_namesakes(now, *reply.outcome);
    if (phase_ == phase::looking) register_if_free(now, *reply.outcome);
}

void session_machine::on(mono_time now, const remove_done& reply) {
    MILLRACE_ASSERT(outstanding_ == request::remove);
    outstanding_ = request::none;
    if (reply.outcome) return row_gone(now);
    judge(now, reply.outcome.error());
}

}  // namespace millrace
