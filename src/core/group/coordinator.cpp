#include "group/coordinator.hpp"

#include "assert.hpp"
#include "group/group_start.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr auto retry_pause = std::chrono::milliseconds{500};

// A shorter tick would only load the store.
constexpr auto tick_min = std::chrono::milliseconds{10};

}  // namespace

coordinator::coordinator(
    group_options options,
    process_identity self,
    lapse_observer::process_gone gone,
    std::function<std::uint64_t()> random
)
    : options_(options),
      random_(std::move(random)),
      lapse_(std::move(self), std::move(gone)),
      budget_(options.checkpoints_per_second) {
    options_.tick = std::clamp<nanoseconds>(options_.tick, tick_min, std::chrono::milliseconds{500});
}

std::vector<group_action> coordinator::step(mono_time now, mono_time deadline, const group_event& what) {
    now_ = now;
    deadline_ = options_.all_shards ? mono_time::max() : deadline;
    ++steps_;
    urgent_ = false;
    std::visit([&](const auto& happened) { on(happened); }, what);
    if (begun_ && !stopped_) release_asked();
    if (begun_ && !failed_ && !stopped_) {
        settle_group_row();
        if (replan_) plan();
        create_planned();
        take_planned();
        write_due_checkpoints();
        drain();
        read_starts();
        request_listings();
    } else if (failed_ && !stopped_) {
        drain();
    }
    if (changed_ && plan_.taking == 0 && plan_.creating.empty()) {
        changed_ = false;
        actions_.emplace_back(rows_were_changed{});
    }
    return std::exchange(actions_, {});
}

mono_time coordinator::wake() const {
    auto next = mono_time::max();
    if (!begun_ || stopped_) return next;
    const auto at = [&](mono_time when) { next = std::min(next, when); };
    if (!failed_) {
        if (urgent_) at(now_);
        if (!worker_list_.begun) at(worker_list_.due);
        if (!dirty_.empty()) at(now_ + options_.checkpoint_every / 8);
    }
    for (const auto& [shard, when] : lease_wakes_)
        at(when);
    if (drain_until_) at(now_ < *drain_until_ ? *drain_until_ : *give_up_at_);
    return std::max(next, now_);
}

void coordinator::on(const group_begin&) {
    MILLRACE_ASSERT(!begun_);
    begun_ = true;
    worker_list_.due = now_;
    worker_list_.wanted = row_list_.wanted = stream_list_.wanted = true;
}

void coordinator::on(const group_tick&) {
    std::vector<shard_id> due;
    for (const auto& [shard, when] : lease_wakes_) {
        if (when <= now_) due.push_back(shard);
    }
    for (const auto& shard : due)
        step_lease(shard, lease_machine::timer{});
    if (now_ < worker_list_.due) return;
    worker_list_.wanted = true;
    if (now_ >= row_list_.due) row_list_.wanted = true;
    if (now_ >= stream_list_.due) stream_list_.wanted = true;
    replan_ = replan_ || !plan_.to_take.empty() || !plan_.to_create.empty();
}

void coordinator::on(const session_came& what) {
    mine_ = what.mine;
    elders_.reset();
    worker_list_.wanted = row_list_.wanted = true;
    worker_list_.due = now_;
    // The old session may be over because the whole store was made anew.
    if (group_state_ == group_state::known) group_state_ = group_state::unknown;
}

void coordinator::on(const session_went& what) {
    if (what.mine == mine_) {
        mine_ = incarnation{};
        membership_.index.reset();
        plan_.to_take.clear();
        session_is_over_ = true;
        for (const auto& shard : active_leases())
            step_lease(shard, lease_machine::session_over{what.why});
        session_is_over_ = false;
    }
    if (what.why.code == errc::worker_id_taken) fail_for_good(what.why);
}

void coordinator::on(const discover_request&) {
    stream_list_.wanted = true;
    discovery_ = steps_;
}

// One listing of a kind at a time; what is wanted meanwhile is asked for when its reply is in.
void coordinator::request_listings() {
    if (worker_list_.wanted && !worker_list_.begun) {
        worker_list_.wanted = false;
        worker_list_.begun = steps_;
        worker_list_.sent = now_;
        actions_.emplace_back(list_workers{});
    }
    if (row_list_.wanted && !row_list_.begun && recreated_.now == recreation::none) {
        row_list_.wanted = false;
        row_list_.begun = steps_;
        row_list_.due = now_ + options_.shard_list_every;
        actions_.emplace_back(list_rows{});
    }
    if (stream_list_.wanted && !stream_list_.begun) {
        stream_list_.wanted = false;
        stream_list_.begun = steps_;
        stream_list_.sent = now_;
        stream_list_.due = now_ + options_.discover_every;
        actions_.emplace_back(list_stream{});
    }
}

