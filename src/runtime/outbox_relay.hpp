/// One outbox of a relay: its source, its sink, what moves rows between them while it is led, and how it
/// fares.
///
/// Lives on the loop. What is missing or out of reach is told (log, status) and tried again. Only the `stop`
/// policy and a leadership that has ended for good end its work.
#pragma once

#include "adapters.hpp"
#include "event_loop.hpp"
#include "leadership.hpp"
#include "paced_log.hpp"
#include "relay_driver.hpp"
#include "schemas.hpp"

#include <millrace/outbox_look.hpp>
#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

class outbox_relay final : public seat_holder {
public:
    /// `changed` is called when it begins or ceases to lead, and when its work has ended. References must
    /// outlive it.
    [[nodiscard]] static result<std::unique_ptr<outbox_relay>> open(
        event_loop& loop,
        const relay_settings& settings,
        const url& outbox,
        const url& sink,
        std::shared_ptr<schemas> coding,
        std::function<void()> changed
    );

    /// Before anything else.
    void attach(leadership& by, std::size_t seat);

    /// Looks at outbox and sink, each with its outcome. `note` what was found.
    using looks = std::function<void(const result<void>& outbox, const result<void>& sink)>;
    void look(looks done);
    void note(const result<void>& found);

    /// About four times a second.
    void beat();

    /// Counts the rows that are there, for `status`.
    void see_rows(completion<void> done);

    [[nodiscard]] const std::string& address() const noexcept { return address_; }
    [[nodiscard]] bool leading() const noexcept { return leading_; }
    [[nodiscard]] std::size_t seat() const noexcept { return seat_; }

    /// Everything deliverable is delivered.
    [[nodiscard]] bool done() const { return leading_ && driver_->empty(); }

    /// Another relay leads, and the latest look found no row. Only with `once`.
    [[nodiscard]] bool done_by_another() const;

    /// What was read from or written to is damaged: waiting mends nothing.
    [[nodiscard]] bool damaged() const;

    /// Nothing came of anything for so long: there is no point in waiting for the end.
    [[nodiscard]] bool stuck_for(nanoseconds span) const;

    /// Its leadership has ended for good: so does its work.
    void give_up(const error& why);

    /// Why its work has ended.
    [[nodiscard]] const std::optional<error>& ended() const noexcept { return ended_; }
    /// From now on it is to get somewhere; what it waited for before does not count (`stuck_for`).
    void begin() { progress_at_ = loop_.now(); }

    /// The run ends: nobody is asked any more whether he is there.
    void retire();
    [[nodiscard]] seat_reach reach() const;
    [[nodiscard]] std::vector<row_id> unsettled() const { return driver_->unsettled(); }
    [[nodiscard]] relay_status status() const;

    void lead(epoch mine) override;
    void give_back(std::function<void()> done) override;
    void lost(const error& why) override;

private:
    outbox_relay(
        event_loop& loop, const relay_settings& settings, std::string address, std::function<void()> changed
    );
    void stopped(const error& why);
    void set_leading(bool leads, leadership_change::kind what, const std::string& why);
    void watch_deadline();
    void watch_progress();
    void watch_leader();
    void look_now();
    void note_silence();
    [[nodiscard]] bool sink_is_missed() const;
    [[nodiscard]] bool lasts(const std::optional<mono_time>& since) const;  ///< Long enough to be told.
    /// `sink`: what a look at it just found.
    void look_at_rows(const result<void>& sink);
    void measure();
    [[nodiscard]] std::optional<outbox_look> rows_seen() const;
    /// Empty: it is.
    [[nodiscard]] std::string why_not_ready() const;
    [[nodiscard]] std::optional<error> trouble() const;

    event_loop& loop_;
    const relay_settings& settings_;
    std::string address_;
    std::function<void()> changed_;
    paced_log log_;
    std::unique_ptr<outbox_source> source_;
    std::function<void(completion<outbox_look>)> look_at_outbox_;
    std::function<void(completion<void>)> check_outbox_;
    std::shared_ptr<schemas> coding_;  ///< Null without rules.
    std::unique_ptr<event_sink> sink_;
    std::function<void(completion<void>)> look_at_sink_;
    std::unique_ptr<relay_driver> driver_;
    leadership* by_{nullptr};
    std::size_t seat_{0};

    bool leading_{false};
    bool draining_{false};
    bool retired_{false};
    bool suspended_{false};  ///< The deadline has passed; the lease may still be confirmed.
    epoch epoch_;
    std::optional<error> ended_;

    bool behind_another_{false};  ///< With `once`: another relay leads.
    bool waiting_said_{false};

    std::optional<outbox_look> seen_;
    mono_time seen_at_{};
    bool seen_waiting_{false};      ///< While not leading.
    std::optional<error> missing_;  ///< What the latest look found.
    bool sink_missing_{false};      ///< It found that of the sink.
    bool looked_{false};
    bool looking_{false};
    mono_time look_due_{};

    std::uint64_t progress_{0};
    mono_time progress_at_{};
    mono_time started_{};
    mono_time measured_at_{};
    std::uint64_t measured_{0};
    lifetime alive_;
};

}  // namespace millrace
