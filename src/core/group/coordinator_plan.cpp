// Who should hold what: rows to create, shards to take, to give back, to delete.
#include "group/coordinator.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

// Requests of a kind in flight: enough to hide the store's latency, few enough to leave room for others.
constexpr std::size_t takes_in_flight_max = 32;
constexpr std::size_t creates_in_flight_max = 32;
constexpr std::size_t removes_in_flight_max = 8;

// A listing may be a moment old; the next one tells whether it was.
constexpr auto look_again = std::chrono::milliseconds{500};

}  // namespace

// Nobody takes such a shard, nor those that wait for it; who holds it goes on. The others are not held up.
void coordinator::note_unreadable(const std::vector<shard_row>& rows) {
    trouble_.rows = unreadable_in(rows);
    for (const auto& row : rows) {
        if (row.unreadable.empty()) continue;
        actions_.emplace_back(group_note{
            log_level::error, "shard.unreadable", "shard", row.shard.value(), row.unreadable, true});
    }
}

/// The other rows. A session whose row cannot be read may still be at work, so its shards stay with it until
/// it has lapsed; one whose counter can be read is then ended like any other. A heartbeat on a counter that
/// cannot be read is refused by the store: then there is nothing to end.
std::vector<worker_row> coordinator::note_unreadable(
    const std::vector<worker_row>& rows, worker_listing& sessions
) {
    trouble_.worker_rows = unreadable_in(rows);
    std::vector<worker_row> readable;
    for (const auto& row : rows) {
        if (row.unreadable.empty()) {
            readable.push_back(row);
            continue;
        }
        actions_.emplace_back(group_note{
            log_level::error, "worker.unreadable", "session", row.incarnation.value(), row.unreadable, true});
        const bool is_over = lapse_.lapsed(row.incarnation) && row.counter == version{};
        if (!row.incarnation.value().empty() && !is_over) sessions.sessions.insert(row.incarnation);
    }
    return readable;
}

bool coordinator::can_plan() const {
    if (!group_ || !stream_ || !rows_known_ || group_state_ != group_state::known) return false;
    if (recreated_.now != recreation::none || !is_of_stream(*group_)) return false;
    return options_.all_shards ? admitted_ : membership_.index && !mine_.value().empty();
}

void coordinator::plan() {
    if (!can_plan()) return;
    replan_ = false;
    plan_.to_take.clear();
    plan_.orphans = false;
    const auto traced = trace_lineage(stream_->shards, table_.rows());
    for (const auto& problem : traced.problems) {
        if (problems_told_.size() < 100 && problems_told_.insert(problem).second) {
            tell(log_level::warning, "stream.nonsense", "stream", {}, problem);
        }
    }
    if (restored_.observe(traced, stream_seen_))
        stream_list_.due = std::min(stream_list_.due, now_ + look_again);
    if (const auto soon = missing_.observe(traced, stream_seen_, options_.discover_every))
        stream_list_.due = std::min(stream_list_.due, stream_seen_ + *soon);
    if (const auto why = restored_.news()) {
        actions_.emplace_back(group_note{log_level::error, "stream.restored", "stream", {}, why->detail, true}
        );
    }
    plan_rows(traced);
    std::vector<assignable_shard> shards;
    for (const auto& standing : traced.shards) {
        if (standing.stage != shard_stage::ready || !standing.has_row || behind_a_gone_parent(standing))
            continue;
        const auto* row = table_.find(standing.shard);
        if (!row->unreadable.empty()) continue;
        const auto lease = leases_.find(standing.shard);
        const bool ours = lease != leases_.end() && lease->second.active();
        shards.push_back({standing.shard, ours ? mine_ : row->owner});
    }
    if (options_.all_shards) {
        hold_everything(shards);
    } else {
        plan_leases(shards);
    }
    tidy();
}

// A parent that the stream holds no longer keeps nobody waiting, but its owner may still have records of it
// in memory: they come before those of the children.
bool coordinator::behind_a_gone_parent(const shard_standing& child) {
    return std::any_of(child.parents.begin(), child.parents.end(), [this](const shard_id& parent) {
        const auto* row = table_.find(parent);
        if (row == nullptr || row->finished_at) return false;
        if (!row->unreadable.empty()) return true;
        if (const auto lease = leases_.find(parent); lease != leases_.end() && lease->second.active())
            return true;
        if (row->owner.value().empty() || row->owner == mine_ || table_.takeable(parent, workers_))
            return false;
        if (!workers_.sessions.contains(row->owner)) worker_list_.wanted = plan_.orphans = true;
        return true;
    });
}

