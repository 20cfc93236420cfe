#include "lease_leadership.hpp"

#include "assert.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

lease_leadership::lease_leadership(
    event_loop& loop,
    member_settings settings,
    keeper::store_opener open,
    std::function<void(const error&)> failed
)
    : loop_(loop),
      settings_(std::move(settings)),
      open_(std::move(open)),
      failed_(std::move(failed)),
      unnamed_(2 * settings_.lease),
      back_(loop) {}

lease_leadership::~lease_leadership() = default;

result<std::unique_ptr<lease_leadership>> lease_leadership::make(
    event_loop& loop,
    member_settings settings,
    std::vector<seat_setup> seats,
    keeper::store_opener open,
    std::function<void(const error&)> failed
) {
    std::unique_ptr<lease_leadership> made(
        new lease_leadership(loop, std::move(settings), std::move(open), std::move(failed))
    );
    std::vector<std::string> names;
    for (auto& one : seats) {
        std::unique_ptr<lease_store> raise_in;
        if (one.raise_in) {
            auto store = one.raise_in(loop);
            if (!store) return tl::unexpected(std::move(store.error()));
            raise_in = std::move(*store);
        }
        names.push_back(one.name);
        made->places_.push_back(
            {shard_id{one.name}, std::make_unique<seat>(loop, *one.holder, std::move(raise_in)), {}}
        );
    }
    made->lister_ = std::make_unique<static_lister>(loop, std::move(names));
    if (auto ok = made->make_member(); !ok) return tl::unexpected(std::move(ok.error()));
    return made;
}

result<void> lease_leadership::make_member() {
    group_listener& news = *this;
    auto made = member::make(loop_, settings_, open_, *lister_, news);
    if (!made) return tl::unexpected(std::move(made.error()));
    member_ = std::move(*made);
    settings_.worker = member_->worker();
    member_->on_beat([this] { look_for_unnamed(); });
    return {};
}

result<void> lease_leadership::start() {
    // What cannot be read would be read again for ever.
    member_->store().list_shards(alive_.guard([this](const result<std::vector<shard_row>>& rows) {
        const auto why = rows ? unreadable_in(*rows) : std::optional(rows.error());
        if (why && why->code == errc::corrupt) failed_(*why);
    }));
    return member_->start();
}

void lease_leadership::stop(completion<void> done) {
    stopping_ = true;
    back_.cancel();
    if (away_ && !leaving_) return loop_.post(alive_.guard([done = std::move(done)] { done({}); }));
    if (leaving_) {
        stop_done_ = std::move(done);
        return;
    }
    member_->stop(std::move(done));
}

// The session ends, so that the others share what was held here; it comes back once they had the time.
void lease_leadership::give_way() {
    if (away_ || stopping_) return;
    away_ = leaving_ = true;
    workers_ = 0;
    member_->stop(alive_.guard([this](const result<void>& left) {
        leaving_ = false;
        if (!left) loop_.log().write(log_level::warning, "relay.left", {{"why", left.error().detail}});
        if (stopping_) {
            if (stop_done_) std::exchange(stop_done_, nullptr)(left);
            return;
        }
        back_.set(loop_.now() + settings_.lease, [this] { come_back(); });
    }));
}

void lease_leadership::come_back() {
    auto made = make_member();
    if (made) made = member_->start();
    if (!made) {
        loop_.log().write(log_level::warning, "relay.stays_away", {{"why", made.error().detail}});
        return back_.set(loop_.now() + settings_.lease, [this] { come_back(); });
    }
    away_ = false;
}

// Only what was listed is ever granted.
lease_leadership::place& lease_leadership::at(const shard_id& shard) {
    const auto found =
        std::find_if(places_.begin(), places_.end(), [&](const place& one) { return one.shard == shard; });
    MILLRACE_ASSERT(found != places_.end());
    return *found;
}

void lease_leadership::look_for_unnamed() {
    for (const auto& outbox : unnamed_.look(loop_.now(), member_->group().shards())) {
        loop_.log().write(
            log_level::error,
            "fleet.unknown_outbox",
            {{"outbox", outbox.value()},
             {"detail",
              fmt::format(
                  "nobody serves outbox \"{}\" of the fleet, and this relay was not told of it; name the "
                  "same outboxes, written alike, in every relay of the fleet (one that was taken out on "
                  "purpose may stay so)",
                  outbox.value()
              )}}
        );
    }
}

bool lease_leadership::may_act(std::size_t seat) const {
    const auto& which = places_[seat];
    return which.at->leads() && which.granted && member_->group().may_act(which.shard, *which.granted);
}

// Where the epoch is the lease's, only a new lease brings another.
void lease_leadership::refused(std::size_t seat) {
    auto& which = places_[seat];
    if (which.at->raiser() != nullptr) return which.at->refused(nullptr);
    which.at->refused([this, seat] { release(places_[seat]); });
}

std::optional<mono_time> lease_leadership::raising_since(std::size_t seat) const {
    const auto* raiser = places_[seat].at->raiser();
    return raiser == nullptr ? std::nullopt : raiser->heard().since();
}

std::optional<error> lease_leadership::trouble(std::size_t seat) const {
    const auto* raiser = places_[seat].at->raiser();
    if (raiser != nullptr) {
        if (auto why = raiser->trouble()) return why;
    }
    return away_ ? std::nullopt : member_->trouble();
}

incarnation lease_leadership::other_owner(std::size_t seat) const {
    if (away_) return {};
    for (const auto& view : member_->group().shards()) {
        if (view.row.shard == places_[seat].shard && !view.mine && !view.owner_lapsed) return view.row.owner;
    }
    return {};
}

bool lease_leadership::behind_another(std::size_t seat) const {
    return !other_owner(seat).value().empty();
}

void lease_leadership::name_other(std::size_t seat, std::function<void(const std::string&)> done) {
    auto named = [owner = other_owner(seat), done = std::move(done)](result<std::vector<worker_row>> listed) {
        if (!listed) return;
        for (const auto& one : *listed) {
            if (one.incarnation == owner) return done(one.worker.value());
        }
    };
    member_->store().list_workers(alive_.guard(std::move(named)));
}

void lease_leadership::granted(const lease_grant& grant) {
    auto& which = at(grant.shard);
    which.granted = grant.epoch;
    which.at->chosen(grant.epoch);
}

void lease_leadership::revoke(const shard_id& shard) {
    auto& which = at(shard);
    which.at->retire([this, &which] { release(which); });
}

void lease_leadership::release(place& which) {
    if (!which.granted) return;
    const auto held = *std::exchange(which.granted, std::nullopt);
    member_->group().release(which.shard, held, [this](const result<void>& released) {
        if (released) return;
        loop_.log().write(log_level::warning, "relay.release", {{"why", released.error().detail}});
    });
}

void lease_leadership::lost(const shard_id& shard, const error& why) {
    auto& which = at(shard);
    which.granted.reset();
    which.at->lost(why);
}

void lease_leadership::membership(std::size_t, std::size_t total) {
    workers_ = total;
}

void lease_leadership::failed(const error& why) {
    failed_(why);
}

}  // namespace millrace
