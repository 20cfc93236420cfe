#include "seat.hpp"

#include "adapters.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr nanoseconds pause_min = std::chrono::milliseconds{100};
constexpr nanoseconds pause_max = std::chrono::seconds{10};

// Who has led for so long was refused for a reason that is over.
constexpr nanoseconds settled_after = std::chrono::seconds{30};

}  // namespace

seat::seat(host& loop, seat_holder& holder, std::unique_ptr<lease_store> raise_in)
    : loop_(loop), holder_(holder), store_(std::move(raise_in)), wait_(pause_min, pause_max), again_(loop) {
    if (!store_) return;
    raiser_ = std::make_unique<epoch_raiser>(
        loop, *store_, shard_id{outbox_group}, incarnation{fmt::format("elsewhere-{:016x}", loop.random())}
    );
}

void seat::chosen(epoch by_lease) {
    by_lease_ = by_lease;
    raise();
}

void seat::raise() {
    if (!raiser_) return lead(by_lease_);
    state_ = state::raising;
    raiser_->raise([this](epoch mine) { lead(mine); });
}

void seat::lead(epoch mine) {
    state_ = state::led;
    led_since_ = loop_.now();
    holder_.lead(mine);
}

void seat::retire(std::function<void()> done) {
    const bool led = state_ == state::led;
    if (state_ == state::retiring) return;
    if (raiser_) raiser_->cancel();
    again_.cancel();
    turn_.renew();
    if (!led) {
        state_ = state::free;
        return done();
    }
    state_ = state::retiring;
    holder_.give_back(turn_.guard([this, done = std::move(done)] {
        state_ = state::free;
        done();
    }));
}

void seat::lost(const error& why) {
    const bool led = leads();
    if (raiser_) raiser_->cancel();
    again_.cancel();
    turn_.renew();
    state_ = state::free;
    if (led) holder_.lost(why);
}

void seat::refused(std::function<void()> again) {
    if (!leads()) return;
    const bool retiring = state_ == state::retiring;
    if (loop_.now() - led_since_ >= settled_after) wait_.reset();
    if (retiring) return;  // the drain under way ends by itself
    state_ = state::refused;
    again_.set(loop_.now() + wait_.next(loop_.random()), [this, again = std::move(again)] {
        if (again) return again();
        raise();
    });
}

}  // namespace millrace