void coordinator::on(const workers_listed& reply) {
    const auto begun = std::exchange(worker_list_.begun, std::nullopt).value_or(0);
    worker_list_.due = now_ + options_.tick;
    if (!reply.outcome) {
        trouble_.workers = reply.outcome.error();
        return tell_failure("workers.list_failed", "error", {}, *trouble_.workers);
    }
    trouble_.workers.reset();
    const auto over = lapse_.observe(worker_list_.sent, now_, *reply.outcome);
    worker_listing listing{begun, {}};
    const auto rows = note_unreadable(*reply.outcome, listing);
    end_lapsed(over);
    std::map<incarnation, std::uint64_t> changes;
    for (const auto& row : rows) {
        listing.sessions.insert(row.incarnation);
        changes.emplace(row.incarnation, row.changes);
        const auto before = changes_.find(row.incarnation);
        const bool moved = before == changes_.end() || before->second != row.changes;
        if (moved && row.incarnation != mine_) row_list_.wanted = true;
    }
    changes_ = std::move(changes);
    workers_ = std::move(listing);
    auto members = membership_of(rows, over, mine_);
    if (members != membership_) {
        membership_ = std::move(members);
        row_list_.wanted = replan_ = true;
        if (membership_.index) {
            actions_.emplace_back(members_changed{*membership_.index, membership_.members.size()});
        }
    }
    watch_elders(rows);
    if (plan_.orphans) replan_ = true;
    if (group_ && stream_ && !is_of_stream(*group_)) notice_recreated();
    const bool alone = rows.empty() && workers_.sessions.empty();
    if (options_.all_shards && !failed_ && !drain_until_) admit_all_shards(rows, alone);
}

void coordinator::end_lapsed(const std::vector<worker_row>& over) {
    for (const auto& row : over) {
        if (row.incarnation == mine_ || row.counter == version{}) continue;
        if (!ending_.insert(row.incarnation).second) continue;
        actions_.emplace_back(group_note{
            log_level::warning,
            "session.lapsed",
            "worker",
            row.worker.value(),
            fmt::format(
                "{}; its session is ended and its shards go to others",
                lapse_.gone_here(row)
                    ? fmt::format("its process {} on this machine is gone", row.process.pid)
                    : fmt::format(
                          "process {} on host \"{}\" has not renewed it for a lease time ({} ms)",
                          row.process.pid,
                          row.process.host,
                          std::chrono::floor<milliseconds>(row.lease).count()
                      )
            ),
            true});  // as often as the store refuses to end it
        actions_.emplace_back(end_session{row.incarnation, row.counter});
    }
}

// All-shards mode begins when no session is left; one whose counter moves is alive. One that comes later
// knows nothing of this process, so it is this process that gives way.
void coordinator::admit_all_shards(const std::vector<worker_row>& listed, bool alone) {
    for (const auto& row : listed) {
        if (lapse_.lapsed(row.incarnation)) continue;
        const auto [first, is_new] = first_counters_.emplace(row.incarnation, row.counter);
        const bool alive = admitted_ || (!is_new && first->second != row.counter);
        if (alive) return yield_to(row);
    }
    if (!alone || admitted_) return;
    admitted_ = replan_ = true;
    actions_.emplace_back(members_changed{0, 1});
}

// Sessions under our worker id that were there when ours was first seen. Each of them ends, or it moves and
// the session of this worker is given up; one that comes later gives way to us.
void coordinator::watch_elders(const std::vector<worker_row>& listed) {
    const auto own = std::find_if(listed.begin(), listed.end(), [&](const worker_row& row) {
        return row.incarnation == mine_;
    });
    if (own == listed.end()) return;
    std::set<incarnation> namesakes;
    for (const auto& row : listed) {
        if (row.worker == own->worker && row.incarnation != mine_) namesakes.insert(row.incarnation);
    }
    if (elders_) {
        std::erase_if(*elders_, [&](const incarnation& elder) { return !namesakes.contains(elder); });
    } else {
        elders_ = std::move(namesakes);
    }
}

bool coordinator::settled() const {
    const bool ungranted = !starts_.wanted.empty() || !starts_.asked.empty();
    if (failed_ || ungranted) return false;
    return options_.all_shards ? admitted_ : membership_.index && elders_ && elders_->empty();
}

// What was acknowledged is still written; where the other has taken the shard meanwhile, that is refused.
void coordinator::yield_to(const worker_row& other) {
    failed_ = true;
    error why{
        errc::conflict,
        retry_advice::never,
        false,
        fmt::format(
            "worker \"{}\" (process {} on host \"{}\") takes part in this group, so one process cannot take "
            "all shards; stop the workers or leave out --all-shards",
            other.worker.value(),
            other.process.pid,
            other.process.host
        )};
    for (const auto& shard : active_leases())
        release_early(shard, why);
    release_asked();
    announce_failure(std::move(why));
}

