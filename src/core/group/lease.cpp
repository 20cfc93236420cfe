#include "group/lease.hpp"

#include "assert.hpp"
#include "overload.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr auto pause_min = std::chrono::milliseconds{50};
constexpr auto pause_max = std::chrono::seconds{2};
constexpr std::size_t unproved_max = 16;

}  // namespace

lease_machine::lease_machine(shard_row row, incarnation mine, std::function<std::uint64_t()> random)
    : row_(std::move(row)), mine_(std::move(mine)), random_(std::move(random)), epoch_(row_.epoch) {}

std::vector<lease_machine::action> lease_machine::step(mono_time now, const event& what) {
    std::visit(
        overload{
            [&](const take& t) {
                MILLRACE_ASSERT(state_ == state::idle);
                take_above_ = t.above;
                state_ = state::taking;
            },
            [&](const adopt&) {
                MILLRACE_ASSERT(state_ == state::idle && (mine_.value().empty() || row_.owner == mine_));
                hold(now);
            },
            [&](const persist&) { ++persist_asked_; },
            [&](const release&) { want_release_ = want_release_ || active(); },
            [&](const finish& f) {
                if (want_finish_ || !active()) return;
                want_finish_ = true;
                finish_at_ = f.at;
            },
            [&](const timer&) {},
            [&](const write_done& reply) {
                outstanding_ = false;
                if (!active()) return;
                reply.outcome ? succeed(now) : judge(now, reply.outcome.error());
            },
            [&](const read_done& reply) {
                outstanding_ = false;
                if (!active()) return;
                if (!reply.outcome) return back_off(now);
                decide(now, *reply.outcome);
            },
            [&](const observed& seen) {
                if (state_ != state::held || outstanding_ || must_read_) return;
                decide(now, seen.row);
            },
            [&](const session_over& over) {
                if (state_ == state::taking) end(state::refused, refused{over.why});
                if (state_ == state::held) end(state::lost, lost{over.why});
            },
        },
        what
    );
    request_next(now);
    return std::exchange(actions_, {});
}

result<void> lease_machine::usable(millrace::epoch e) const {
    const auto& name = row_.shard.value();
    if (e == epoch_ && (state_ == state::finished || want_finish_)) {
        return fail(errc::already_finished, fmt::format("shard \"{}\" is finished; drop the handle", name));
    }
    if (e == epoch_ && state_ != state::lost && (state_ == state::released || want_release_)) {
        return fail(
            errc::already_released,
            fmt::format("the lease of shard \"{}\" was given back; wait for a new grant", name)
        );
    }
    if (e != epoch_ || state_ != state::held) {
        return fail(
            errc::not_owner,
            fmt::format(
                "the lease of shard \"{}\" under epoch {} is over; wait for a new grant", name, e.value()
            )
        );
    }
    return {};
}

result<void> lease_machine::advance(
    mono_time now, millrace::epoch e, const checkpoint& reached, std::uint64_t records
) {
    if (auto ok = usable(e); !ok) return ok;
    if (reached_ && reached.position < reached_->position) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "the checkpoint of shard \"{}\" stands at {}; it cannot go back to {}",
                row_.shard.value(),
                reached_->position.sequence.to_string(),
                reached.position.sequence.to_string()
            )
        );
    }
    reached_ = reached;
    if (!dirty()) return {};
    unwritten_ += records;
    if (!unwritten_since_) unwritten_since_ = now;
    if (outstanding_ && !unwritten_since_sent_) unwritten_since_sent_ = now;
    return {};
}

std::optional<mono_time> lease_machine::wake() const {
    if (outstanding_ || !active()) return std::nullopt;
    const bool wants = must_read_ || state_ == state::taking || want_finish_ || want_release_ ||
                       persist_asked_ > persist_answered_;
    return wants ? std::optional{retry_at_} : std::nullopt;
}

void lease_machine::request_next(mono_time now) {
    if (state_ != state::taking && state_ != state::held) {
        const auto why = usable(epoch_);
        return answer_persists(persist_asked_, why);
    }
    if (outstanding_ || now < retry_at_) return;
    if (must_read_) {
        outstanding_ = true;
        actions_.emplace_back(read{});
        return;
    }
    auto next = row_;
    if (state_ == state::taking) {
        if (want_release_) return end(state::released, released{});
        next.owner = mine_;
        next.epoch = millrace::epoch{std::max(row_.epoch, take_above_).value() + 1};
        return send(aim::take, std::move(next));
    }
    if (reached_) next.checkpoint = reached_;
    if (want_finish_) {
        next.owner = incarnation{};
        next.finished_at = finish_at_;
        return send(aim::finish, std::move(next));
    }
    if (want_release_) {
        if (mine_.value().empty() && !dirty()) return end(state::released, released{});
        next.owner = incarnation{};
        return send(aim::release, std::move(next));
    }
    if (persist_asked_ == persist_answered_) return;
    if (!dirty()) return answer_persists(persist_asked_, {});
    send(aim::persist, std::move(next));
}

void lease_machine::send(aim what, shard_row next) {
    aim_ = what;
    const auto expected = row_.version;
    next.version = version{expected.value() + 1};
    next.write_id = millrace::write_id{random_()};
    if (mine_.value().empty()) {
        if (unproved_.size() == unproved_max) unproved_.erase(unproved_.begin());
        unproved_.push_back(next.write_id);
    }
    persist_sent_ = persist_asked_;
    unwritten_sent_ = unwritten_;
    unwritten_since_sent_.reset();
    outstanding_ = true;
    sent_ = std::move(next);
    actions_.emplace_back(write{*sent_, expected});
}

