#include "relay/lanes.hpp"

#include "assert.hpp"
#include "relay/poison.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace millrace {

namespace {

constexpr std::size_t burials_max = 4;

// No row is to blame for what the outbox refuses, and whoever mends it looks whether it helped.
constexpr nanoseconds burial_retry_max{5'000'000'000};

}  // namespace

void lanes::suspect_topic(std::string_view topic) {
    if (topics_.find(topic) != topics_.end()) return;
    if (topics_.size() >= topics_max)
        std::erase_if(topics_, [](const auto& t) { return !t.second.scout && t.second.waiting.empty(); });
    topics_.emplace(topic, topic_trouble{});
    ++topics_suspected_;
}

lanes::parked_change lanes::set_parked(const std::vector<lane_key>& parked) {
    const std::set<lane_key> listed(parked.begin(), parked.end());
    parked_change result;
    for (auto at = lanes_.begin(); at != lanes_.end();) {
        auto& which = *at->second;
        // A burial under way will say by itself whether the lane still is parked.
        const auto freed =
            which.parked && which.now != lane::state::burying && !listed.contains(at->first.key);
        if (freed) {
            ++result.freed;
            drop_all(which, result.forgotten);
            unqueue(&which);
        }
        at = freed ? lanes_.erase(at) : std::next(at);
    }
    for (const auto& key : parked) {
        const lane_ref ref(key);
        if (!key.key || lanes_.find(ref) != lanes_.end()) continue;
        const auto made = lanes_.emplace(lane_id(ref), nullptr).first;
        made->second = std::make_unique<lane>(made->first, options_.retry_min, options_.retry_max);
        made->second->parked = true;
        made->second->now = lane::state::idle;
        ++result.parked;
    }
    return result;
}

void lanes::make_ready(lane& which) {
    // Burials need no place on probe, so they do not queue for one.
    const auto bury = which.parked && !which.empty();
    which.now = bury ? lane::state::to_bury : lane::state::ready;
    (bury ? to_bury_ : ready_).push_back(&which);
}

void lanes::rest(mono_time now, lane& which, nanoseconds wait) {
    if (which.now != lane::state::burying) which.now = lane::state::resting;
    resting_.emplace(now + wait, &which);
}

void lanes::wake(mono_time now) {
    while (!resting_.empty() && resting_.begin()->first <= now) {
        auto& which = *resting_.begin()->second;
        resting_.erase(resting_.begin());
        if (which.now == lane::state::burying) {
            which.now = lane::state::to_bury;
            to_bury_.push_back(&which);
        } else {
            make_ready(which);
        }
    }
}

lanes::topic_trouble* lanes::trouble_of(const lane& of) {
    const auto found = topics_.find(of.id.key.topic);
    return found == topics_.end() ? nullptr : &found->second;
}

lanes::work lanes::advance(
    mono_time now, const main_channel& main, std::size_t rows_room, std::size_t bytes_room
) {
    work out;
    wake(now);
    while (!blocked_.empty() && main.settled(blocked_.front()->barrier)) {
        make_ready(*blocked_.front());
        blocked_.pop_front();
    }
    while (!need_place_.empty() && !out.stop) {
        auto& next = *need_place_.front();
        need_place_.pop_front();
        if (proceed(next, rows_room, bytes_room, out)) continue;
        need_place_.push_front(&next);
        break;
    }
    // Those that need no place do not wait for one: probe may hold rows that nobody answers.
    while (!ready_.empty() && !out.stop) {
        auto& next = *ready_.front();
        ready_.pop_front();
        if (!proceed(next, rows_room, bytes_room, out)) need_place_.push_back(&next);
    }
    start_burials(now, out);
    return out;
}

// False when the lane must wait for a free place on probe.
bool lanes::proceed(lane& which, std::size_t& rows_room, std::size_t& bytes_room, work& out) {
    if (which.empty()) {
        finish(which);
        return true;
    }
    if (which.parked) {  // a row came while the lane was about to finish
        make_ready(which);
        return true;
    }
    if (is_paused(which.id.key.topic)) {
        release_scout(which);
        drop_all(which, out.paused);
        finish(which);
        return true;
    }
    if (which.front().verdict) {
        convict(which, out);
        return true;
    }
    if (awaits(which)) {
        release_scout(which);
        which.now = lane::state::awaiting;
        awaiting_.push_back(&which);
        return true;
    }
    auto* const topic = trouble_of(which);
    if (!topic && which.suspects == 0) {
        drop_all(which, out.healthy);
        finish(which);
        return true;
    }
    if (topic && topic->scout && topic->scout != &which) {
        which.now = lane::state::waiting;
        topic->waiting.push_back(&which);
        return true;
    }
    const auto row = which.front().row;
    const auto fits = rows_room > 0 && (row.bytes() <= bytes_room || probes_.empty());
    if (!fits || probes_.size() >= options_.probes_in_flight) return false;
    --rows_room;
    bytes_room -= std::min(bytes_room, row.bytes());
    probe_bytes_ += row.bytes();
    which.now = lane::state::probing;
    which.busy = 1;
    probes_.emplace(++last_number_, &which);
    out.probes.push_back({last_number_, row.outgoing()});
    return true;
}

// The first row does. What has come clears the rows that were only suspect for want of it.
bool lanes::awaits(lane& which) {
    if (which.suspects == 0 && !trouble_of(which)) return false;
    if (sink_.awaits(*which.front().row.row)) return true;
    if (!which.front().unready) return false;
    for (auto i = which.head; i < which.rows.size(); ++i) {
        auto& row = which.rows[i];
        if (!row.unready || sink_.awaits(*row.row.row)) continue;
        row.unready = false;
        if (sink_.suspect(*row.row.row)) continue;
        row.suspect = false;
        --which.suspects;
    }
    return false;
}

void lanes::look_again() {
    for (auto* const which : std::exchange(awaiting_, {}))
        make_ready(*which);
    // Of other topics that were put off, this may have come.
    if (!deferred_topics_.empty()) rewind_wanted_ = true;
}

void lanes::convict(lane& which, work& out) {
    if (options_.on_poison == poison_policy::stop) {
        const auto& row = *which.front().row.row;
        out.stop = *which.front().verdict;
        out.stop->detail = fmt::format(
            "row {} (topic \"{}\") can not be delivered and the policy is stop; correct or delete the row, "
            "or choose another policy: {}",
            row.id.value(),
            row.topic,
            which.front().verdict->detail
        );
        ready_.push_front(&which);
        return;
    }
    release_scout(which);
    which.busy = 1;
    which.now = lane::state::to_bury;
    to_bury_.push_back(&which);
}

bury_request lanes::request_for(mono_time now, lane& which, std::size_t& rows) const {
    using condition = bury_request::condition;
    bury_request request;
    request.lane = which.id.key;
    rows = 1;
    if (which.parked) {
        request.when = condition::lane_is_parked;
        request.reason = "lane_is_parked";
        request.detail = "an earlier row of the same topic and key is among the dead letters";
        rows = std::min(which.size(), options_.delete_rows);
    } else {
        const auto& why = *which.front().verdict;
        const auto park = options_.on_poison == poison_policy::park_key && which.id.key.key.has_value();
        request.when = park ? condition::park_lane : condition::none;
        request.reason = which.front().row.row->malformed.empty() ? bury_reason(why) : "malformed_row";
        request.detail = why.detail;
        request.attempts = std::max(1U, which.front().attempts);
        if (which.front().attempts > 0) request.tried_for = now - which.front().first_attempt;
    }
    for (std::size_t i = 0; i < rows; ++i)
        request.rows.push_back(which.rows[which.head + i].row.id());
    return request;
}

void lanes::start_burials(mono_time now, work& out) {
    while (!to_bury_.empty() && burials_.size() < burials_max) {
        auto& which = *to_bury_.front();
        to_bury_.pop_front();
        std::size_t rows = 0;
        auto request = request_for(now, which, rows);
        which.busy = rows;
        which.now = lane::state::burying;
        row_news news{
            request.rows.front(),
            rows,
            request.lane.topic,
            short_hash(which.id),
            request.attempts,
            request.reason,
            request.detail};
        burials_.emplace(++last_number_, job{&which, rows, request.when, std::move(news)});
        out.burials.push_back({last_number_, std::move(request)});
    }
}

lanes::probe_result lanes::probed(
    mono_time now, std::uint64_t random, std::uint64_t number, const result<publish_outcome>& outcome
) {
    probe_result result;
    const auto at = probes_.find(number);
    if (at == probes_.end()) return result;
    auto& which = *at->second;
    probes_.erase(at);
    const auto row = which.front().row;
    probe_bytes_ -= row.bytes();
    which.busy = 0;
    if (const auto* const why = failure_of(outcome, row.id())) {
        if (refused(now, random, which, *why))
            result.retried = row_news{
                row.id(),
                1,
                which.id.key.topic,
                short_hash(which.id),
                which.front().attempts,
                std::string(name_of(why->code)),
                why->detail};
        return result;
    }
    (void)drop_front(which);
    which.wait.reset();
    clear_topic(which.id.key.topic);
    make_ready(which);
    result.published = row;
    return result;
}

// True when the row is tried again, false when it is given up.
bool lanes::refused(mono_time now, std::uint64_t random, lane& which, const error& why) {
    ++rows_retried_;
    const auto verdict = judge(why, true);
    const auto counted = verdict == blame::mends || verdict == blame::guilty;
    const auto of_topic = counted && why.code == errc::refused_topic;
    if (of_topic) suspect_topic(which.id.key.topic);
    if (counted && which.front().attempts++ == 0) which.front().first_attempt = now;
    if (verdict == blame::guilty || (counted && exhausted(which.front().attempts, options_))) {
        which.front().verdict = std::make_shared<const error>(why);
        make_ready(which);
        return false;
    }
    // Also where nobody is to blame: one row is enough to see whether a topic in trouble has mended.
    auto* const topic = of_topic || verdict == blame::none ? trouble_of(which) : nullptr;
    if (topic && topic->scout && topic->scout != &which) {
        which.now = lane::state::waiting;
        topic->waiting.push_back(&which);
        return true;
    }
    if (topic) topic->scout = &which;
    rest(now, which, which.wait.next(random));
    return true;
}

void lanes::clear_topic(const std::string& topic) {
    const auto found = topics_.find(topic);
    if (found == topics_.end()) return;
    for (auto* const waiting : found->second.waiting)
        make_ready(*waiting);
    topics_.erase(found);
}

void lanes::release_scout(lane& which) {
    auto* const topic = trouble_of(which);
    if (!topic || topic->scout != &which) return;
    topic->scout = nullptr;
    for (auto* const waiting : std::exchange(topic->waiting, {}))
        make_ready(*waiting);
}

lanes::bury_result lanes::buried(
    mono_time now, std::uint64_t random, std::uint64_t number, const result<void>& outcome
) {
    bury_result result;
    const auto at = burials_.find(number);
    if (at == burials_.end()) return result;
    const auto [which, rows, when, news] = std::move(at->second);
    burials_.erase(at);
    if (outcome) {
        for (std::size_t i = 0; i < rows; ++i)
            result.gone.push_back(drop_front(*which));
        result.news = news;
        result.parked = !which->parked && when == bury_request::condition::park_lane;
        which->parked = which->parked || result.parked;
        which->wait.reset();
        make_ready(*which);
    } else if (outcome.error().code == errc::conflict && when == bury_request::condition::lane_is_parked) {
        result.news = news;
        result.unparked = true;
        drop_all(*which, result.forgotten);
        lanes_.erase(lanes_.find(which->id.ref()));
    } else {
        result.trouble = outcome.error();
        rest(now, *which, std::min(which->wait.next(random), burial_retry_max));
    }
    return result;
}

void lanes::finish(lane& which) {
    which.now = lane::state::idle;
    if (which.deferred) rewind_wanted_ = true;
    if (which.parked) return;
    if (which.deferred) bar(which.id.ref());
    lanes_.erase(lanes_.find(which.id.ref()));
}

held_row lanes::drop_front(lane& which) {
    const auto row = which.pop_front().row;
    --rows_;
    bytes_ -= row.bytes();
    return row;
}

void lanes::drop_all(lane& which, std::vector<held_row>& into) {
    while (!which.empty())
        into.push_back(drop_front(which));
}

void lanes::unqueue(const lane* which) {
    std::erase(ready_, which);
    std::erase(need_place_, which);
    std::erase(awaiting_, which);
    std::erase(to_bury_, which);
    std::erase_if(resting_, [which](const auto& entry) { return entry.second == which; });
}

void lanes::clear() {
    lanes_.clear();
    topics_.clear();
    blocked_.clear();
    ready_.clear();
    need_place_.clear();
    awaiting_.clear();
    to_bury_.clear();
    resting_.clear();
    probes_.clear();
    burials_.clear();
    rows_ = 0;
    bytes_ = 0;
    probe_bytes_ = 0;
    deferred_from_.reset();
    deferred_topics_.clear();
    barred_.clear();
    paused_.clear();
    rewind_wanted_ = false;
}

std::size_t lanes::rows_awaiting() const noexcept {
    std::size_t rows = 0;
    for (const auto* const which : awaiting_)
        rows += which->size();
    return rows;
}

mono_time lanes::due() const noexcept {
    return resting_.empty() ? mono_time::max() : resting_.begin()->first;
}

void lanes::each_waiting(std::vector<held_row*>& into) {
    for (auto& [id, which] : lanes_) {
        for (auto i = which->head; i < which->rows.size(); ++i)
            into.push_back(&which->rows[i].row);
    }
}

}  // namespace millrace
