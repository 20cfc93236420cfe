#include "relay/gaps.hpp"

#include "assert.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace millrace {

namespace {

const auto lowest = row_id{std::numeric_limits<std::int64_t>::min()};

[[nodiscard]] row_id before(row_id id) {
    return row_id{id.value() - 1};
}

[[nodiscard]] row_id after(row_id id) {
    return row_id{id.value() + 1};
}

// How many ids lie between two gaps; unsigned, because ids may be as far apart as 64 bits allow.
[[nodiscard]] std::uint64_t between(const id_range& low, const id_range& high) {
    return static_cast<std::uint64_t>(high.first.value()) - static_cast<std::uint64_t>(low.last.value()) - 1;
}

}  // namespace

void writer_watch::observe(std::uint64_t round, std::span<const std::uint64_t> writers) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> now;
    now.reserve(writers.size());
    cleared_below_ = round + 1;
    for (const auto writer : writers) {
        const auto known =
            std::lower_bound(since_.begin(), since_.end(), std::pair{writer, std::uint64_t{0}});
        const auto seen = known != since_.end() && known->first == writer ? known->second : round;
        now.emplace_back(writer, seen);
        cleared_below_ = std::min(cleared_below_, seen);
    }
    std::sort(now.begin(), now.end());
    since_ = std::move(now);
}

void writer_watch::clear() {
    since_.clear();
    cleared_below_ = 0;
}

std::size_t gap_set::at_or_above(row_id id) const {
    const auto at = std::lower_bound(gaps_.begin(), gaps_.end(), id, [](const gap& g, row_id wanted) {
        return g.ids.last < wanted;
    });
    return static_cast<std::size_t>(at - gaps_.begin());
}

void gap_set::append(id_range ids) {
    MILLRACE_ASSERT(ids.first <= ids.last && (gaps_.empty() || gaps_.back().ids.last < ids.first));
    gaps_.push_back({ids});
}

void gap_set::writers_seen(std::uint64_t round) {
    for (auto& g : gaps_) {
        if (g.round == no_round) g.round = round;
    }
}

void gap_set::revive_up_to(row_id last, std::uint64_t round) {
    const auto next = at_or_above(last);
    const auto straddles = next < gaps_.size() && gaps_[next].ids.first <= last;
    if (straddles) last = gaps_[next].ids.last;
    const auto end = gaps_.begin() + static_cast<std::ptrdiff_t>(next + (straddles ? 1 : 0));
    gaps_.erase(gaps_.begin(), end);
    gaps_.insert(gaps_.begin(), {{lowest, last}, round});
    merged_ = true;
    count_kept();
}

void gap_set::revive(id_range ids) {
    const auto begin = gaps_.begin() + static_cast<std::ptrdiff_t>(at_or_above(ids.first));
    auto end = begin;
    for (; end != gaps_.end() && end->ids.first <= ids.last; ++end)
        ids = {std::min(ids.first, end->ids.first), std::max(ids.last, end->ids.last)};
    gaps_.insert(gaps_.erase(begin, end), {ids});
    merged_ = true;
    count_kept();
}

bool gap_set::cut_from(row_id id) {
    const auto at = gaps_.begin() + static_cast<std::ptrdiff_t>(at_or_above(id));
    if (at == gaps_.end() || at->ids.first > id) return false;
    if (at->ids.first == id) {
        gaps_.erase(at);
    } else {
        at->ids.last = before(id);
    }
    return true;
}

void gap_set::keep_behind(row_id last, row_id end) {
    drop_kept();
    if (last >= end) return;
    auto first = after(last);
    auto next = at_or_above(first);
    if (next < gaps_.size() && gaps_[next].ids.first <= first) {
        if (gaps_[next].ids.last >= end) return;
        first = after(gaps_[next++].ids.last);
    }
    const auto ids = static_cast<std::uint64_t>(end.value()) - static_cast<std::uint64_t>(first.value()) + 1;
    if (ids > kept_max) end = row_id{first.value() + static_cast<std::int64_t>(kept_max) - 1};
    if (next < gaps_.size()) end = std::min(end, before(gaps_[next].ids.first));
    if (first > end) return;
    gaps_.insert(gaps_.begin() + static_cast<std::ptrdiff_t>(next), {{first, end}, never_dead});
    kept_ = 1;
}

