#include "relay_driver.hpp"

#include "paced_log.hpp"
#include "relay/poison.hpp"
#include "relay/relay.hpp"
#include "relay/silence.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace millrace {

struct relay_driver::impl {
    impl(
        host& on, outbox_source& from, event_sink& to, const relay_options& options, std::function<bool()> may
    )
        : loop(on),
          source(from),
          sink(to),
          may_act(std::move(may)),
          machine(
              options,
              {[&to](const outbox_row& row) { return to.suspect(row); },
               [&to] { return to.limits(); },
               [&to](const outbox_row& row) { return to.awaits(row); }},
              from.signals_changes()
          ),
          log(loop) {
        source.watch(alive.guard([this] { dispatch(relay_event::source_changed{}); }));
        sink.watch(alive.guard([this] { dispatch(relay_event::sink_changed{}); }));
    }

    ~impl() {
        if (timer) loop.cancel(*timer);
    }

    // Callbacks may call back into the driver, so events queue up behind the one in hand.
    void dispatch(relay_event::any what) {
        events.push_back(std::move(what));
        if (busy) return;
        busy = true;
        while (!events.empty()) {
            auto next = std::move(events.front());
            events.pop_front();
            for (auto& action : machine.step(loop.now(), loop.random(), std::move(next)))
                std::visit([this](auto& a) { carry_out(a); }, action);
            // What was not done is told before anything else can happen: a later request on main must not be
            // handed over in its place.
            events.insert(
                events.begin(), std::make_move_iterator(undone.begin()), std::make_move_iterator(undone.end())
            );
            undone.clear();
            main_refused = false;
        }
        busy = false;
    }

    [[nodiscard]] static error deadline_passed(const char* what) {
        return {
            errc::not_owner,
            retry_advice::after_delay,
            false,
            std::string(what) +
                " was not sent: the lease's deadline has passed; it is tried again once the "
                "session is confirmed"};
    }

    // A verdict on a row or a topic, or a request for patience, shows that the sink is there.
    void heard_of_sink(const result<publish_outcome>& outcome, std::size_t rows) {
        const auto says = [](const error& why) {
            return why.code == errc::throttled || judge(why, true) != blame::none;
        };
        bool answered = outcome ? outcome->failures.size() < rows : says(outcome.error());
        if (outcome) {
            const auto early = [](const row_failure& f) { return f.early; };
            const auto& failures = outcome->failures;
            if (failures.size() == rows && std::all_of(failures.begin(), failures.end(), early))
                return of_sink.withdrawn();
            for (const auto& failure : failures)
                answered = answered || (!failure.early && says(failure.why));
        }
        answered ? of_sink.answered(loop.now()) : of_sink.failed(loop.now());
    }

    void carry_out(relay_action::fetch& a) {
        of_source.asked(loop.now());
        auto done = [this, n = a.number, asked_in = life](result<fetch_reply> reply) {
            if (asked_in == life) reply ? of_source.answered(loop.now()) : of_source.failed(loop.now());
            dispatch(relay_event::fetched{n, std::move(reply)});
        };
        source.fetch(std::move(a.request), alive.guard(std::move(done)));
    }

    void carry_out(relay_action::publish& a) {
        if ((a.where == channel::main && main_refused) || !may_act()) {
            main_refused = main_refused || a.where == channel::main;
            undone.emplace_back(relay_event::published{
                a.where, a.number, tl::unexpected(deadline_passed("a row"))});
            return;
        }
        of_sink.asked(loop.now());
        auto done = [this, where = a.where, n = a.number, rows = a.rows.size(), asked_in = life](
                        result<publish_outcome> outcome
                    ) {
            if (asked_in == life) heard_of_sink(outcome, rows);
            dispatch(relay_event::published{where, n, std::move(outcome)});
        };
        sink.publish(a.where, std::move(a.rows), mine, alive.guard(std::move(done)));
    }

    void carry_out(relay_action::remove& a) {
        if (!may_act()) {
            auto why = deadline_passed("a deletion");
            why.code = errc::unavailable;  // the outbox has not refused: the machine goes on
            undone.emplace_back(relay_event::removed{a.number, tl::unexpected(std::move(why))});
            return;
        }
        source.remove(
            std::move(a.delivered),
            std::move(a.mark),
            mine,
            alive.guard([this, n = a.number](result<std::uint64_t> outcome) {
                dispatch(relay_event::removed{n, std::move(outcome)});
            })
        );
    }

    void carry_out(relay_action::bury& a) {
        if (!may_act()) {
            auto why = deadline_passed("a burial");
            why.code = errc::unavailable;
            undone.emplace_back(relay_event::buried{a.number, tl::unexpected(std::move(why))});
            return;
        }
        auto rows = a.request.rows;
        rows.resize(std::min(rows.size(), named_max - buried.size()));
        source.bury(std::move(a.request), mine, alive.guard([this, n = a.number, rows](result<void> outcome) {
            if (outcome) name_buried(rows);
            dispatch(relay_event::buried{n, std::move(outcome)});
        }));
    }