// The outstanding write took effect.
void lease_machine::succeed(mono_time now) {
    row_ = *sent_;
    failures_ = 0;
    retry_at_ = now;
    if (aim_ == aim::take) {
        unproved_.clear();
        return hold(now);
    }
    written();
    if (aim_ == aim::finish) return end(state::finished, finished{});
    if (aim_ == aim::release) return end(state::released, released{});
}

void lease_machine::written() {
    unproved_.clear();
    unwritten_ -= std::min(unwritten_, unwritten_sent_);
    unwritten_sent_ = 0;
    unwritten_since_ = std::exchange(unwritten_since_sent_, std::nullopt);
    answer_persists(persist_sent_, {});
}

void lease_machine::hold(mono_time now) {
    state_ = state::held;
    epoch_ = row_.epoch;
    reached_ = row_.checkpoint;
    must_read_ = false;
    retry_at_ = now;
    // Given back before it was granted: nobody is told of it.
    if (!want_release_) actions_.emplace_back(taken{});
}

void lease_machine::end(state how, action what) {
    state_ = how;
    must_read_ = false;
    unwritten_ = 0;
    unwritten_since_.reset();
    actions_.push_back(std::move(what));
}

void lease_machine::answer_persists(std::uint64_t upto, const result<void>& outcome) {
    if (upto <= persist_answered_) return;
    persist_answered_ = upto;
    actions_.emplace_back(persisted{upto, outcome});
}

void lease_machine::back_off(mono_time now) {
    const auto doubled = pause_min * (1 << std::min<std::uint32_t>(failures_, 10));
    ++failures_;
    retry_at_ = now + std::min<nanoseconds>(doubled, pause_max);
}

void lease_machine::judge(mono_time now, const error& why) {
    if (why.in_doubt || why.code == errc::conflict) {
        must_read_ = true;
        return;
    }
    if (state_ == state::taking) return end(state::refused, refused{why});
    back_off(now);
    if (aim_ == aim::persist) answer_persists(persist_sent_, tl::unexpected(why));
}

bool lease_machine::still_mine(const shard_row& row) const {
    if (!mine_.value().empty()) return row.owner == mine_ && row.epoch == epoch_;
    return row.epoch == epoch_ && (row.version == row_.version || has_proof(row));
}

bool lease_machine::has_proof(const shard_row& row) const {
    return std::find(unproved_.begin(), unproved_.end(), row.write_id) != unproved_.end();
}

error lease_machine::not_mine(const shard_row& row) const {
    auto detail =
        mine_.value().empty()
            ? fmt::format(
                  "another process writes shard \"{}\", too; only one may take all shards", row.shard.value()
              )
            : fmt::format(
                  "shard \"{}\" is held by {} under epoch {}, ours was {}",
                  row.shard.value(),
                  row.owner.value().empty() ? "nobody" : "session " + row.owner.value(),
                  row.epoch.value(),
                  epoch_.value()
              );
    const auto code = mine_.value().empty() ? errc::conflict : errc::not_owner;
    return {row.finished_at ? errc::already_finished : code, retry_advice::never, false, std::move(detail)};
}

// The row as read settles what is in doubt.
void lease_machine::decide(mono_time now, const std::optional<shard_row>& row) {
    must_read_ = false;
    row_gone_ = !row;
    if (!row) {
        error gone{
            errc::not_owner,
            retry_advice::never,
            false,
            fmt::format("the row of shard \"{}\" was deleted", row_.shard.value())};
        if (state_ == state::taking) return end(state::refused, refused{std::move(gone)});
        return end(state::lost, lost{std::move(gone)});
    }
    if (state_ == state::taking) return decide_take(now, *row);
    const bool landed = row->version != row_.version;
    const bool mine = still_mine(*row);
    const bool has_all = !reached_ || (row->checkpoint && row->checkpoint->position >= reached_->position);
    const auto before = std::exchange(row_, *row);
    if (has_all && row->checkpoint) reached_ = row->checkpoint;  // what the handler wrote itself
    if (want_finish_ && row->finished_at) {
        written();
        return end(state::finished, finished{});
    }
    if (mine) {
        if (!landed) return back_off(now);
        failures_ = 0;
        retry_at_ = now;
        if (has_all && !dirty()) written();
        // In all-shards mode nothing in the row tells a released lease; that its write landed does.
        if (mine_.value().empty() && want_release_ && !dirty()) end(state::released, released{});
        return;
    }
    // Only we can have given it back while our session lived, so it was our release that landed.
    const bool given_back = want_release_ && has_all && (row->epoch > epoch_ || row->owner.value().empty());
    if (given_back && before.epoch == epoch_) {
        written();
        return end(state::released, released{});
    }
    end(state::lost, lost{not_mine(*row)});
}

void lease_machine::decide_take(mono_time now, const shard_row& row) {
    const bool landed = row.version != row_.version || row.epoch != row_.epoch;
    row_ = row;
    if (mine_.value().empty() ? has_proof(row) : row.owner == mine_) return hold(now);
    if (!landed) return back_off(now);
    end(state::refused, refused{not_mine(row)});
}

}  // namespace millrace
