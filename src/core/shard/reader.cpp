#include "shard/reader.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace millrace {

namespace {

constexpr std::uint32_t throttlings_that_last = 8;

}  // namespace

shard_reader::shard_reader(const shard_options& options, start_position start)
    : read_interval_(options.read_interval),
      tip_interval_(options.tip_interval),
      backoff_(options.backoff_min, options.backoff_max),
      pace_(options.reads_per_second.value_or(0), options.read_bytes_per_second.value_or(0)),
      start_(std::move(start)) {}

start_position shard_reader::reopen_at() const {
    if (last_read_) return from::after{*last_read_};
    return start_;
}

shard_reader::action shard_reader::request() {
    state_ = state::requesting;
    if (cursor_) return read{*cursor_};
    return open{reopen_at()};
}

/// A new cursor is made when it can be used at once, so that it does not age.
shard_reader::action shard_reader::request_in_turn(mono_time now) {
    if (now < pace_.next()) return pause_until(pace_.next());
    return request();
}

shard_reader::action shard_reader::pause_until(mono_time when) {
    state_ = state::pausing;
    until_ = when;
    return wait{when};
}

/// All readers of a machine that are at the tip look at the same moments, at most an interval apart: a worker
/// with many quiet shards wakes once for all of them.
mono_time shard_reader::whole_interval(mono_time due) const {
    return due - due.time_since_epoch() % tip_interval_;
}

shard_reader::outcome shard_reader::on(mono_time now, std::uint64_t random, const records& what) {
    backoff_.reset();
    if (what.last) last_read_ = what.last;
    cursor_ = what.next;
    if (!what.next) {
        state_ = state::ended;
        at_tip_ = true;
        return {end{}};
    }
    at_tip_ = what.behind == milliseconds::zero();
    pace_.read(what.sent, what.bytes, random);
    next_read_ = std::max(what.sent + read_interval_, pace_.next());
    if (at_tip_ && !std::exchange(changed_, false)) {
        state_ = state::calm;
        until_ = std::max({now, whole_interval(what.sent + tip_interval_), next_read_});
        return {wait{until_}};
    }
    if (next_read_ <= now) return {request()};
    return {pause_until(next_read_)};
}

shard_reader::outcome shard_reader::on(mono_time now, std::uint64_t random, const failed& what) {
    const bool first = backoff_.failures() == 0;
    at_tip_ = false;
    if (cursor_) {  // a read, not an opening
        if (what.why.code == errc::throttled) pace_.throttled(now, random);
        pace_.read(now, 0, random);
    }
    const auto pause = backoff_.next(random);
    switch (what.why.code) {
        case errc::not_found:
            if (what.unlisted) {
                state_ = state::ended;
                at_tip_ = true;
                return {end{}, notice::shard_gone};
            }
            cursor_.reset();
            return {
                pause_until(now + pause),
                std::has_single_bit(backoff_.failures()) ? notice::missing : notice::none};
        case errc::expired_cursor:
            cursor_.reset();
            // Twice in a row without a read between: not a matter of age, so no tight loop.
            if (first) return {request_in_turn(now)};
            return {pause_until(std::max(now + pause, pace_.next()))};
        case errc::position_trimmed: {
            cursor_.reset();
            last_read_.reset();
            start_ = from::trim_horizon{};
            const auto say = std::exchange(gap_said_, true) ? notice::none : notice::gap;
            if (first) return {request_in_turn(now), say};
            return {pause_until(std::max(now + pause, pace_.next())), say};
        }
        default: {
            // Said less and less often; throttling is part of the work and said only once it lasts.
            const bool usual = what.why.code == errc::throttled;
            const auto count = backoff_.failures();
            const bool say = std::has_single_bit(count) && (!usual || count >= throttlings_that_last);
            return {pause_until(std::max(now + pause, pace_.next())), say ? notice::failing : notice::none};
        }
    }
}

shard_reader::action shard_reader::on_changed(mono_time now) {
    if (state_ == state::calm) {
        if (next_read_ <= now) return request();
        return pause_until(next_read_);
    }
    if (state_ == state::requesting) changed_ = true;
    return state_ == state::pausing ? action{wait{until_}} : action{await{}};
}

shard_reader::outcome shard_reader::step(mono_time now, std::uint64_t random, const event& what) {
    if (state_ == state::ended) return {end{}};
    if (std::holds_alternative<changed>(what)) return {on_changed(now)};
    if (const auto* got = std::get_if<opened>(&what)) {
        cursor_ = got->cursor;
        return {request()};
    }
    if (const auto* got = std::get_if<records>(&what)) return on(now, random, *got);
    if (const auto* got = std::get_if<failed>(&what)) return on(now, random, *got);
    if (std::holds_alternative<woken>(what)) {
        if (state_ == state::requesting || state_ == state::idle) return {await{}};
        if (now < until_) return {wait{until_}};
    }
    return {request()};
}

}  // namespace millrace
