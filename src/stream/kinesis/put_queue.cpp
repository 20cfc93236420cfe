#include "put_queue.hpp"

#include "assert.hpp"
#include "put_entry.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace millrace {

namespace {

error purged() {
    return {
        errc::purged,
        retry_advice::now,
        false,
        "not tried: an earlier row of this channel was refused; send it again after a reset"};
}

std::size_t bytes_of(const outbox_row& row) {
    return row.key.value_or("").size() + row.value.value_or("").size() + kinesis_record_overhead;
}

}  // namespace

nanoseconds put_queue::pause_after(std::uint32_t attempts, std::uint64_t random) const {
    const auto doubled = options_.retry_min * (std::int64_t{1} << std::min(attempts, 20U) >> 1U);
    const auto ceiling = std::min(doubled, options_.retry_max);
    return nanoseconds{1 + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(ceiling.count()))};
}

void put_queue::add(
    request_id request, outgoing_row row, std::string_view stream, std::vector<settled>& out
) {
    item one{std::move(row), request, ++last_ticket_, 0, {}, 0};
    if (stopped_behind_) return out.push_back({std::move(one), purged(), false});
    if (one.row.row->key) one.key = std::hash<std::string_view>{}(*one.row.row->key);
    auto found = streams_.find(stream);
    if (found == streams_.end()) {
        stream_state fresh{};
        fresh.calls_allowed = std::min(options_.calls_at_first, options_.calls_in_flight_max);
        fresh.records_allowed = options_.call_records_max;
        fresh.bytes_allowed = options_.call_bytes_max;
        found = streams_.emplace(stream, std::move(fresh)).first;
    }
    found->second.waiting.push_back(std::move(one));
}

void put_queue::refuse(request_id request, outgoing_row row, error why, std::vector<settled>& out) {
    item one{std::move(row), request, ++last_ticket_, 0, {}, 0};
    if (stopped_behind_) return out.push_back({std::move(one), purged(), false});
    fail(std::move(one), std::move(why), out);
}

void put_queue::fail(item what, error why, std::vector<settled>& out, bool of_stream) {
    const auto ticket = what.ticket;
    out.push_back({std::move(what), std::move(why), of_stream});
    purge_behind(ticket, out);
}

void put_queue::purge_behind(std::uint64_t ticket, std::vector<settled>& out) {
    if (stopped_behind_ && *stopped_behind_ <= ticket) return;
    stopped_behind_ = ticket;
    for (auto& [name, state] : streams_)
        purge(state, ticket, out);
}

void put_queue::purge(stream_state& which, std::uint64_t behind, std::vector<settled>& out) {
    const auto goes = [&](const item& one) { return one.ticket > behind; };
    for (auto& one : which.waiting)
        if (goes(one)) out.push_back({std::move(one), purged(), false});
    std::erase_if(which.waiting, goes);
    for (auto& one : which.rests) {
        if (!goes(one.what)) continue;
        if (one.what.row.row->key) which.blocked.erase(one.what.key);
        out.push_back({std::move(one.what), purged(), false});
    }
    std::erase_if(which.rests, [&](const resting& one) { return goes(one.what); });
}

void put_queue::wake(mono_time now, stream_state& which) {
    // Back to the front: what is behind in their keys was held back.
    for (auto& one : which.rests) {
        if (one.until > now) continue;
        if (one.what.row.row->key) which.blocked.erase(one.what.key);
        which.waiting.push_front(std::move(one.what));
    }
    std::erase_if(which.rests, [&](const resting& one) { return one.until <= now; });
}

std::vector<put_queue::item> put_queue::take(stream_state& from, std::size_t& bytes) {
    std::vector<item> taken;
    std::vector<item> passed;
    while (!from.waiting.empty() && taken.size() < from.records_allowed) {
        auto& one = from.waiting.front();
        const auto& row = *one.row.row;
        const auto size = bytes_of(row);
        if (!taken.empty() && bytes + size > from.bytes_allowed) break;
        if (row.key && !from.blocked.insert(one.key).second) {
            passed.push_back(std::move(one));
        } else {
            bytes += size;
            taken.push_back(std::move(one));
        }
        from.waiting.pop_front();
    }
    from.waiting.insert(
        from.waiting.begin(), std::make_move_iterator(passed.begin()), std::make_move_iterator(passed.end())
    );
    return taken;
}