// Rows are missing for shards that were just discovered. Each worker begins elsewhere, so that few collide.
void coordinator::plan_rows(const lineage& traced) {
    plan_.to_create.clear();
    std::set<shard_id> unlisted;
    for (const auto& standing : traced.shards) {
        if (standing.has_row && !standing.listed) unlisted.insert(standing.shard);
        if (standing.has_row || !standing.listed || plan_.creating.contains(standing.shard)) continue;
        shard_row row;
        row.shard = standing.shard;
        row.parents = standing.parents;
        row.epoch = epoch_above();
        // Not from one: a late write on a deleted row of that name must not fit the new one.
        row.version = version{(random_() >> 40) + 1};
        row.write_id = write_id{random_()};
        plan_.to_create.push_back(std::move(row));
    }
    if (!plan_.to_create.empty() && membership_.index) {
        const auto first = *membership_.index * plan_.to_create.size() / membership_.members.size();
        std::rotate(
            plan_.to_create.begin(),
            plan_.to_create.begin() + static_cast<std::ptrdiff_t>(first),
            plan_.to_create.end()
        );
    }
    // A row that another worker created for a shard that our listing does not have yet.
    const bool news =
        !std::includes(unlisted_rows_.begin(), unlisted_rows_.end(), unlisted.begin(), unlisted.end());
    if (news) stream_list_.wanted = true;
    unlisted_rows_ = std::move(unlisted);
}

void coordinator::hold_everything(const std::vector<assignable_shard>& shards) {
    if (drain_until_) return;
    for (const auto& shard : shards) {
        const auto lease = leases_.find(shard.shard);
        if (lease != leases_.end() && lease->second.active()) continue;
        if (shard.owner.value().empty()) {
            start_lease(*table_.find(shard.shard), lease_machine::adopt{}, false);
        } else if (table_.takeable(shard.shard, workers_)) {
            // Its last owner may still be in a handler: not under that epoch.
            plan_.to_take.push_back(shard.shard);
        } else {
            worker_list_.wanted = plan_.orphans = true;
        }
    }
}

void coordinator::plan_leases(const std::vector<assignable_shard>& shards) {
    std::vector<incarnation> sessions;
    for (const auto& member : membership_.members)
        sessions.push_back(member.session);
    const auto target = assign_shards(sessions, shards);
    const auto quota = static_cast<std::size_t>(std::count(target.begin(), target.end(), *membership_.index));

    const std::set<incarnation> live(sessions.begin(), sessions.end());
    std::vector<bool> wanted(shards.size());
    std::vector<shard_id> others;
    std::size_t held = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const auto& shard = shards[i].shard;
        wanted[i] = target[i] == *membership_.index;
        if (shards[i].owner == mine_) {
            const auto lease = leases_.find(shard);
            if (lease == leases_.end() || !lease->second.active()) continue;  // a take that landed late
            if (!lease->second.releasing()) ++held;
            if (!wanted[i]) revoke(shard);
            continue;
        }
        if (!shards[i].owner.value().empty() && !live.contains(shards[i].owner)) plan_.orphans = true;
        if (!table_.takeable(shard, workers_)) {
            // Gone, as it seems; a listing begun from now on can prove it.
            if (!workers_.sessions.contains(shards[i].owner)) worker_list_.wanted = true;
            continue;
        }
        (wanted[i] ? plan_.to_take : others).push_back(shard);
    }
    adopt_late_takes(shards, wanted);
    if (drain_until_) return plan_.to_take.clear();
    // What is computed for us may still be held; a free one is better than waiting for it.
    for (const auto& shard : others) {
        if (held + plan_.to_take.size() >= quota) break;
        plan_.to_take.push_back(shard);
    }
}

// A row that names this session although we do not hold it: an earlier take that landed late.
void coordinator::adopt_late_takes(
    const std::vector<assignable_shard>& shards, const std::vector<bool>& wanted
) {
    for (std::size_t i = 0; i < shards.size(); ++i) {
        if (shards[i].owner != mine_) continue;
        const auto lease = leases_.find(shards[i].shard);
        if (lease != leases_.end() && lease->second.active()) continue;
        const bool keep = wanted[i] && !drain_until_;
        start_lease(*table_.find(shards[i].shard), lease_machine::adopt{}, !keep);
        if (!keep) step_lease(shards[i].shard, lease_machine::release{});
    }
}

