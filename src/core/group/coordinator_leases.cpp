// What this worker holds: its lease machines, checkpoints in time, giving back.
#include "group/coordinator.hpp"
#include "overload.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr auto take_pause = std::chrono::milliseconds{200};
constexpr auto start_pause = std::chrono::milliseconds{200};

// Writes that give shards back, at a time: a worker that stops may hold thousands.
constexpr std::size_t releases_in_flight_max = 32;

// After the drain limit, the last writes get so long before the session's end, which frees all at once, has
// to do.
constexpr auto last_writes = std::chrono::milliseconds{500};

}  // namespace

result<void> coordinator::advance(
    mono_time now, const shard_id& shard, epoch e, const checkpoint& reached, std::uint64_t records
) {
    if (auto ok = usable(shard, e); !ok) return ok;
    auto& lease = leases_.at(shard);
    auto outcome = lease.advance(now, e, reached, records);
    if (lease.dirty() && dirty_.insert(shard).second) now_ = std::max(now_, now);
    if (lease.unwritten_records() >= options_.checkpoint_records && !lease.writing()) urgent_ = true;
    return outcome;
}

result<void> coordinator::usable(const shard_id& shard, epoch e) const {
    if (to_release_.contains(shard)) {
        return fail(
            errc::already_released,
            fmt::format("the lease of shard \"{}\" is being given back; wait for a new grant", shard.value())
        );
    }
    if (const auto lease = leases_.find(shard); lease != leases_.end()) return lease->second.usable(e);
    return fail(
        errc::not_owner,
        fmt::format("shard \"{}\" is not held by this worker; wait for a grant", shard.value())
    );
}

std::uint64_t coordinator::persist_requests(const shard_id& shard) const {
    const auto lease = leases_.find(shard);
    return lease == leases_.end() ? 0 : lease->second.persist_requests();
}

std::uint64_t coordinator::records_at_risk() const {
    std::uint64_t total = 0;
    for (const auto& shard : dirty_) {
        if (const auto lease = leases_.find(shard); lease != leases_.end()) {
            total += lease->second.unwritten_records();
        }
    }
    return total;
}

std::set<shard_id> coordinator::active_leases() const {
    std::set<shard_id> active;
    for (const auto& [shard, lease] : leases_) {
        if (lease.active()) active.insert(shard);
    }
    return active;
}

std::size_t coordinator::leases_held() const {
    return static_cast<std::size_t>(std::count_if(leases_.begin(), leases_.end(), [](const auto& l) {
        return l.second.now_in() == lease_machine::state::held;
    }));
}

bool coordinator::holds_any() const {
    return std::any_of(leases_.begin(), leases_.end(), [](const auto& l) { return l.second.active(); });
}

// A reply to an earlier lease of this shard, lost with a request under way, says nothing about the present
// one.
bool coordinator::of_present_lease(const shard_id& shard, std::uint64_t lease) const {
    const auto found = lease_numbers_.find(shard);
    return found != lease_numbers_.end() && found->second == lease;
}

void coordinator::on(const lease_written& reply) {
    if (of_present_lease(reply.shard, reply.lease))
        step_lease(reply.shard, lease_machine::write_done{reply.outcome});
}

void coordinator::on(const lease_read& reply) {
    if (of_present_lease(reply.shard, reply.lease))
        step_lease(reply.shard, lease_machine::read_done{reply.outcome});
}

void coordinator::on(const persist_request& what) {
    step_lease(what.shard, lease_machine::persist{});
}

void coordinator::on(const release_request& what) {
    to_release_.insert(what.shard);
    release_asked();
}

void coordinator::release_asked() {
    while (!to_release_.empty() && releasing_.size() < releases_in_flight_max) {
        const auto shard = to_release_.extract(to_release_.begin()).value();
        releasing_.insert(shard);
        step_lease(shard, lease_machine::release{});
        if (const auto lease = leases_.find(shard); lease == leases_.end() || !lease->second.active()) {
            releasing_.erase(shard);
        }
    }
}

void coordinator::on(const finish_request& what) {
    step_lease(what.shard, lease_machine::finish{what.at});
}

void coordinator::start_lease(const shard_row& row, const lease_machine::event& how, bool silent) {
    const auto shard = row.shard;
    lease_machine fresh(row, options_.all_shards ? incarnation{} : mine_, random_);
    leases_.insert_or_assign(shard, std::move(fresh));
    lease_numbers_[shard] = ++leases_started_;
    granted_.erase(shard);
    revoked_.erase(shard);
    dirty_.erase(shard);
    if (silent) silent_.insert(shard);
    step_lease(shard, how);
}

