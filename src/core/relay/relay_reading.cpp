// The reading half of the relay: when to fetch what, and where the rows of a reply go.

#include "relay/relay.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace millrace {

namespace {

constexpr nanoseconds pauses_seen_within{1'000'000'000};

[[nodiscard]] const char* cause_of(window::change what) {
    return what == window::change::table ? "the table was re-created, restored or moved"
                                         : "rows were put back or a key was un-parked";
}

}  // namespace

void relay_machine::on(relay_event::fetched& what) {
    if (!fetching_ || fetching_->number != what.number) return;
    const auto sent = *std::exchange(fetching_, std::nullopt);
    const auto discard = std::exchange(discard_reply_, false) || mode_ != mode::running;
    if (!what.reply) {
        window_.fetch_failed();
        complete_look_ = false;
        fetch_not_before_ = now_ + fetch_wait_.next(random_);
        trouble("relay.fetch_failed", what.reply.error());
        return;
    }
    fetch_wait_.reset();
    if (lanes_.pause(what.reply->paused)) reroute();
    if (discard) {
        window_.fetch_failed();
    } else if (sent.sweep) {
        swept(*what.reply, now_ - sent.sent);
    } else {
        if (sent.ahead) complete_look_ = true;
        looked(*what.reply);
        if (sent.ahead && complete_look_) went_back_from_ = row_id{};
    }
}

void relay_machine::looked(const fetch_reply& reply) {
    const auto intake = window_.looked(reply);
    if (intake.what != window::change::none) {
        changed(intake.what, cause_of(intake.what));
        return;
    }
    if (intake.more) complete_look_ = false;
    accept(reply, intake.rows);
    look_again(intake.rows.size(), intake.more);
}

// Each look costs source and sink about the same, however many rows it finds: the more rows arrive, the more
// of them are gathered.
void relay_machine::look_again(std::size_t found, bool more) {
    constexpr std::int64_t slowest = 10;  // times the shortest pause
    constexpr std::int64_t rows_a_pause = 4;
    next_gap_probe_ = now_ + options_.gap_probe_every;
    if (more || found > 0) {
        idle_ = nanoseconds::zero();
        const auto rows = std::min(static_cast<std::int64_t>(found), (slowest - 1) * rows_a_pause);
        const auto pause = options_.poll_min + options_.poll_min * rows / rows_a_pause;
        next_look_ = more ? now_ : now_ + std::min(pause, options_.poll_max);
        return;
    }
    idle_ = std::clamp(idle_ * 2, options_.poll_min, idle_max_);
    next_look_ = now_ + idle_;
}

void relay_machine::swept(const fetch_reply& reply, nanoseconds took) {
    const auto page = window_.swept(reply);
    if (page.what != window::change::none) {
        changed(page.what, cause_of(page.what));
        return;
    }
    if (page.done) head_seen_ = true;
    if (page.found > 0) {
        complete_look_ = false;
        next_look_ = now_;
        report(
            log_level::warning,
            "relay.sweep_found_rows",
            error{
                errc::conflict,
                retry_advice::now,
                false,
                fmt::format(
                    "{} rows appeared at ids that were already given up; they are delivered now; see whether "
                    "writers choose ids themselves or the sequence caches values",
                    page.found
                )}
        );
    }
    // A page takes its share of time at most; the rest of the time belongs to reading ahead. While nothing is
    // waiting, the first sweep after a start from a hint takes it all: only then is it known what is left.
    const bool nothing_else = !head_seen_ && complete_look_ && window_.known() == 0;
    const auto rest =
        nothing_else ? 0.0 : static_cast<double>(took.count()) * (1.0 / options_.sweep_share - 1.0);
    const auto pause = std::max(options_.poll_min, nanoseconds{static_cast<std::int64_t>(rest)});
    next_sweep_ = now_ + (page.done ? options_.sweep_every : pause);
}

void relay_machine::changed(window::change what, const char* cause) {
    ++totals_.window_rebuilds;
    report(
        what == window::change::table ? log_level::warning : log_level::info,
        "relay.window_rebuilt",
        {errc::conflict,
         retry_advice::now,
         false,
         std::string(cause) + "; the outbox is read from its head again"}
    );
    complete_look_ = false;
    went_back_from_ = row_id{};
    if (what == window::change::table) {
        // The same ids may be other rows now: nothing that is known holds any more, an acknowledgement that
        // still comes least of all.
        forget_all();
        mode_ = mode::loading;
    } else if (fetching_) {
        discard_reply_ = true;
    }
    next_look_ = now_;
    if (loading_ == 0) load_at_ = now_;
}

void relay_machine::accept(const fetch_reply& reply, const std::vector<window::new_row>& rows) {
    if (rows.empty()) return;
    held_batch* ahead = nullptr;
    held_batch* filled = nullptr;
    std::vector<held_row> taken;
    taken.reserve(rows.size());
    for (const auto& fresh : rows) {
        auto*& batch = fresh.from_gap ? filled : ahead;
        if (!batch) batch = memory_.adopt(fresh.from_gap ? reply.filled : reply.ahead);
        taken.push_back(memory_.keep(*fresh.row, batch));
    }
    totals_.read += taken.size();
    place(std::move(taken));
}

void relay_machine::place(std::vector<held_row> rows) {
    auto suspects = false;
    std::erase_if(rows, [this, &suspects](const held_row& row) {
        if (!row.row->malformed.empty()) {
            troubled_row guilty{row, true};
            guilty.verdict = std::make_shared<const error>(error{
                errc::refused_record, retry_advice::never, false, std::string(row.row->malformed)});
            hold(std::move(guilty));
        } else if (sink_.suspect(*row.row)) {
            hold(suspected(row));
        } else {
            return false;
        }
        return suspects = true;
    });
    if (suspects) reroute();
    if (!lanes_.empty()) {
        std::erase_if(rows, [this](const held_row& row) {
            const auto claimed = lanes_.claims(*row.row);
            if (claimed) hold({row, false});
            return claimed;
        });
    }
    main_.queue(rows);
}

void relay_machine::plan_fetch() {
    if (fetching_ || loading_ != 0 || load_at_ || now_ < fetch_not_before_) return;
    if (changed_) next_look_ = std::min(next_look_, std::max(now_, last_fetch_ + options_.poll_min));
    go_back();
    if (!has_room() && now_ >= next_pack_ && memory_.sparse(options_.window_bytes / 4)) pack();
    if (now_ >= next_sweep_) {
        auto end = lanes_.deferred_from();
        fetch(window_.sweep(options_.fetch_rows, options_.fetch_bytes, end), true);
    } else if (now_ >= next_look_ && has_room()) {
        const auto rows = std::min(options_.fetch_rows, options_.window_rows - window_.known());
        const auto used = std::min(memory_.bytes(), options_.window_bytes - 1);
        const auto bytes = std::min(options_.fetch_bytes, options_.window_bytes - used);
        changed_ = false;
        fetch(window_.look(rows, bytes, memory_.bytes()), false);
    } else if (now_ >= next_gap_look()) {
        fetch(window_.look(0, options_.fetch_bytes, memory_.bytes()), false);
    }
}

mono_time relay_machine::next_fetch() const {
    auto next = next_sweep_;
    if (has_room()) {
        next = std::min(next, next_look_);
    } else {
        next = std::min(next, next_gap_look());
        if (memory_.sparse(options_.window_bytes / 4)) next = std::min(next, std::max(next_pack_, now_));
    }
    if (changed_ && has_room()) next = std::min(next, last_fetch_ + options_.poll_min);
    if (may_go_back()) next = std::min(next, next_rewind_);
    return std::max(next, fetch_not_before_);
}

void relay_machine::fetch(fetch_request request, bool is_sweep) {
    last_fetch_ = now_;
    fetching_ = pending_fetch{++last_number_, now_, is_sweep, request.rows_max > 0};
    actions_.push_back(relay_action::fetch{last_number_, std::move(request)});
}

// Room for a fetch that is worth its round trip; a window that is empty always has room.
bool relay_machine::has_room() const {
    const auto rows = std::min(options_.fetch_rows, std::max<std::size_t>(1, options_.window_rows / 4));
    const auto bytes = std::min(options_.fetch_bytes, options_.window_bytes / 4);
    return window_.known() + rows <= options_.window_rows &&
           (memory_.bytes() + bytes <= options_.window_bytes || memory_.bytes() == 0);
}

// Also when there is no room to read ahead; what a probe finds may exceed the window by one fetch. Without a
// gap it still tells of a pause.
mono_time relay_machine::next_gap_look() const {
    if (window_.known() > options_.window_rows || memory_.bytes() > options_.window_bytes)
        return mono_time::max();
    if (!window_.gaps().empty()) return std::max(next_look_, next_gap_probe_);
    return has_room() ? mono_time::max() : last_fetch_ + pauses_seen_within;
}

void relay_machine::pack() {
    next_pack_ = now_ + options_.poll_max;
    std::vector<held_row*> rows;
    main_.each_waiting(rows);
    lanes_.each_waiting(rows);
    memory_.pack(rows);
}

// Not before the rows beyond the last time were reached: deferred rows must not keep healthy ones unread.
bool relay_machine::may_go_back() const {
    return lanes_.wants_rewind() && window_.cursor() >= went_back_from_;
}

// Reads deferred rows again once their lanes can take them.
void relay_machine::go_back() {
    const auto from = lanes_.deferred_from();
    if (!from || !may_go_back() || now_ < next_rewind_) return;
    next_rewind_ = now_ + options_.gap_probe_every;
    went_back_from_ = window_.cursor();
    next_look_ = now_;
    complete_look_ = false;
    window_.rewind(*from);
    lanes_.rewound();
}

}  // namespace millrace
