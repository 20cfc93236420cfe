// Which rows lanes take, and which they put off until these are read again: how the memory for rows in
// trouble stays bounded, however many of them there are.

#include "relay/lanes.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace millrace {

namespace {

constexpr std::string_view every_topic;
constexpr std::size_t barred_bits = std::size_t{1} << 20;
constexpr std::size_t lane_rows_min = 16;

}  // namespace

bool lanes::claims(const outbox_row& row) const {
    if (!topics_.empty() && topics_.find(row.topic) != topics_.end()) return true;
    if (is_paused(row.topic) || is_deferred(row.topic)) return true;
    if ((lanes_.empty() && barred_.empty()) || !row.key) return false;
    return lanes_.find(lane_ref(row)) != lanes_.end() || is_barred(row);
}

lane& lanes::find_or_make(const outbox_row& row, std::uint64_t barrier) {
    const lane_ref ref(row);
    const auto found = lanes_.find(ref);
    if (found != lanes_.end()) return *found->second;
    const auto made = lanes_.emplace(lane_id(ref), nullptr).first;
    made->second = std::make_unique<lane>(made->first, options_.retry_min, options_.retry_max);
    made->second->barrier = barrier;
    blocked_.push_back(made->second.get());
    return *made->second;
}

// A healthy lane must always find room, so lanes in trouble get a share of the window, and no lane all of it.
bool lanes::must_defer(const lane& of, row_id id) const {
    if (!of.empty() && id < of.last_id()) return false;
    const auto lane_full = of.size() >= std::max(lane_rows_min, options_.window_rows / 64);
    return of.deferred || (holds(2) && !of.empty()) || is_full() || lane_full;
}

bool lanes::is_paused(std::string_view topic) const {
    return !paused_.empty() && (paused_.contains(topic) || paused_.contains(every_topic));
}

bool lanes::is_deferred(std::string_view topic) const {
    return !deferred_topics_.empty() &&
           (deferred_topics_.contains(topic) || deferred_topics_.contains(every_topic));
}

// A row without a key has no other to keep from overtaking it.
bool lanes::is_barred(const outbox_row& row) const {
    return !barred_.empty() && row.key && barred_[lane_hash{}(lane_ref(row)) % barred_bits];
}

void lanes::bar(const lane_ref& which) {
    if (which.alone) return;
    if (barred_.empty()) barred_.resize(barred_bits);
    barred_[lane_hash{}(which) % barred_bits] = true;
}

void lanes::defer(row_id id) {
    deferred_from_ = std::min(id, deferred_from_.value_or(id));
}

// A topic in trouble can have any number of lanes: beyond the share, and beside the one that tries it, no
// more are made, and none of them may ask to be read again while nothing can be sent.
bool lanes::must_defer_topic(const outbox_row& row) const {
    if (is_deferred(row.topic)) return true;
    const auto topic = topics_.find(row.topic);
    return topic != topics_.end() && topic->second.scout && holds(2);
}

bool lanes::holds(std::size_t eighths) const noexcept {
    return rows_ >= options_.window_rows * eighths / 8 || bytes_ >= options_.window_bytes / 8 * eighths;
}

bool lanes::is_full() const noexcept {
    return holds(4) && rows_ > 0;
}

bool lanes::wants_rewind() const noexcept {
    if (!deferred_from_ || is_full()) return false;
    return rewind_wanted_ || (!deferred_topics_.empty() && (rows_ == 0 || !holds(1)));
}

bool lanes::hold(troubled_row row, std::uint64_t barrier) {
    const auto id = row.row.id();
    const auto& what = *row.row.row;
    if (is_paused(what.topic)) return false;
    if (lanes_.find(lane_ref(what)) == lanes_.end()) {
        // As of a topic in trouble, any number of lanes can await the same.
        if (must_defer_topic(what) || (row.unready && holds(2))) {
            const bool many = deferred_topics_.size() >= topics_max;
            deferred_topics_.emplace(many ? every_topic : what.topic);
            defer(id);
            return false;
        }
        if (is_full() || is_barred(what)) {
            bar(lane_ref(what));
            defer(id);
            rewind_wanted_ = true;
            return false;
        }
    }
    auto& target = find_or_make(what, barrier);
    if (must_defer(target, id)) {
        target.deferred = true;
        defer(id);
        if (target.empty()) rewind_wanted_ = true;
        return false;
    }
    ++rows_;
    bytes_ += row.row.bytes();
    target.insert(std::move(row));
    if (target.now == lane::state::idle) make_ready(target);
    return true;
}

bool lanes::pause(const std::vector<std::string>& topics) {
    if (topics.empty() && paused_.empty()) return false;
    std::set<std::string, std::less<>> now(topics.begin(), topics.end());
    if (now == paused_) return false;
    paused_.swap(now);
    return true;
}

void lanes::rewound() {
    deferred_from_.reset();
    deferred_topics_.clear();
    rewind_wanted_ = false;
    barred_.clear();
    for (auto& [id, which] : lanes_)
        which->deferred = false;
}

}  // namespace millrace