void coordinator::step_lease(const shard_id& shard, const lease_machine::event& what) {
    const auto found = leases_.find(shard);
    if (found == leases_.end()) return;
    auto& lease = found->second;
    const bool was_taking = lease.now_in() == lease_machine::state::taking;
    const bool was_active = lease.active();
    const auto actions = lease.step(now_, what);
    if (was_taking && lease.now_in() != lease_machine::state::taking) --plan_.taking;
    if (lease.row_gone()) {
        table_.forget(shard);  // and made anew by the next plan
        replan_ = true;
    } else if (was_active || lease.active()) {
        table_.put(lease.row(), steps_);
    }
    for (const auto& action : actions)
        lease_happened(shard, lease, action);
    if (was_active && !lease.active()) lease_ended(shard, lease);
    if (!lease.dirty() || !lease.active()) dirty_.erase(shard);
    if (const auto wake = lease.wake()) {
        lease_wakes_[shard] = *wake;
    } else {
        lease_wakes_.erase(shard);
    }
    if (lease.row_gone()) forget_lease(shard);
}

// An ended lease is kept for the answer that a handle of it gets, while its row stands.
void coordinator::forget_lease(const shard_id& shard) {
    leases_.erase(shard);
    lease_numbers_.erase(shard);
    unlisted_since_.erase(shard);
}

void coordinator::lease_happened(
    const shard_id& shard, lease_machine& lease, const lease_machine::action& what
) {
    std::visit(
        overload{
            [&](const lease_machine::write& a) {
                actions_.emplace_back(write_lease{a.row, a.expected, lease_numbers_[shard]});
            },
            [&](const lease_machine::read&) {
                actions_.emplace_back(read_lease{shard, lease_numbers_[shard]});
            },
            [&](const lease_machine::taken&) {
                changed_ = true;
                if (silent_.contains(shard)) return;
                if (lease.row().checkpoint && group_) return grant(shard, lease, start_of(*group_));
                starts_.wanted[shard] = lease_numbers_[shard];
            },
            [&](const lease_machine::refused& a) {
                tell(log_level::debug, "lease.refused", "shard", shard.value(), a.why.detail);
                if (!table_.takeable(shard, workers_)) return;
                // Nothing tells why it should go better at once.
                plan_.take_after = now_ + take_pause;
                row_list_.wanted = true;
            },
            [&](const lease_machine::persisted& a) {
                if (!a.outcome && lease.active()) {
                    tell_failure("checkpoint.failed", "shard", shard.value(), a.outcome.error());
                }
                actions_.emplace_back(lease_persisted{shard, a.upto, a.outcome});
            },
            [&](const lease_machine::released&) {
                if (!granted_.contains(shard)) return;
                tell(log_level::info, "lease.released", "shard", shard.value(), {});
                actions_.emplace_back(lease_released{shard});
            },
            [&](const lease_machine::finished&) {
                tell(log_level::info, "shard.finished", "shard", shard.value(), {});
                actions_.emplace_back(lease_finished{shard});
                stream_list_.wanted = true;
            },
            [&](const lease_machine::lost& a) {
                if (!granted_.contains(shard)) return;
                // The end of the session was told, with the same reason.
                const auto level = session_is_over_ ? log_level::debug : log_level::warning;
                tell(level, "lease.lost", "shard", shard.value(), a.why.detail);
                actions_.emplace_back(lease_lost{shard, a.why, lease.releasing()});
            },
        },
        what
    );
}

void coordinator::grant(const shard_id& shard, const lease_machine& lease, start_position start) {
    granted_.insert(shard);
    tell(
        log_level::info, "lease.taken", "shard", shard.value(), fmt::format("epoch {}", lease.epoch().value())
    );
    actions_.emplace_back(lease_granted{lease.row(), std::move(start)});
}

// Where nothing was read yet, the start position is read after the take: a reset writes the group row before
// the rows of the shards, so whoever takes a row that was reset finds the new start.
void coordinator::read_starts() {
    if (starts_.wanted.empty() || starts_.request || now_ < starts_.retry_at) return;
    starts_.asked = std::exchange(starts_.wanted, {});
    starts_.request = ++group_asked_.count;
    actions_.emplace_back(millrace::read_group{*starts_.request});
}

