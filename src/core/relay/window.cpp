#include "relay/window.hpp"

#include "assert.hpp"

#include <algorithm>
#include <limits>

namespace millrace {

namespace {

const auto lowest = row_id{std::numeric_limits<std::int64_t>::min()};
const auto highest = row_id{std::numeric_limits<std::int64_t>::max()};

[[nodiscard]] std::span<const outbox_row> rows_of(const std::shared_ptr<const row_batch>& batch) {
    return batch ? batch->rows() : std::span<const outbox_row>{};
}

}  // namespace

window::window(std::size_t gaps_max) : gaps_(gaps_max) {
    restart();
}

fetch_request window::look(std::size_t rows_max, std::size_t bytes_max, std::size_t known_bytes) {
    MILLRACE_ASSERT(!outstanding_);
    outstanding_ = true;
    fetch_request request;
    request.after = cursor_;
    request.rows_max = rows_max;
    request.bytes_max = bytes_max;
    request.gaps = gaps_.ranges(probe_from_);
    request.gap_bytes_max = bytes_max + (gaps_.merged() ? known_bytes : 0);
    request.wants_writers = wants_writers_ || rows_max == 0;
    return request;
}

window::intake window::looked(const fetch_reply& reply) {
    MILLRACE_ASSERT(outstanding_);
    outstanding_ = false;
    intake result;
    result.what = compare(reply);
    if (result.what == change::none) {
        ++round_;
        take_filled(reply, result);
        // Most gaps are filled by the next round; who may fill it is asked for one that was not.
        wants_writers_ = !gaps_.empty();
        if (!reply.gaps_more) take_ahead(reply, result);
        follow_sequence(reply.drawn);
        if (reply.knows_writers) {
            gaps_.writers_seen(round_);
            writers_.observe(round_, reply.writers);
        }
        gaps_.enforce_limit();
        result.more = reply.more || reply.gaps_more;
    }
    settle_gone();
    return result;
}

void window::take_filled(const fetch_reply& reply, intake& into) {
    const auto filled = rows_of(reply.filled);
    std::optional<row_id> kept;
    for (const auto& row : filled) {
        if (known_.contains(row.id)) continue;  // a merged gap spans known rows
        const auto how = gaps_.fill(row.id);
        if (how == gap_set::filled::no) continue;
        if (how == gap_set::filled::kept) kept = row.id;
        known_.add(row.id);
        into.rows.push_back({&row, true});
    }
    if (kept) keep_behind(*kept);
    if (!reply.gaps_more) {
        gaps_.drop_dead({probe_from_, highest}, writers_.cleared_below());
    } else if (!filled.empty()) {
        gaps_.drop_dead({probe_from_, filled.back().id}, writers_.cleared_below());
    }
    // A probe starts at the lowest gap again, so that a lower row is never handed out behind a later one that
    // was committed after it. Only where known rows alone fill the whole reply it goes on behind them.
    const auto stuck = reply.gaps_more && into.rows.empty() && !filled.empty() && filled.back().id < highest;
    probe_from_ = stuck ? row_id{filled.back().id.value() + 1} : lowest;
}

void window::take_ahead(const fetch_reply& reply, intake& into) {
    for (const auto& row : rows_of(reply.ahead)) {
        if (row.id <= cursor_) continue;
        const auto next = row_id{cursor_.value() + 1};
        if (next < row.id) gaps_.append({next, row_id{row.id.value() - 1}});
        cursor_ = row.id;
        if (known_.contains(row.id)) continue;
        known_.add(row.id);
        into.rows.push_back({&row, false});
    }
    if (!reply.looked_to || *reply.looked_to <= cursor_) return;
    gaps_.append({row_id{cursor_.value() + 1}, *reply.looked_to});
    cursor_ = *reply.looked_to;
}

fetch_request window::sweep(std::size_t rows_max, std::size_t bytes_max, std::optional<row_id> end) {
    MILLRACE_ASSERT(!outstanding_);
    outstanding_ = true;
    if (!swept_to_) swept_to_ = lowest;
    sweep_end_ = cursor_;
    if (end && *end <= cursor_) sweep_end_ = *end > lowest ? row_id{end->value() - 1} : lowest;
    fetch_request request;
    request.after = *swept_to_;
    request.rows_max = rows_max;
    request.bytes_max = bytes_max;
    request.gap_bytes_max = bytes_max;
    request.until = sweep_end_;
    return request;
}

window::sweep_page window::swept(const fetch_reply& reply) {
    MILLRACE_ASSERT(outstanding_);
    outstanding_ = false;
    sweep_page result;
    result.what = compare(reply);
    if (result.what == change::none) {
        ++round_;
        gaps_.writers_seen(round_);
        writers_.observe(round_, reply.writers);
        std::optional<row_id> highest_found;
        for (const auto& row : rows_of(reply.ahead)) {
            swept_to_ = row.id;
            if (row.id > sweep_end_) break;
            if (known_.contains(row.id) || gaps_.contains(row.id)) continue;
            highest_found = row.id;
            ++result.found;
        }
        // All below it, not these ids alone: what is committed there until the next look must come first.
        if (highest_found) {
            gaps_.revive_up_to(*highest_found, round_);
            keep_behind(*highest_found);
        }
        if (reply.looked_to) swept_to_ = std::max(swept_to_.value_or(lowest), *reply.looked_to);
        result.done = !reply.more || !swept_to_ || *swept_to_ >= sweep_end_;
        if (result.done) swept_to_.reset();
    }
    settle_gone();
    return result;
}

// Whoever gave a row so low an id goes on from there: a sequence that stands far below an id of somebody's
// choice.
void window::keep_behind(row_id last) {
    const auto known = known_.first_above(last);
    gaps_.keep_behind(last, known ? row_id{known->value() - 1} : cursor_);
}

// Below an id of somebody's choice the sequence goes on. What it has not given yet is no gap, of which the
// writers of now could be asked: it is kept. Where nothing covered what it gave just before, that may be
// under way.
void window::follow_sequence(row_id drawn) {
    constexpr std::int64_t just_before = 1'000;
    if (drawn <= row_id{} || drawn >= cursor_) return;
    const auto next = row_id{drawn.value() + 1};
    if (gaps_.keeps(next)) return;
    if (!gaps_.cut_from(next))
        gaps_.revive({row_id{std::max<std::int64_t>(1, next.value() - just_before)}, drawn});
    keep_behind(drawn);
}

void window::fetch_failed() {
    outstanding_ = false;
    settle_gone();
}

void window::gone(row_id id) {
    if (outstanding_) {
        gone_meanwhile_.push_back(id);
    } else {
        known_.remove(id);
    }
}

void window::settle_gone() {
    for (const auto id : gone_meanwhile_)
        known_.remove(id);
    gone_meanwhile_.clear();
}

void window::restart() {
    known_.clear();
    gone_meanwhile_.clear();
    outstanding_ = false;
    table_identity_.reset();
    rebuild();
}

bool window::begin_at(const outbox_start& hint) {
    if (hint.low_water <= row_id{} || hint.table_identity.empty()) return false;
    MILLRACE_ASSERT(!outstanding_ && known_.empty());
    table_identity_ = hint.table_identity;
    replay_generation_ = hint.replay_generation;
    gaps_.clear();
    cursor_ = hint.low_water;
    return true;
}

void window::rebuild() {
    gaps_.clear();
    writers_.clear();
    wants_writers_ = true;
    cursor_ = lowest;
    probe_from_ = lowest;
    swept_to_.reset();
    // Read-ahead begins above the cursor, so the lowest id of all is a gap like any other.
    gaps_.append({lowest, lowest});
    gaps_.writers_seen(round_);
}

void window::rewind(row_id id) {
    if (id == lowest) {
        rebuild();
        return;
    }
    if (id > cursor_) return;
    cursor_ = row_id{id.value() - 1};
    gaps_.cut_above(cursor_);
    probe_from_ = lowest;
}

row_id window::low_water() const {
    auto mark = cursor_ < highest ? row_id{cursor_.value() + 1} : highest;
    if (!known_.empty()) mark = std::min(mark, known_.first());
    if (const auto gap = gaps_.first()) mark = std::min(mark, *gap);
    return mark;
}

window::change window::compare(const fetch_reply& reply) {
    if (!table_identity_) {
        table_identity_ = reply.table_identity;
        replay_generation_ = reply.replay_generation;
        return change::none;
    }
    if (*table_identity_ != reply.table_identity) return change::table;
    if (replay_generation_ != reply.replay_generation) {
        replay_generation_ = reply.replay_generation;
        return change::replayed;
    }
    return change::none;
}

}  // namespace millrace
