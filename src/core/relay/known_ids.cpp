#include "relay/known_ids.hpp"

#include "assert.hpp"

#include <algorithm>

namespace millrace {

std::deque<known_ids::entry>::const_iterator known_ids::find(row_id id) const {
    return std::lower_bound(entries_.begin(), entries_.end(), id, [](const entry& e, row_id wanted) {
        return e.id < wanted;
    });
}

void known_ids::add(row_id id) {
    if (entries_.empty() || entries_.back().id < id) {
        entries_.push_back({id});
        return;
    }
    const auto at = entries_.begin() + (find(id) - entries_.cbegin());
    if (at->id != id) {
        entries_.insert(at, {id});
        return;
    }
    MILLRACE_ASSERT(at->gone);
    at->gone = false;
    --gone_;
}

void known_ids::remove(row_id id) {
    const auto at = entries_.begin() + (find(id) - entries_.cbegin());
    if (at == entries_.end() || at->id != id || at->gone) return;
    at->gone = true;
    ++gone_;
    while (!entries_.empty() && entries_.front().gone) {
        entries_.pop_front();
        --gone_;
    }
    constexpr std::size_t worth_compacting = 1024;
    if (gone_ > worth_compacting && gone_ > entries_.size() / 2) {
        std::erase_if(entries_, [](const entry& e) { return e.gone; });
        gone_ = 0;
    }
}

std::vector<row_id> known_ids::lowest(std::size_t most) const {
    std::vector<row_id> ids;
    for (auto at = entries_.begin(); at != entries_.end() && ids.size() < most; ++at) {
        if (!at->gone) ids.push_back(at->id);
    }
    return ids;
}

std::optional<row_id> known_ids::first_above(row_id id) const {
    for (auto at = find(id); at != entries_.end(); ++at) {
        if (!at->gone && at->id > id) return at->id;
    }
    return std::nullopt;
}

void known_ids::clear() {
    entries_.clear();
    gone_ = 0;
}

bool known_ids::contains(row_id id) const {
    const auto at = find(id);
    return at != entries_.end() && at->id == id && !at->gone;
}

}  // namespace millrace