void coordinator::starts_read(const result<std::optional<group_row>>& outcome) {
    starts_.request.reset();
    const auto asked = std::exchange(starts_.asked, {});
    if (!outcome) tell_failure("group.read_failed", "error", {}, outcome.error());
    const bool found = outcome && *outcome;
    if (group_state_ == group_state::known && outcome) {
        if (!found) group_state_ = group_state::unknown;
        if (found && **outcome != *group_) adopt_group_row(**outcome);
    }
    if (!found || !stream_ || !is_of_stream(**outcome)) {
        starts_.wanted.insert(asked.begin(), asked.end());
        starts_.retry_at = now_ + start_pause;
        return;
    }
    for (const auto& [shard, number] : asked) {
        const auto lease = leases_.find(shard);
        if (lease == leases_.end() || !of_present_lease(shard, number)) continue;
        if (lease->second.now_in() != lease_machine::state::held) continue;
        if (lease->second.releasing() || to_release_.contains(shard)) continue;
        grant(shard, lease->second, start_of(**outcome));
    }
}

void coordinator::lease_ended(const shard_id& shard, const lease_machine& lease) {
    granted_.erase(shard);
    silent_.erase(shard);
    revoked_.erase(shard);
    to_release_.erase(shard);
    releasing_.erase(shard);
    if (!drain_until_) replan_ = true;  // a plan for each of thousands would take longer than their writes
    switch (lease.now_in()) {
        case lease_machine::state::released:
        case lease_machine::state::finished:
            changed_ = true;
            break;
        case lease_machine::state::refused:
            // A late write of the dead owner, or somebody else's take.
            if (!options_.all_shards || !lease.row().owner.value().empty()) break;
            [[fallthrough]];
        case lease_machine::state::lost:
            row_list_.wanted = true;
            if (!options_.all_shards || failed_ || drain_until_) break;
            fail_for_good(
                {errc::conflict,
                 retry_advice::never,
                 false,
                 fmt::format(
                     "another process writes shard \"{}\" of this group, so this one cannot take all shards; "
                     "run only one, or leave out --all-shards",
                     shard.value()
                 )}
            );
            break;
        default:
            break;
    }
}

// An acknowledgement is written when it is old enough, or when many are waiting; the oldest first.
void coordinator::write_due_checkpoints() {
    if (dirty_.empty() || now_ >= deadline_) return;
    std::vector<std::pair<mono_time, shard_id>> due;
    for (const auto& shard : dirty_) {
        const auto& lease = leases_.at(shard);
        const auto since = lease.unwritten_since();
        if (lease.writing() || lease.wake() || !since || to_release_.contains(shard)) continue;
        const bool many = lease.unwritten_records() >= options_.checkpoint_records;
        if (many || now_ - *since >= options_.checkpoint_every) due.emplace_back(*since, shard);
    }
    std::sort(due.begin(), due.end());
    for (const auto& [since, shard] : due) {
        if (!budget_.spend(now_)) break;
        step_lease(shard, lease_machine::persist{});
    }
}

void coordinator::revoke(const shard_id& shard) {
    const auto lease = leases_.find(shard);
    if (lease == leases_.end() || !lease->second.active() || lease->second.releasing()) return;
    if (!granted_.contains(shard)) return step_lease(shard, lease_machine::release{});
    if (revoked_.insert(shard).second) actions_.emplace_back(lease_revoked{shard});
}

void coordinator::on(const stop_request&) {
    if (stopped_ || !begun_ || (failed_ && !holds_any())) {
        stopped_ = true;
        actions_.emplace_back(group_stopped{{}});
        return;
    }
    if (drain_until_) return;
    drain_until_ = now_ + options_.drain_limit;
    give_up_at_ = *drain_until_ + last_writes;
    plan_.to_take.clear();
    plan_.to_create.clear();
    for (const auto& shard : active_leases())
        revoke(shard);
}

void coordinator::drain() {
    if (!drain_until_) return;
    if (!holds_any()) {
        stopped_ = true;
        actions_.emplace_back(group_stopped{{}});
        return;
    }
    if (now_ >= *give_up_at_) {
        stopped_ = true;
        actions_.emplace_back(group_stopped{fail(
            errc::unavailable,
            "some shards could not be given back in time; they come free when the session ends",
            retry_advice::never,
            true
        )});
        return;
    }
    if (now_ < *drain_until_) return;
    for (const auto& shard : active_leases()) {
        if (leases_.at(shard).releasing() || to_release_.contains(shard)) continue;
        error why{
            errc::cancelled,
            retry_advice::never,
            false,
            fmt::format(
                "shard \"{}\" was not given back within the drain limit; it goes on from its last "
                "acknowledged position elsewhere",
                shard.value()
            )};
        tell(log_level::warning, "lease.drain_limit", "shard", shard.value(), why.detail);
        release_early(shard, std::move(why));
    }
    release_asked();
}

// Without waiting for whoever works on it: from its last acknowledged position.
void coordinator::release_early(const shard_id& shard, error why) {
    if (granted_.contains(shard)) actions_.emplace_back(lease_lost{shard, std::move(why), false});
    granted_.erase(shard);
    to_release_.insert(shard);
}

}  // namespace millrace