void gap_set::drop_kept() {
    if (kept_ == 0) return;
    std::erase_if(gaps_, [](const gap& g) { return g.round == never_dead; });
    kept_ = 0;
}

void gap_set::count_kept() {
    const auto is_kept = [](const gap& g) { return g.round == never_dead; };
    kept_ = std::any_of(gaps_.begin(), gaps_.end(), is_kept) ? 1 : 0;
}

void gap_set::cut_above(row_id last) {
    while (!gaps_.empty() && gaps_.back().ids.first > last)
        gaps_.pop_back();
    if (!gaps_.empty()) gaps_.back().ids.last = std::min(gaps_.back().ids.last, last);
    count_kept();
}

gap_set::filled gap_set::fill(row_id id) {
    const auto index = at_or_above(id);
    if (index == gaps_.size() || gaps_[index].ids.first > id) return filled::no;
    auto& hit = gaps_[index];
    const bool kept = hit.round == never_dead;
    if (hit.ids.first == id && hit.ids.last == id) {
        gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(index));
    } else if (hit.ids.first == id) {
        hit.ids.first = after(id);
    } else if (hit.ids.last == id) {
        hit.ids.last = before(id);
        if (kept) hit.round = no_round;
    } else {
        const auto upper = gap{{after(id), hit.ids.last}, hit.round};
        hit.ids.last = before(id);
        if (kept) hit.round = no_round;  // what was skipped is a gap like any other
        gaps_.insert(gaps_.begin() + static_cast<std::ptrdiff_t>(index) + 1, upper);
    }
    if (!kept) return filled::gap;
    count_kept();
    return filled::kept;
}

void gap_set::drop_dead(id_range probed, std::uint64_t cleared_below) {
    std::erase_if(gaps_, [&](const gap& g) {
        return g.round < cleared_below && g.ids.first >= probed.first && g.ids.last <= probed.last;
    });
    if (empty()) merged_ = false;
}

void gap_set::enforce_limit() {
    if (gaps_.size() <= limit_) return;
    drop_kept();
    if (gaps_.size() <= limit_) return;
    // To three quarters, so that the next gap does not merge again; rounded so that a limit of 1 works.
    const auto excess = gaps_.size() - std::max<std::size_t>(1, limit_ - limit_ / 4);
    std::vector<std::uint64_t> distances;
    distances.reserve(gaps_.size() - 1);
    for (std::size_t i = 1; i < gaps_.size(); ++i)
        distances.push_back(between(gaps_[i - 1].ids, gaps_[i].ids));
    const auto nth = distances.begin() + static_cast<std::ptrdiff_t>(excess) - 1;
    std::nth_element(distances.begin(), nth, distances.end());
    const auto near = *nth;

    std::vector<gap> kept;
    kept.reserve(gaps_.size());
    auto merges = excess;
    for (const auto& g : gaps_) {
        if (merges > 0 && !kept.empty() && between(kept.back().ids, g.ids) <= near) {
            kept.back().ids.last = g.ids.last;
            kept.back().round = std::max(kept.back().round, g.round);
            --merges;
        } else {
            kept.push_back(g);
        }
    }
    gaps_ = std::move(kept);
    merged_ = true;
}

void gap_set::clear() {
    gaps_.clear();
    kept_ = 0;
    merged_ = false;
}

bool gap_set::contains(row_id id) const {
    const auto index = at_or_above(id);
    return index < gaps_.size() && gaps_[index].ids.first <= id;
}

bool gap_set::keeps(row_id id) const {
    const auto index = at_or_above(id);
    return index < gaps_.size() && gaps_[index].ids.first <= id && gaps_[index].round == never_dead;
}

std::optional<row_id> gap_set::first() const {
    for (const auto& g : gaps_) {
        if (g.round != never_dead) return g.ids.first;
    }
    return std::nullopt;
}

std::vector<id_range> gap_set::ranges(row_id from) const {
    std::vector<id_range> ranges;
    ranges.reserve(gaps_.size());
    for (auto i = at_or_above(from); i < gaps_.size(); ++i)
        ranges.push_back({std::max(gaps_[i].ids.first, from), gaps_[i].ids.last});
    return ranges;
}

}  // namespace millrace
