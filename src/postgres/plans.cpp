#include "plans.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

bool same_types(const plans::plan& kept, const statement& what) {
    if (kept.types.size() != what.parameters()) return false;
    for (std::size_t i = 0; i < kept.types.size(); ++i) {
        if (kept.types[i] != what.at(i).type) return false;
    }
    return true;
}

}  // namespace

void plans::decide(bool may_keep) {
    may_keep_ = may_keep ? answer::yes : answer::no;
    if (may_keep) return;
    // What the server keeps may be of other clients.
    all_.clear();
    stale_ = false;
}

bool plans::must_clear() {
    if (all_.size() >= plans_max) forget();
    return std::exchange(stale_, false);
}

plans::plan* plans::of(const statement& what) {
    if (may_keep_ != answer::yes || !what.keeps_plan()) return nullptr;
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) {
        return one->sql == what.sql() && same_types(*one, what);
    });
    if (found != all_.end()) return found->get();
    auto made = std::make_unique<plan>();
    made->name = fmt::format("millrace_{}", ++made_);
    made->sql = what.sql();
    for (std::size_t i = 0; i < what.parameters(); ++i)
        made->types.push_back(what.at(i).type);
    return all_.emplace_back(std::move(made)).get();
}

void plans::forget() {
    stale_ = stale_ || !all_.empty();
    all_.clear();
}

bool is_about_plan(std::string_view sqlstate) noexcept {
    // "cached plan must not change result type", which says feature_not_supported
    return sqlstate == "0A000" || shows_pooler(sqlstate);
}

bool shows_pooler(std::string_view sqlstate) noexcept {
    return sqlstate == "26000" || sqlstate == "42P05";  // no such statement; it is there already
}

}  // namespace millrace::postgres