void coordinator::on(const session_ended_reply& reply) {
    ending_.erase(reply.session);
    if (!reply.outcome && reply.outcome.error().code != errc::conflict) {
        // The next tick tries again; at once would turn as fast as the store fails.
        return tell_failure("session.end_failed", "error", {}, reply.outcome.error());
    }
    // Whether we ended it or somebody else did, the next listing shows it.
    worker_list_.wanted = true;
}

void coordinator::on(const rows_listed& reply) {
    const auto begun = std::exchange(row_list_.begun, std::nullopt).value_or(0);
    if (!reply.outcome) {
        row_list_.due = now_ + retry_pause;
        if (recreated_.now == recreation::listing)
            recreated_.now = recreation::none;  // noticed again by a tick
        return tell_failure("shards.list_failed", "error", {}, reply.outcome.error());
    }
    note_unreadable(*reply.outcome);
    if (recreated_.now == recreation::listing) return recreated_rows_listed(*reply.outcome);
    const auto active = active_leases();
    table_.merge(*reply.outcome, begun, steps_, active);
    for (const auto& shard : active) {
        const auto& mine = leases_.at(shard).row();
        const auto* row = table_.find(shard);
        const bool moved = row != nullptr && row->unreadable.empty() &&
                           (row->epoch != mine.epoch || row->version != mine.version);
        if (moved) step_lease(shard, lease_machine::observed{*row});
    }
    forget_tidied();
    rows_known_ = replan_ = true;
}

void coordinator::on(const stream_listed& reply) {
    const auto begun = std::exchange(stream_list_.begun, std::nullopt).value_or(0);
    if (!reply.outcome) {
        stream_list_.due = now_ + retry_pause;
        if (recreated_.now == recreation::looking) recreated_.now = recreation::none;
        trouble_.stream = reply.outcome.error();
        return tell_failure("stream.list_failed", "error", {}, *trouble_.stream);
    }
    trouble_.stream.reset();
    if (discovery_ && begun >= *discovery_) discovery_.reset();
    stream_ = *reply.outcome;
    stream_seen_ = stream_list_.sent;
    group_asked_.retry_at = std::min(group_asked_.retry_at, now_);
    std::set<shard_id> listed;
    for (const auto& shard : stream_->shards)
        listed.insert(shard.shard);
    std::erase_if(unlisted_since_, [&](const auto& known) { return listed.contains(known.first); });
    for (const auto& row : table_.rows()) {
        if (row.finished_at && !listed.contains(row.shard)) unlisted_since_.emplace(row.shard, now_);
    }
    replan_ = true;
    if (recreated_.now == recreation::looking) return recreated_stream_listed(begun);
    if (group_ && !is_of_stream(*group_)) notice_recreated();
}

void coordinator::read_group_row() {
    group_state_ = group_state::reading;
    actions_.emplace_back(millrace::read_group{group_asked_.latest = ++group_asked_.count});
}

void coordinator::write_group_row(group_row row, std::optional<version> expected) {
    group_state_ = group_state::creating;
    row.version = version{expected ? expected->value() + 1 : 1};
    row.write_id = write_id{random_()};
    group_asked_.sent = row;
    actions_.emplace_back(write_group{group_asked_.latest = ++group_asked_.count, std::move(row), expected});
}

void coordinator::settle_group_row() {
    if (group_state_ == group_state::unknown && now_ >= group_asked_.retry_at) read_group_row();
}

void coordinator::on(const group_read& reply) {
    if (reply.request == starts_.request) return starts_read(reply.outcome);
    if (reply.request != group_asked_.latest) return;
    if (!reply.outcome) {
        group_state_ = group_state::unknown;
        group_asked_.retry_at = now_ + retry_pause;
        return tell_failure("group.read_failed", "error", {}, reply.outcome.error());
    }
    if (*reply.outcome) return adopt_group_row(**reply.outcome);
    group_state_ = group_state::unknown;
    recreated_.now = recreation::none;
    if (group_) return restore_group_row();
    if (!stream_) {
        group_asked_.retry_at = now_ + options_.tick;
        return;
    }
    write_group_row(first_group_row(options_, *stream_), std::nullopt);
}

// The state was emptied, or another one stands in its place. A first start would skip, with `latest`,
// whatever the group had not done yet; from its own start it does that again.
void coordinator::restore_group_row() {
    auto row = *group_;
    row.epoch_floor = epoch_above();
    tell(
        log_level::error,
        "group.state_lost",
        "stream",
        row.stream_identity,
        "the state of this group was emptied or replaced while it works, so its checkpoints are lost; it "
        "begins again where it began at its first start, and records come again; put the right state back, "
        "or stop all workers to begin anew"
    );
    write_group_row(std::move(row), std::nullopt);
}

