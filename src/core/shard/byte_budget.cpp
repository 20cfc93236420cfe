#include "shard/byte_budget.hpp"

#include "assert.hpp"

#include <algorithm>

namespace millrace {

std::size_t byte_budget::share() const {
    return std::max<std::size_t>(1, limit_ / 2 / std::max<std::size_t>(1, accounts_.size()));
}

std::size_t byte_budget::unused_share(const account& a) const {
    return share() - std::min(share(), a.held);
}

void byte_budget::recount() {
    kept_free_ = 0;
    for (const auto& [who, a] : accounts_)
        kept_free_ += unused_share(a);
}

void byte_budget::set_held(account& a, std::size_t held) {
    kept_free_ -= unused_share(a);
    a.held = held;
    kept_free_ += unused_share(a);
}

byte_budget::member byte_budget::join() {
    const auto who = next_member_++;
    accounts_.emplace(who, account{});
    recount();
    return who;
}

void byte_budget::leave(member who) {
    const auto found = accounts_.find(who);
    if (found == accounts_.end()) return;
    if (found->second.waits) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), who));
    accounts_.erase(found);
    recount();
}

std::size_t byte_budget::grantable(const account& a, std::size_t want) const {
    if (in_use_ == 0) return want;
    const auto free = limit_ - std::min(limit_, in_use_);
    const auto own = unused_share(a);
    const auto others = kept_free_ - own;
    const auto open = free - std::min(free, others);
    const auto most = std::max(share(), limit_ / 4);
    if (want <= open && (a.held == 0 || a.held + want <= most)) return want;
    return a.held == 0 ? std::min({want, own, free}) : 0;
}

std::optional<std::size_t> byte_budget::reserve(member who, std::size_t want) {
    const auto found = accounts_.find(who);
    MILLRACE_ASSERT(found != accounts_.end() && want > 0);
    auto& a = found->second;
    const auto granted = grantable(a, want);
    if (granted == 0) {
        if (!a.waits) waiting_.push_back(who);
        a.waits = true;
        a.wanted = want;
        return std::nullopt;
    }
    if (a.waits) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), who));
    a.waits = false;
    in_use_ += granted;
    set_held(a, a.held + granted);
    return granted;
}

void byte_budget::settle(member who, std::size_t reserved, std::size_t actual) {
    in_use_ += actual;
    if (const auto found = accounts_.find(who); found != accounts_.end())
        set_held(found->second, found->second.held + actual);
    give_back(who, reserved);
}

void byte_budget::give_back(member who, std::size_t bytes) {
    MILLRACE_ASSERT(bytes <= in_use_);
    in_use_ -= bytes;
    const auto found = accounts_.find(who);
    if (found == accounts_.end()) return;
    MILLRACE_ASSERT(bytes <= found->second.held);
    set_held(found->second, found->second.held - bytes);
}

std::optional<byte_budget::member> byte_budget::next() {
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
        auto& a = accounts_.at(*at);
        if (grantable(a, a.wanted) == 0) continue;
        const auto who = *at;
        waiting_.erase(at);
        a.waits = false;
        return who;
    }
    return std::nullopt;
}

}  // namespace millrace