void coordinator::take_planned() {
    if (plan_.to_take.empty() || !can_plan() || now_ < plan_.take_after || now_ >= deadline_) return;
    std::size_t started = 0;
    while (started < plan_.to_take.size() && plan_.taking < takes_in_flight_max) {
        const auto* row = table_.find(plan_.to_take[started++]);
        if (row == nullptr || !table_.takeable(row->shard, workers_)) continue;
        const auto lease = leases_.find(row->shard);
        if (lease != leases_.end() && lease->second.active()) continue;
        ++plan_.taking;
        start_lease(*row, lease_machine::take{epoch_above()}, false);
    }
    plan_.to_take.erase(plan_.to_take.begin(), plan_.to_take.begin() + static_cast<std::ptrdiff_t>(started));
}

void coordinator::create_planned() {
    std::size_t started = 0;
    while (started < plan_.to_create.size() && plan_.creating.size() < creates_in_flight_max) {
        const auto& row = plan_.to_create[started++];
        if (!plan_.creating.insert(row.shard).second) continue;
        actions_.emplace_back(create_row{row});
    }
    plan_.to_create.erase(
        plan_.to_create.begin(), plan_.to_create.begin() + static_cast<std::ptrdiff_t>(started)
    );
}

void coordinator::on(const row_created& reply) {
    plan_.creating.erase(reply.row.shard);
    if (reply.outcome) {
        table_.put(reply.row, steps_);
        changed_ = true;
        if (plan_.to_create.empty() && plan_.creating.empty()) replan_ = true;
        return;
    }
    const auto& why = reply.outcome.error();
    // Another worker is creating them, too, or nobody knows: the rows themselves tell.
    if (why.in_doubt || why.code == errc::conflict) {
        plan_.to_create.clear();
        row_list_.wanted = true;
        return;
    }
    plan_.to_create.clear();
    row_list_.due = now_;
    tell_failure("shard.create_failed", "shard", reply.row.shard.value(), why);
}

epoch coordinator::epoch_above() const {
    return std::max(table_.highest_epoch(), group_ ? group_->epoch_floor : epoch{});
}

// Finished rows whose shard has long been unlisted go. The group row keeps their epochs first, so that a
// shard of that name, should it come back, starts above them. Only the first worker bothers.
void coordinator::tidy() {
    if (!options_.all_shards && membership_.index != 0) return;
    std::vector<const shard_row*> due;
    epoch highest;
    for (const auto& [shard, since] : unlisted_since_) {
        const auto* row = table_.find(shard);
        if (row == nullptr || !row->finished_at || plan_.removing.contains(shard)) continue;
        if (stream_seen_ < since || stream_seen_ - since < options_.tidy_after) continue;
        due.push_back(row);
        highest = std::max(highest, row->epoch);
    }
    if (due.empty()) return;
    if (group_->epoch_floor < highest) {
        auto next = *group_;
        next.epoch_floor = highest;
        return write_group_row(std::move(next), group_->version);
    }
    for (const auto* row : due) {
        if (plan_.removing.size() == removes_in_flight_max) break;
        plan_.removing.emplace(row->shard, *row);
        actions_.emplace_back(remove_row{row->shard, row->version});
    }
}

// Another worker has tidied: nothing is kept of a shard whose row is gone.
void coordinator::forget_tidied() {
    std::vector<shard_id> gone;
    for (const auto& [shard, lease] : leases_) {
        if (!lease.active() && table_.find(shard) == nullptr) gone.push_back(shard);
    }
    for (const auto& shard : gone)
        forget_lease(shard);
    std::erase_if(unlisted_since_, [&](const auto& known) { return table_.find(known.first) == nullptr; });
}

void coordinator::on(const row_removed& reply) {
    plan_.removing.erase(reply.shard);
    if (reply.outcome) {
        tell(log_level::info, "shard.tidied", "shard", reply.shard.value(), {});
        table_.forget(reply.shard);
        forget_lease(reply.shard);
        replan_ = replan_ || plan_.removing.empty();
    } else {
        row_list_.wanted = true;
    }
}

}  // namespace millrace
