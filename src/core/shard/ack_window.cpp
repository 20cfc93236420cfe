#include "shard/ack_window.hpp"

#include "assert.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace millrace {

namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t all_bits = ~std::uint64_t{0};

/// Calls `what(word, mask)` for each word that the bits from..to (inclusive) touch.
template <class F>
void each_word(std::uint64_t from, std::uint64_t to, F what) {
    for (auto word = from / word_bits; word <= to / word_bits; ++word) {
        auto mask = all_bits;
        if (word == from / word_bits) mask &= all_bits << (from % word_bits);
        if (word == to / word_bits) mask &= all_bits >> (word_bits - 1 - to % word_bits);
        what(static_cast<std::size_t>(word), mask);
    }
}

std::uint64_t ones(std::uint64_t word) {
    return static_cast<std::uint64_t>(std::popcount(word));
}

}  // namespace

void ack_window::push(std::shared_ptr<const record_batch> batch) {
    if (batch->records().empty()) return;
    const auto first = end_;
    end_ += batch->records().size();
    segments_.push_back({first, end_, std::move(batch), {}});
}

std::size_t ack_window::segment_of(index i) const {
    MILLRACE_ASSERT(!segments_.empty() && i >= segments_.front().first && i < end_);
    const auto after = std::upper_bound(segments_.begin(), segments_.end(), i, [](index x, const segment& s) {
        return x < s.first;
    });
    return static_cast<std::size_t>(after - segments_.begin()) - 1;
}

ack_window::place ack_window::at(index i) const {
    const auto& s = segments_[segment_of(i)];
    return {s.batch, static_cast<std::size_t>(i - s.first)};
}

std::uint64_t ack_window::set_bits(index first, index last) {
    std::uint64_t fresh = 0;
    for (auto n = segment_of(first); n < segments_.size() && segments_[n].first <= last; ++n) {
        auto& s = segments_[n];
        if (s.bits.empty()) s.bits.resize((s.batch->records().size() + word_bits - 1) / word_bits);
        const auto from = std::max(first, s.first) - s.first;
        const auto to = std::min(last, s.end - 1) - s.first;
        each_word(from, to, [&](std::size_t word, std::uint64_t mask) {
            fresh += ones(mask & ~s.bits[word]);
            s.bits[word] |= mask;
        });
    }
    return fresh;
}

std::uint64_t ack_window::count_bits(index first, index last) const {
    std::uint64_t set = 0;
    for (auto n = segment_of(first); n < segments_.size() && segments_[n].first <= last; ++n) {
        const auto& s = segments_[n];
        if (s.bits.empty()) continue;
        const auto from = std::max(first, s.first) - s.first;
        const auto to = std::min(last, s.end - 1) - s.first;
        each_word(from, to, [&](std::size_t word, std::uint64_t mask) { set += ones(s.bits[word] & mask); });
    }
    return set;
}

bool ack_window::acknowledged(index i) const {
    return i < low_ || (i < end_ && next_unacknowledged(i) != i);
}

ack_window::index ack_window::next_unacknowledged(index from) const {
    auto i = std::max(from, low_);
    if (i >= end_) return end_;
    if (ahead_ == 0) return i;
    for (auto n = segment_of(i); n < segments_.size(); ++n) {
        const auto& s = segments_[n];
        if (s.bits.empty()) return i;
        while (i < s.end) {
            const auto bit = i - s.first;
            const auto rest = s.bits[static_cast<std::size_t>(bit / word_bits)] >> (bit % word_bits);
            const auto run = static_cast<std::uint64_t>(std::countr_one(rest));
            i += run;
            if (run < word_bits - bit % word_bits) break;
        }
        if (i < s.end) return i;
        i = s.end;
    }
    return end_;
}

void ack_window::advance_low(index to) {
    const auto& s = segments_[segment_of(to - 1)];
    const auto& last = s.batch->records()[static_cast<std::size_t>(to - 1 - s.first)];
    reached_ = checkpoint{last.position, last.arrival};
    low_ = to;
    while (!segments_.empty() && segments_.front().end <= low_)
        segments_.pop_front();
}

std::uint64_t ack_window::acknowledge(index first, index last) {
    if (low_ == end_ || first >= end_ || last < low_ || last < first) return 0;
    first = std::max(first, low_);
    last = std::min(last, end_ - 1);
    if (first > low_) {
        const auto fresh = set_bits(first, last);
        ahead_ += fresh;
        return fresh;
    }
    auto to = last + 1;
    const auto had = ahead_ == 0 ? 0 : count_bits(first, last);
    ahead_ -= had;
    if (ahead_ > 0) {
        const auto reached = next_unacknowledged(to);
        ahead_ -= reached - to;
        to = reached;
    }
    advance_low(to);
    return last + 1 - first - had;
}

std::uint64_t ack_window::acknowledge_up_to(const position& last) {
    const auto later = [](const position& p, const record& r) { return p < r.position; };
    // The first batch that begins beyond the position; the one before it may hold records of both sides.
    const auto beyond = std::partition_point(segments_.begin(), segments_.end(), [&](const segment& s) {
        return s.batch->records().front().position <= last;
    });
    if (beyond == segments_.begin()) return 0;
    const auto& s = *std::prev(beyond);
    const auto records = s.batch->records();
    const auto end = std::upper_bound(records.begin(), records.end(), last, later) - records.begin();
    return acknowledge(low_, s.first + static_cast<index>(end) - 1);
}

void ack_window::truncate(index from) {
    from = std::max(from, low_);
    if (from >= end_) return;
    MILLRACE_ASSERT(ahead_ == 0 || count_bits(from, end_ - 1) == 0);
    while (!segments_.empty() && segments_.back().first >= from)
        segments_.pop_back();
    if (!segments_.empty()) segments_.back().end = std::min(segments_.back().end, from);
    end_ = from;
}

}  // namespace millrace