// In doubt or refused: the row as read is the truth, whoever wrote it.
void coordinator::on(const group_written& reply) {
    if (reply.request != group_asked_.latest) return;
    if (reply.outcome) {
        const bool switched = recreated_.now == recreation::switching;
        recreated_.now = switched ? recreation::none : recreated_.now;
        row_list_.wanted = row_list_.wanted || switched;
        return adopt_group_row(*group_asked_.sent);
    }
    const auto& why = reply.outcome.error();
    if (recreated_.now == recreation::switching) recreated_.now = recreation::none;
    if (why.in_doubt || why.code == errc::conflict) return read_group_row();
    group_state_ = group_ ? group_state::known : group_state::unknown;
    group_asked_.retry_at = now_ + retry_pause;
    tell_failure("group.write_failed", "error", {}, why);
}

namespace {

// A reset writes on, under a higher version, and a state that was emptied is given its own start again.
bool begun_anew(const group_row& known, const group_row& row) {
    return row.stream_identity == known.stream_identity && row.start_at != known.start_at &&
           row.version <= known.version;
}

}  // namespace

void coordinator::adopt_group_row(const group_row& row) {
    group_state_ = group_state::known;
    if (auto known = check_format(row); !known) return fail_for_good(known.error());
    if (!group_) {
        if (const auto ignored = start_is_ignored(options_, row)) {
            tell(log_level::warning, "group.start_ignored", "start", {}, *ignored);
        }
    } else if (begun_anew(*group_, row)) {
        return fail_for_good(
            {errc::conflict,
             retry_advice::never,
             false,
             "the state of this group was begun anew while this worker ran, so what came between its last "
             "checkpoints and that moment is skipped; stop all workers, and put the former state back, or "
             "set the group back by `group reset --start` to a time before"}
        );
    }
    group_ = row;
    if (recreated_.now == recreation::reading || recreated_.now == recreation::looking)
        return recreated_group_read();
    replan_ = true;
    if (stream_ && !is_of_stream(row)) notice_recreated();
}

void coordinator::fail_for_good(error why) {
    if (std::exchange(failed_, true)) return;
    for (const auto& shard : active_leases())
        step_lease(shard, lease_machine::session_over{why});
    announce_failure(std::move(why));
}

void coordinator::announce_failure(error why) {
    tell(log_level::error, "group.failed", "error", {}, why.detail);
    actions_.emplace_back(group_failed{std::move(why)});
}

void coordinator::tell(
    log_level level, const char* event, const char* key, std::string value, std::string detail
) {
    actions_.emplace_back(group_note{level, event, key, std::move(value), std::move(detail)});
}

void coordinator::tell_failure(const char* event, const char* key, std::string value, const error& why) {
    const bool state_is_away =
        why.code == errc::unavailable && std::string_view(event) != "stream.list_failed";
    actions_.emplace_back(group_note{
        log_level::warning, event, key, std::move(value), why.detail, true, state_is_away});
}

std::optional<stream_moment> coordinator::stream(mono_time now) const {
    if (!stream_) return std::nullopt;
    return stream_moment{
        stream_->now + std::chrono::floor<milliseconds>(now - stream_seen_), stream_->retention};
}

bool coordinator::unlisted(const shard_id& shard) const {
    return stream_ && std::none_of(stream_->shards.begin(), stream_->shards.end(), [&](const auto& listed) {
               return listed.shard == shard;
           });
}

std::vector<shard_status> coordinator::status() const {
    std::vector<shard_status> all;
    const auto rows = table_.rows();
    const auto traced = trace_lineage(stream_ ? stream_->shards : std::vector<listed_shard>{}, rows);
    all.reserve(traced.shards.size());
    for (const auto& standing : traced.shards) {
        shard_status one;
        if (const auto* row = table_.find(standing.shard)) {
            one.row = *row;
        } else {
            one.row.shard = standing.shard;
            one.row.parents = standing.parents;
        }
        one.listed = stream_ && standing.listed;
        one.ready = standing.stage == shard_stage::ready;
        one.open_again = standing.open_again;
        const auto lease = leases_.find(standing.shard);
        one.mine = lease != leases_.end() && lease->second.now_in() == lease_machine::state::held;
        const auto& owner = one.row.owner;
        one.owner_lapsed = !owner.value().empty() && owner != mine_ &&
                           (!workers_.sessions.contains(owner) || lapse_.lapsed(owner));
        if (owner != mine_) one.other = lapse_.holder(owner);
        all.push_back(std::move(one));
    }
    return all;
}

}  // namespace millrace
