#include "relay/relay.hpp"

#include "relay/poison.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace millrace {

namespace {

// A hint may be wrong, and then rows below it wait for the sweep.
constexpr nanoseconds sweep_after_hint{200'000'000};

// A signal needs an open file: one that was replaced is only found by reading.
constexpr nanoseconds idle_when_signalled{1'000'000'000};

// What the outbox refuses is often mended by a command, and whoever gave it looks whether it helped. One
// statement at a time costs a server nothing.
constexpr nanoseconds outbox_retry_max{5'000'000'000};

}  // namespace

relay_machine::relay_machine(const relay_options& options, sink_view sink, bool signalled)
    : options_(options),
      sink_(std::move(sink)),
      idle_max_(signalled ? std::max(options.poll_max, idle_when_signalled) : options.poll_max),
      window_(options.gaps_max),
      main_(options_),
      lanes_(options_, sink_),
      rate_(options.rows_per_second),
      fetch_wait_(options.retry_min, options.retry_max),
      remove_wait_(
          std::min(options.retry_min, outbox_retry_max), std::min(options.retry_max, outbox_retry_max)
      ) {}

std::vector<relay_machine::action> relay_machine::step(mono_time now, std::uint64_t random, event what) {
    now_ = now;
    random_ = random;
    actions_.clear();
    std::visit([this](auto& e) { on(e); }, what);

    if (mode_ != mode::draining) reopen_main();
    if (loads() && load_at_ && now_ >= *load_at_) load_start();
    if (mode_ == mode::running) {
        plan_lanes();
        plan_main();
        plan_fetch();
    }
    if (mode_ != mode::off) plan_remove();
    if (mode_ == mode::draining) plan_drain();
    if (main_.take_reset(now_)) actions_.push_back(relay_action::reset_main{main_.resets_probes()});
    plan_wake();
    if (empty()) last_error_.reset();
    return std::move(actions_);
}

void relay_machine::on(relay_event::started&) {
    forget_all();
    last_error_.reset();
    mode_ = mode::loading;
    next_look_ = now_;
    next_sweep_ = now_ + options_.sweep_every;
    load_at_ = now_;
}

void relay_machine::on(relay_event::published& what) {
    if (what.where == channel::main) {
        for (const auto& row : main_.published(what.number, std::move(what.outcome)))
            acknowledge(row);
        return;
    }
    const auto topics = lanes_.topics_suspected();
    auto probed = lanes_.probed(now_, random_, what.number, what.outcome);
    if (probed.published) acknowledge(*probed.published);
    if (probed.retried) {
        // It may wait here for ever, so whoever looks at the relay must see why.
        last_error_ = *failure_of(what.outcome, probed.retried->first);
        report_rows(log_level::warning, "relay.row_retried", std::move(*probed.retried));
    }
    if (lanes_.topics_suspected() != topics) reroute();
}

void relay_machine::on(relay_event::main_reset& what) {
    main_.reset_done(now_, random_, what.outcome);
    if (!what.outcome) trouble("relay.reset_failed", what.outcome.error());
}

void relay_machine::on(relay_event::removed& what) {
    if (what.number != removing_) return;
    removing_ = 0;
    if (what.outcome) {
        remove_wait_.reset();
        deletes_.done(now_);
        totals_.deleted += *what.outcome;
        for (const auto id : deletions_.succeeded())
            window_.gone(id);
    } else if (what.outcome.error().code == errc::not_owner) {
        lost(what.outcome.error());
    } else {
        deletions_.failed(now_ + remove_wait_.next(random_));
        deletes_.failed(now_, what.outcome.error());
        trouble("relay.delete_failed", what.outcome.error());
    }
}

void relay_machine::on(relay_event::buried& what) {
    auto result = lanes_.buried(now_, random_, what.number, what.outcome);
    if (result.news || result.unparked) burials_.done(now_);
    for (const auto& row : result.gone) {
        window_.gone(row.id());
        memory_.release(row);
        ++totals_.buried;
    }
    for (const auto& row : result.forgotten)
        forget(row);
    if (result.parked) report_rows(log_level::warning, "relay.lane_parked", *result.news);
    if (result.unparked) {
        report_rows(log_level::info, "relay.lane_unparked", std::move(*result.news));
        changed(window::change::replayed, "a lane that was thought to be parked is not");
    } else if (result.news) {
        report_rows(log_level::warning, "relay.row_buried", std::move(*result.news));
    }
    if (!result.trouble) return;
    if (result.trouble->code == errc::not_owner) {
        lost(*result.trouble);
    } else {
        burials_.failed(now_, *result.trouble);
        trouble("relay.bury_failed", *result.trouble);
    }
}

void relay_machine::on(relay_event::start_loaded& what) {
    if (what.number != loading_) return;
    loading_ = 0;
    if (!what.from) {
        load_at_ = now_ + fetch_wait_.next(random_);
        trouble("relay.start_failed", what.from.error());
        return;
    }
    fetch_wait_.reset();
    const auto change = lanes_.set_parked(what.from->parked);
    for (const auto& row : change.forgotten)
        forget(row);
    report_lanes("relay.lanes_parked", change.parked, "parked; such rows go to the dead letters");
    report_lanes("relay.lanes_unparked", change.freed, "not parked any more; such rows go out again");
    if (mode_ == mode::loading) {
        mode_ = mode::running;
        head_seen_ = !window_.begin_at(*what.from);
        if (!head_seen_) next_sweep_ = std::min(next_sweep_, now_ + sweep_after_hint);
    } else {
        window_.rebuild();
        head_seen_ = true;
    }
    lanes_.rewound();
    next_look_ = now_;
    // Rows that wait for main may belong to a lane that is parked.
    reroute();
}

void relay_machine::on(relay_event::source_changed&) {
    changed_ = true;
}

void relay_machine::on(relay_event::sink_changed&) {
    lanes_.look_again();
}

void relay_machine::on(relay_event::timer&) {
    if (wake_ && now_ >= *wake_) wake_.reset();
}

void relay_machine::on(relay_event::drain&) {
    if (mode_ == mode::off || mode_ == mode::draining) {
        if (mode_ == mode::off) actions_.push_back(relay_action::drained{});
        return;
    }
    mode_ = mode::draining;
    drain_deadline_ = now_ + options_.drain_limit;
}

void relay_machine::on(relay_event::halt&) {
    forget_all();
    last_error_.reset();
    mode_ = mode::off;
}

void relay_machine::load_start() {
    load_at_.reset();
    loading_ = ++last_number_;
    actions_.push_back(relay_action::load_start{loading_});
}

void relay_machine::acknowledge(held_row row) {
    ++totals_.acknowledged;
    deletions_.acknowledged(now_, row.id());
    memory_.release(row);
}

void relay_machine::hold(troubled_row row) {
    const auto held = row.row;
    if (!lanes_.hold(std::move(row), main_.last_request())) forget(held);
}

// The row stays in the table and must be read again: the window goes back to it before it looks on.
void relay_machine::forget(held_row row) {
    window_.forget(row.id());
    memory_.release(row);
    complete_look_ = false;
}

void relay_machine::reopen_main() {
    const auto failed = main_.trouble();
    auto refused = main_.reopen(now_, random_);
    if (!refused) return;
    if (failed) trouble("relay.publish_failed", *failed);
    for (const auto& topic : main_.take_unwell_topics())
        lanes_.suspect_topic(topic);
    for (auto& row : *refused) {
        const auto standing = judge(row.why, row.alone);
        if (row.why.code == errc::refused_topic) lanes_.suspect_topic(row.row.row->topic);
        troubled_row suspect{row.row, true};
        if (standing == blame::guilty) suspect.verdict = std::make_shared<const error>(row.why);
        hold(std::move(suspect));
    }
    if (!refused->empty()) report(log_level::info, "relay.rows_refused", refused->front().why);
    // The sink may have learned a limit, so other rows that wait may be suspects now; and rows that come back
    // untried may belong to a lane that got into trouble meanwhile.
    for (const auto& row :
         main_.take_out([this](const held_row& r) { return sink_.suspect(*r.row).has_value(); }))
        hold(suspected(row));
    reroute();
}

troubled_row relay_machine::suspected(held_row row) const {
    return {.row = row, .suspect = true, .unready = sink_.awaits(*row.row)};
}

// What waits for main but belongs to a lane or topic in trouble waits there.
void relay_machine::reroute() {
    if (lanes_.empty()) return;
    for (const auto& row : main_.take_out([this](const held_row& r) { return lanes_.claims(*r.row); }))
        hold({row, false});
}

// What may still be handed to the sink.
relay_machine::room relay_machine::client_room() const {
    const auto rows = main_.rows_in_flight() + lanes_.probes_in_flight();
    const auto bytes = main_.bytes_in_flight() + lanes_.probe_bytes_in_flight();
    return {
        std::min(options_.client_window_rows - std::min(options_.client_window_rows, rows), rate_.room(now_)),
        options_.client_window_bytes - std::min(options_.client_window_bytes, bytes)};
}

void relay_machine::plan_lanes() {
    const auto [rows, bytes] = client_room();
    auto work = lanes_.advance(now_, main_, rows, bytes);
    rate_.spend(now_, work.probes.size());
    for (auto& probe : work.probes) {
        ++totals_.published;
        actions_.push_back(relay_action::publish{channel::probe, probe.number, {std::move(probe.row)}});
    }
    for (auto& burial : work.burials) {
        burial.what.table_identity = window_.table_identity();
        burials_.asked(now_);
        actions_.push_back(relay_action::bury{burial.number, std::move(burial.what)});
    }
    std::sort(work.healthy.begin(), work.healthy.end(), [](const held_row& a, const held_row& b) {
        return a.id() < b.id();
    });
    main_.queue(work.healthy);
    for (const auto& row : work.paused)
        forget(row);
    if (work.stop) {
        mode_ = mode::stopped;
        actions_.push_back(relay_action::stopped{std::move(*work.stop)});
    }
}

void relay_machine::plan_main() {
    if (mode_ != mode::running || main_.rows_waiting() == 0) return;
    const auto limits = sink_.limits();
    for (;;) {
        const auto [rows, bytes] = client_room();
        auto request = main_.next(now_, limits, rows, bytes);
        if (!request) return;
        totals_.published += request->rows.size();
        rate_.spend(now_, request->rows.size());
        actions_.push_back(relay_action::publish{channel::main, request->number, std::move(request->rows)});
    }
}

void relay_machine::plan_remove() {
    const auto delay = mode_ == mode::draining ? nanoseconds::zero() : options_.delete_delay;
    auto ranges = deletions_.next(now_, options_.delete_rows, delay);
    if (ranges.empty()) return;
    removing_ = ++last_number_;
    deletes_.asked(now_);
    actions_.push_back(relay_action::remove{
        removing_, std::move(ranges), {low_water(), window_.table_identity()}});
}

// While the start is loaded anew, rows may have been forgotten that the window does not look for yet.
row_id relay_machine::low_water() const {
    if (loading_ != 0 || load_at_) return {};
    const auto first = std::min(window_.low_water(), lanes_.deferred_from().value_or(window_.low_water()));
    return first > row_id{} ? row_id{first.value() - 1} : row_id{};
}

void relay_machine::plan_drain() {
    const auto unsure = main_.rows_in_flight() + lanes_.probes_in_flight() + deletions_.size();
    const auto burials = lanes_.burials_in_flight();
    if (unsure + burials > 0 && now_ < drain_deadline_) return;
    result<void> outcome;
    if (unsure + burials > 0)
        outcome = fail(
            errc::unavailable,
            fmt::format(
                "the relay stopped at its drain limit with {} rows in flight or not yet deleted; they may "
                "come twice; see whether the sink and the outbox answer, or raise the drain limit",
                unsure
            ),
            retry_advice::never,
            true
        );
    actions_.push_back(relay_action::drained{std::move(outcome)});
    forget_all();
    mode_ = mode::off;
}

// What was due and was not done waits for an event, not for a time.
void relay_machine::plan_wake() {
    auto next = mono_time::max();
    const auto at = [&](mono_time when) {
        if (when > now_) next = std::min(next, when);
    };
    if (mode_ != mode::off) at(deletions_.due(options_.delete_rows, options_.delete_delay));
    at(main_.due());
    if (mode_ == mode::draining) at(drain_deadline_);
    if (loads() && load_at_) at(*load_at_);
    if (mode_ == mode::running) {
        at(lanes_.due());
        if (main_.rows_waiting() > 0 || !lanes_.empty()) at(rate_.due());
        if (!fetching_ && loading_ == 0 && !load_at_) at(next_fetch());
    }
    if (next == mono_time::max() || wake_ == next) return;
    wake_ = next;
    actions_.push_back(relay_action::wake_at{next});
}

void relay_machine::lost(const error& why) {
    forget_all();
    mode_ = mode::stopped;
    actions_.push_back(relay_action::stopped{why});
}

void relay_machine::report(log_level level, std::string_view what, const error& why) {
    actions_.push_back(relay_action::report{level, what, why});
}

void relay_machine::trouble(std::string_view what, const error& why) {
    last_error_ = why;
    report(log_level::warning, what, why);
}

void relay_machine::report_rows(log_level level, std::string_view what, row_news news) {
    actions_.push_back(relay_action::report_rows{level, what, std::move(news)});
}

void relay_machine::report_lanes(std::string_view what, std::size_t count, std::string_view meaning) {
    if (count == 0) return;
    report(
        log_level::info,
        what,
        {errc::conflict,
         retry_advice::never,
         false,
         fmt::format("{} {} {}", count, count == 1 ? "lane is" : "lanes are", meaning)}
    );
}

void relay_machine::forget_all() {
    main_.clear(lanes_.probes_in_flight() > 0);
    lanes_.clear();
    deletions_.clear();
    memory_.clear();
    window_.restart();
    fetching_.reset();
    discard_reply_ = false;
    changed_ = false;
    complete_look_ = false;
    went_back_from_ = row_id{};
    head_seen_ = false;
    loading_ = 0;
    load_at_.reset();
    removing_ = 0;
    idle_ = nanoseconds::zero();
    fetch_not_before_ = {};
    fetch_wait_.reset();
    remove_wait_.reset();
    deletes_.reset();
    burials_.reset();
    wake_.reset();
}

std::optional<overdue> relay_machine::late() const {
    auto deletion = deletes_.late();
    auto burial = burials_.late();
    if (!deletion || (burial && burial->since < deletion->since)) return burial;
    return deletion;
}

bool relay_machine::empty() const {
    return mode_ == mode::running && complete_look_ && head_seen_ && window_.known() == 0 &&
           window_.gaps().empty() && !lanes_.deferred_from() && loading_ == 0;
}

relay_counters relay_machine::counters() const {
    auto now = totals_;
    now.retried = main_.rows_retried() + lanes_.rows_retried();
    now.in_flight = main_.rows_in_flight() + lanes_.probes_in_flight();
    now.bytes_in_memory = memory_.bytes();
    now.gaps = window_.gaps().size();
    now.awaiting = lanes_.rows_awaiting();
    now.duplicates_at_risk = now.in_flight + deletions_.size();
    return now;
}

}  // namespace millrace
