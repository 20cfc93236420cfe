#include "group_leadership.hpp"

#include <utility>

namespace millrace {

result<std::unique_ptr<group_leadership>> group_leadership::make(
    host& loop, std::unique_ptr<group_leader> leader, std::vector<seat_setup> seats
) {
    std::unique_ptr<group_leadership> made(new group_leadership(loop, std::move(leader)));
    for (auto& one : seats) {
        auto store = one.raise_in(loop);
        if (!store) return tl::unexpected(std::move(store.error()));
        made->seats_.push_back(std::make_unique<seat>(loop, *one.holder, std::move(*store)));
    }
    return made;
}

bool group_leadership::may_act(std::size_t seat) const {
    return seats_[seat]->leads() && loop_.now() < leader_->deadline();
}

std::optional<mono_time> group_leadership::raising_since(std::size_t seat) const {
    return seats_[seat]->raiser()->heard().since();
}

std::optional<error> group_leadership::trouble(std::size_t seat) const {
    if (auto why = seats_[seat]->raiser()->trouble()) return why;
    return leader_->trouble();
}

/// The group's protocol tells a member whether it is chosen, and nothing of the others but that they are
/// there.
bool group_leadership::behind_another(std::size_t seat) const {
    return leader_->joined() && leader_->others_wait() && !seats_[seat]->leads();
}

void group_leadership::name_other(std::size_t, std::function<void(const std::string&)> done) {
    loop_.post(turn_.guard([done = std::move(done)] { done("another member of the group"); }));
}

void group_leadership::chosen() {
    turn_.renew();
    for (const auto& one : seats_)
        one->chosen(epoch{});
}

void group_leadership::retire() {
    draining_ = seats_.size();
    for (const auto& one : seats_) {
        one->retire(turn_.guard([this] {
            if (--draining_ == 0) leader_->drained();
        }));
    }
}

void group_leadership::lost(const error& why) {
    turn_.renew();
    for (const auto& one : seats_)
        one->lost(why);
}

}  // namespace millrace