    void carry_out(relay_action::load_start& a) {
        source.start(alive.guard([this, n = a.number](result<outbox_start> from) {
            dispatch(relay_event::start_loaded{n, std::move(from)});
        }));
    }

    void carry_out(relay_action::reset_main& a) {
        auto done = alive.guard([this](result<void> outcome) {
            dispatch(relay_event::main_reset{std::move(outcome)});
        });
        a.probes ? sink.purge(std::move(done)) : sink.reset_main(std::move(done));
    }

    void carry_out(relay_action::wake_at& a) {
        if (timer) loop.cancel(*timer);
        timer = loop.call_at(a.when, alive.guard([this] {
            timer.reset();
            dispatch(relay_event::timer{});
        }));
    }

    void carry_out(relay_action::drained& a) { finish_drains(a.outcome); }

    void carry_out(relay_action::stopped& a) {
        loop.log().write(
            log_level::error,
            "relay.stopped",
            {{"code", std::string(name_of(a.why.code))}, {"detail", a.why.detail}}
        );
        if (stopped) loop.post(alive.guard([tell = stopped, why = a.why] { tell(why); }));
    }

    void carry_out(relay_action::report& a) {
        if (!log.enabled(a.level)) return;
        log.write_change(
            a.level,
            a.what,
            {{"code", std::string(name_of(a.why.code))}, {"detail", a.why.detail}},
            a.why.detail
        );
    }

    void carry_out(relay_action::report_rows& a) {
        if (!log.enabled(a.level)) return;
        const auto& news = a.news;
        log.write(
            a.level,
            a.what,
            {{"id", std::to_string(news.first.value())},
             {"rows", std::to_string(news.rows)},
             {"topic", news.topic},
             {"lane", fmt::format("{:08x}", news.lane)},
             {"attempts", std::to_string(news.attempts)},
             {"reason", news.reason},
             {"detail", news.detail}},
            news.detail
        );
    }

    void name_buried(const std::vector<row_id>& rows) {
        const auto room = std::min(rows.size(), named_max - buried.size());
        buried.insert(buried.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(room));
    }

    // What was asked in an earlier life says nothing about this one.
    void begin_anew() {
        ++life;
        of_sink.reset();
        of_source.reset();
    }

    void finish_drains(const result<void>& outcome) {
        for (auto& done : std::exchange(drains, {}))
            loop.post([done = std::move(done), outcome] { done(outcome); });
    }

    host& loop;
    outbox_source& source;
    event_sink& sink;
    std::function<bool()> may_act;
    relay_machine machine;
    paced_log log;
    epoch mine;
    std::uint64_t life{0};
    silence of_sink;
    silence of_source;
    std::vector<row_id> buried;
    std::deque<relay_event::any> events;
    std::vector<relay_event::any> undone;
    bool busy{false};
    bool main_refused{false};
    std::optional<host::timer> timer;
    std::vector<completion<void>> drains;
    std::function<void(const error&)> stopped;
    lifetime alive;
};

relay_driver::relay_driver(
    host& loop, outbox_source& source, event_sink& sink, relay_options options, std::function<bool()> may_act
)
    : impl_(std::make_unique<impl>(loop, source, sink, options, std::move(may_act))) {}

relay_driver::~relay_driver() = default;

void relay_driver::start(epoch mine) {
    impl_->finish_drains(fail(errc::cancelled, "the relay was started again while it drained"));
    impl_->mine = mine;
    impl_->begin_anew();
    impl_->dispatch(relay_event::started{mine});
}

void relay_driver::drain(completion<void> done) {
    impl_->drains.push_back(std::move(done));
    impl_->dispatch(relay_event::drain{});
}

void relay_driver::halt() {
    impl_->finish_drains(fail(errc::not_owner, "the lease of the outbox ended while the relay drained"));
    impl_->begin_anew();
    impl_->dispatch(relay_event::halt{});
}

bool relay_driver::empty() const {
    return impl_->machine.empty();
}

relay_counters relay_driver::counters() const {
    return impl_->machine.counters();
}

std::optional<error> relay_driver::last_error() const {
    return impl_->machine.last_error();
}

std::optional<overdue> relay_driver::late() const {
    return impl_->machine.late();
}

seat_reach relay_driver::reach() const {
    const auto of = [](const silence& s) { return millrace::reach{s.since(), s.last_answer()}; };
    auto now = seat_reach{of(impl_->of_sink), of(impl_->of_source)};
    // A failure without a word from the sink may be the last that was heard of it: nothing is asked any more.
    if (impl_->machine.unsettled(1).empty()) now.sink.silent_since.reset();
    return now;
}

const std::vector<row_id>& relay_driver::first_buried() const {
    return impl_->buried;
}

std::vector<row_id> relay_driver::unsettled() const {
    return impl_->machine.unsettled(named_max);
}

void relay_driver::on_stopped(std::function<void(const error&)> what) {
    impl_->stopped = std::move(what);
}

}  // namespace millrace
