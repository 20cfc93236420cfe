#include "relay/main_channel.hpp"

#include "relay/poison.hpp"

#include <algorithm>
#include <iterator>

namespace millrace {

namespace {

[[nodiscard]] bool by_id(const held_row& a, const held_row& b) {
    return a.id() < b.id();
}

}  // namespace

main_channel::main_channel(const relay_options& options)
    : remember_stops_(2 * options.retry_max), wait_(options.retry_min, options.retry_max) {}

void main_channel::queue(std::span<const held_row> rows) {
    if (rows.empty()) return;
    const auto in_order = waiting_.empty() || waiting_.back().id() < rows.front().id();
    const auto old_size = static_cast<std::ptrdiff_t>(waiting_.size());
    waiting_.insert(waiting_.end(), rows.begin(), rows.end());
    if (!in_order) std::inplace_merge(waiting_.begin(), waiting_.begin() + old_size, waiting_.end(), by_id);
}

std::optional<main_channel::request> main_channel::next(
    mono_time now, const event_sink::capacity& limits, std::size_t rows_room, std::size_t bytes_room
) {
    if (state_ != state::open || waiting_.empty() || now < not_before_) return std::nullopt;
    if (flying_.size() >= limits.requests_in_flight_max) return std::nullopt;
    rows_room = std::min(rows_room, limits.request_rows_max);
    // A row larger than any limit goes alone: the sink judges it.
    auto bytes = waiting_.front().bytes();
    if (rows_room == 0 || (bytes > bytes_room && bytes_in_flight_ > 0)) return std::nullopt;
    bytes_room = std::min(bytes_room, limits.request_bytes_max);
    std::size_t count = 1;
    while (count < waiting_.size() && count < rows_room) {
        const auto more = waiting_[count].bytes();
        if (bytes + more > bytes_room) break;
        bytes += more;
        ++count;
    }
    auto& sent = flying_.emplace_back();
    sent.number = ++last_request_;
    sent.count = count;
    sent.bytes = bytes;
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
    sent.rows.assign(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    rows_in_flight_ += count;
    bytes_in_flight_ += bytes;

    request out{sent.number, {}};
    out.rows.reserve(count);
    for (const auto& row : sent.rows)
        out.rows.push_back(row.outgoing());
    return out;
}

std::vector<held_row> main_channel::published(std::uint64_t number, result<publish_outcome> outcome) {
    const auto at = std::lower_bound(
        flying_.begin(), flying_.end(), number, [](const flight& f, std::uint64_t n) { return f.number < n; }
    );
    std::vector<held_row> acknowledged;
    if (at == flying_.end() || at->number != number || at->done) return acknowledged;
    if (!outcome) {
        const auto alone = at->rows.size() == 1;
        for (const auto& row : at->rows)
            fail_row(row, outcome.error(), alone, false);
    } else if (outcome->failures.empty()) {
        acknowledged = std::move(at->rows);
    } else {
        fail_rows(*at, std::move(outcome->failures), acknowledged);
    }
    if (!acknowledged.empty() && state_ == state::open) {
        wait_.reset();
        trouble_.reset();
    }
    at->done = true;
    at->rows.clear();
    rows_in_flight_ -= at->count;
    bytes_in_flight_ -= at->bytes;
    while (!flying_.empty() && flying_.front().done)
        flying_.pop_front();
    return acknowledged;
}

void main_channel::fail_rows(
    const flight& of, std::vector<row_failure> failures, std::vector<held_row>& acknowledged
) {
    const auto lower = [](const row_failure& a, const row_failure& b) { return a.id < b.id; };
    if (!std::is_sorted(failures.begin(), failures.end(), lower))
        std::sort(failures.begin(), failures.end(), lower);
    auto next = failures.cbegin();
    for (const auto& row : of.rows) {
        while (next != failures.cend() && next->id < row.id())
            ++next;
        if (next == failures.cend() || next->id != row.id()) {
            acknowledged.push_back(row);
        } else {
            fail_row(row, next->why, !next->shared_blame, next->of_topic);
        }
    }
}

void main_channel::fail_row(held_row row, const error& why, bool alone, bool of_topic) {
    if (state_ == state::open) state_ = state::to_reset;
    if (judge(why, alone) == blame::none) {
        untried_.push_back(row);
        if (why.code != errc::purged) trouble_ = why;
        if (of_topic && stoppers_.find(row.row->topic) == stoppers_.end()) stoppers_.emplace(row.row->topic);
    } else {
        refused_.push_back({row, why, alone});
    }
}

// Once may be chance; a topic that stops the channel again would stop it for all, again and again.
void main_channel::judge_stoppers(mono_time now) {
    constexpr std::size_t topics_max = 1'000;
    std::erase_if(stopped_by_, [&](const auto& s) { return now - s.second.latest > remember_stops_; });
    for (const auto& topic : std::exchange(stoppers_, {})) {
        if (stopped_by_.size() >= topics_max) stopped_by_.clear();
        auto& known = stopped_by_[topic];
        known.latest = now;
        if (++known.count > 1) unwell_.push_back(topic);
    }
}

bool main_channel::take_reset(mono_time now) {
    if (state_ != state::to_reset || now < not_before_) return false;
    state_ = state::resetting;
    resetting_probes_ = probes_;
    return true;
}

void main_channel::reset_done(mono_time now, std::uint64_t random, const result<void>& outcome) {
    if (state_ != state::resetting) return;
    if (outcome) {
        if (resetting_probes_) probes_ = false;
        state_ = probes_ ? state::to_reset : state::reset;
        return;
    }
    state_ = state::to_reset;
    trouble_ = outcome.error();
    not_before_ = now + wait_.next(random);
}

std::optional<std::vector<main_channel::refused_row>> main_channel::reopen(
    mono_time now, std::uint64_t random
) {
    if (state_ != state::reset || in_flight()) return std::nullopt;
    state_ = state::open;
    judge_stoppers(now);
    rows_retried_ += untried_.size();
    // Without a row to blame, an immediate retry would meet the same fault.
    not_before_ = refused_.empty() && !untried_.empty() ? now + wait_.next(random) : now;
    std::sort(untried_.begin(), untried_.end(), by_id);
    queue(untried_);
    untried_.clear();
    auto refused = std::exchange(refused_, {});
    std::sort(refused.begin(), refused.end(), [](const refused_row& a, const refused_row& b) {
        return by_id(a.row, b.row);
    });
    return refused;
}

void main_channel::clear(bool probes) {
    if (state_ == state::open && in_flight()) state_ = state::to_reset;
    if (probes) {
        probes_ = true;
        resetting_probes_ = false;  // a reset under way may be older than the probes
        if (state_ != state::resetting) state_ = state::to_reset;
    }
    waiting_.clear();
    flying_.clear();
    untried_.clear();
    refused_.clear();
    stoppers_.clear();
    unwell_.clear();
    rows_in_flight_ = 0;
    bytes_in_flight_ = 0;
    trouble_.reset();
    wait_.reset();
    not_before_ = {};
}

bool main_channel::settled(std::uint64_t number) const noexcept {
    return state_ == state::open && (flying_.empty() || flying_.front().number > number);
}

mono_time main_channel::due() const noexcept {
    const auto waits = state_ == state::to_reset || (state_ == state::open && !waiting_.empty());
    return waits ? not_before_ : mono_time::max();
}

void main_channel::each_waiting(std::vector<held_row*>& into) {
    for (auto& row : waiting_)
        into.push_back(&row);
}

}  // namespace millrace