std::optional<put_queue::call> put_queue::next(mono_time now) {
    auto at = streams_.upper_bound(last_stream_);
    for (std::size_t seen = 0; seen < streams_.size(); ++seen, ++at) {
        if (at == streams_.end()) at = streams_.begin();
        auto& [name, state] = *at;
        wake(now, state);
        if (state.waiting.empty() || state.calls >= state.calls_allowed) continue;
        call out{name, {}, 0, now};
        out.items = take(state, out.bytes);
        if (out.items.empty()) continue;
        for (auto& one : out.items) {
            ++one.attempts;
            if (!one.first_sent) one.first_sent = now;
        }
        ++state.calls;
        ++calls_in_flight_;
        last_stream_ = name;
        return out;
    }
    return std::nullopt;
}

/// By the time that a call took; what limited nothing is not raised.
void put_queue::adapt(mono_time now, const call& what, stream_state& to) const {
    if (now - what.sent <= options_.slow_call) {
        if (to.records_allowed < options_.call_records_max) {
            if (what.items.size() < to.records_allowed) return;
            to.records_allowed = std::min(2 * to.records_allowed, options_.call_records_max);
        } else if (to.calls >= to.calls_allowed && to.calls_allowed < options_.calls_in_flight_max) {
            ++to.calls_allowed;
        }
        return;
    }
    if (what.sent < to.slowed_at) return;  // the calls that queued up with it say the same
    to.slowed_at = now;
    if (to.calls_allowed > 1) {
        to.calls_allowed /= 2;
    } else {
        to.records_allowed = std::max<std::size_t>(what.items.size() / 2, 1);
    }
}

/// A throttled row holds up its key alone, unless so many wait that they hold up all.
bool put_queue::rests_on(mono_time now, const item& what, stream_state& in, const error& why) {
    if (now - *what.first_sent < options_.retry_limit) return true;
    if (!in.told_at || now - *in.told_at >= options_.tell_every) {
        in.told_at = now;
        slow_.push_back(why);
    }
    return in.waiting.size() + in.rests.size() <= options_.throttled_rows_max;
}

void put_queue::done(
    mono_time now, std::uint64_t random, call what, std::vector<outcome> how, std::vector<settled>& out
) {
    const auto found = streams_.find(what.stream);
    MILLRACE_ASSERT(found != streams_.end() && how.size() == what.items.size());
    auto& state = found->second;
    adapt(now, what, state);
    --state.calls;
    --calls_in_flight_;
    // The limit that was met stands until the stream has nothing to do.
    if (how.front().is == verdict::too_large)
        state.bytes_allowed = std::min(state.bytes_allowed, what.bytes / 2);
    std::vector<item> again;
    for (std::size_t i = 0; i < how.size(); ++i) {
        auto& one = what.items[i];
        const bool keyed = one.row.row->key.has_value();
        const bool late = stopped_behind_ && one.ticket > *stopped_behind_;
        const bool throttled = how[i].is == verdict::busy && !late;
        if (throttled && rests_on(now, one, state, how[i].why)) {
            const auto wait = pause_after(one.attempts, random + i * 0x9e3779b97f4a7c15U);
            state.rests.push_back({now + wait, std::move(one)});  // its key stays blocked
            continue;
        }
        if (keyed) state.blocked.erase(one.key);
        if (how[i].is == verdict::too_large && !late) {
            again.push_back(std::move(one));
        } else if (how[i].is == verdict::put) {
            out.push_back({std::move(one), std::nullopt, false});
        } else {
            fail(std::move(one), std::move(how[i].why), out, throttled);
        }
    }
    state.waiting.insert(
        state.waiting.begin(), std::make_move_iterator(again.begin()), std::make_move_iterator(again.end())
    );
    if (state.calls == 0 && state.waiting.empty() && state.rests.empty()) streams_.erase(found);
}

void put_queue::stop(std::vector<settled>& out) {
    purge_behind(0, out);
}

mono_time put_queue::due() const noexcept {
    auto first = mono_time::max();
    for (const auto& [name, state] : streams_) {
        for (const auto& one : state.rests)
            first = std::min(first, one.until);
    }
    return first;
}

}  // namespace millrace
