/// Moves the rows of one outbox to a sink: decides what to read, publish, delete and bury, and when.
///
/// Composed of the window (what is read), the main channel and the lanes (what goes out, in order) and the
/// deletions. The caller carries each action out, in the order given, and gives each completion back once;
/// completions of an earlier life are ignored by their number. It checks the lease's deadline itself, right
/// before it acts. Pure; no thread safety.
#pragma once

#include "relay/counters.hpp"
#include "relay/deletions.hpp"
#include "relay/events.hpp"
#include "relay/held_rows.hpp"
#include "relay/lanes.hpp"
#include "relay/main_channel.hpp"
#include "relay/options.hpp"
#include "relay/overdue.hpp"
#include "relay/rate_limit.hpp"
#include "relay/sink_view.hpp"
#include "relay/window.hpp"
#include "retry/backoff.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace millrace {

class relay_machine {
public:
    using event = relay_event::any;
    using action = relay_action::any;

    /// `signalled`: what appears in the outbox is told by `source_changed`, so that an idle relay need not
    /// look for it.
    relay_machine(const relay_options& options, sink_view sink, bool signalled);
    relay_machine(const relay_machine&) = delete;
    relay_machine& operator=(const relay_machine&) = delete;
    ~relay_machine() = default;

    /// Advances by one event. `now` never decreases; `random` is used once or not at all.
    [[nodiscard]] std::vector<action> step(mono_time now, std::uint64_t random, event what);

    /// Everything deliverable has been delivered and deleted, as far as the last complete look could tell.
    [[nodiscard]] bool empty() const;
    [[nodiscard]] relay_counters counters() const;

    /// The lowest rows that were read and are not settled yet.
    [[nodiscard]] std::vector<row_id> unsettled(std::size_t most) const { return window_.lowest_known(most); }

    /// The latest trouble with anything that is tried again; none once nothing is left to deliver.
    [[nodiscard]] const std::optional<error>& last_error() const noexcept { return last_error_; }

    /// What the outbox has not done for longest: a deletion or a burial that failed or was not answered yet.
    [[nodiscard]] std::optional<overdue> late() const;

private:
    enum class mode : std::uint8_t { off, loading, running, draining, stopped };

    void on(relay_event::started& what);
    void on(relay_event::fetched& what);
    void on(relay_event::published& what);
    void on(relay_event::main_reset& what);
    void on(relay_event::removed& what);
    void on(relay_event::buried& what);
    void on(relay_event::start_loaded& what);
    void on(relay_event::source_changed& what);
    void on(relay_event::sink_changed& what);
    void on(relay_event::timer& what);
    void on(relay_event::drain& what);
    void on(relay_event::halt& what);

    // Reading.
    void looked(const fetch_reply& reply);
    void swept(const fetch_reply& reply, nanoseconds took);
    void changed(window::change what, const char* cause);
    void accept(const fetch_reply& reply, const std::vector<window::new_row>& rows);
    void place(std::vector<held_row> rows);
    void look_again(std::size_t found, bool more);
    void plan_fetch();
    void fetch(fetch_request request, bool is_sweep);
    [[nodiscard]] mono_time next_fetch() const;
    [[nodiscard]] bool has_room() const;
    [[nodiscard]] mono_time next_gap_look() const;
    void pack();
    [[nodiscard]] bool may_go_back() const;
    void go_back();
    [[nodiscard]] bool loads() const { return mode_ == mode::loading || mode_ == mode::running; }
    void load_start();

    // Publishing.
    struct room {
        std::size_t rows;
        std::size_t bytes;
    };
    [[nodiscard]] room client_room() const;
    void reopen_main();
    void hold(troubled_row row);
    [[nodiscard]] troubled_row suspected(held_row row) const;
    void reroute();
    void plan_lanes();
    void plan_main();
    void acknowledge(held_row row);

    void plan_remove();
    [[nodiscard]] row_id low_water() const;
    void plan_drain();
    void plan_wake();
    void lost(const error& why);
    void report(log_level level, std::string_view what, const error& why);
    void trouble(std::string_view what, const error& why);
    void report_rows(log_level level, std::string_view what, row_news news);
    void report_lanes(std::string_view what, std::size_t count, std::string_view meaning);
    void forget_all();
    void forget(held_row row);

    const relay_options options_;
    sink_view sink_;
    const nanoseconds idle_max_;
    mode mode_{mode::off};
    mono_time now_{};
    std::uint64_t random_{0};
    std::vector<action> actions_;
    std::uint64_t last_number_{0};

    window window_;
    held_rows memory_;
    main_channel main_;
    lanes lanes_;
    deletions deletions_;
    rate_limit rate_;

    struct pending_fetch {
        std::uint64_t number;
        mono_time sent;
        bool sweep;
        bool ahead;  ///< Not of the gaps alone.
    };
    std::optional<pending_fetch> fetching_;
    bool discard_reply_{false};  ///< The window was rebuilt while it was under way.
    bool changed_{false};        ///< The source signalled a change since the last fetch was sent.
    bool complete_look_{false};
    bool head_seen_{false};  ///< Read from the head, or swept since a start from a hint.
    mono_time last_fetch_{};
    mono_time next_look_{};
    mono_time next_gap_probe_{};
    mono_time next_sweep_{};
    mono_time next_rewind_{};
    row_id went_back_from_{};  ///< Of the last rewind, until the reading has come so far again.
    mono_time next_pack_{};
    mono_time fetch_not_before_{};
    nanoseconds idle_{0};
    backoff fetch_wait_;
    std::uint64_t loading_{0};  ///< The number of the outstanding `load_start`.
    std::optional<mono_time> load_at_;
    std::uint64_t removing_{0};
    backoff remove_wait_;
    settling deletes_{"deletion of delivered rows"};
    settling burials_{"burial of refused rows"};
    mono_time drain_deadline_{};
    std::optional<mono_time> wake_;
    relay_counters totals_;
    std::optional<error> last_error_;
};

}  // namespace millrace
