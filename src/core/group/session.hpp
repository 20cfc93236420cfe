/// The session of one worker as a state machine.
///
/// It waits until no other session has its worker id, registers a worker row, renews it, notices that others
/// ended it, registers anew and deregisters. It does no I/O and reads no clock: the caller carries out each
/// action, reports how it ended, and calls again at `wake()` at the latest. At most one request is
/// outstanding. It leaves `worker_row::updated_at` to the caller. Lives on one thread.
#pragma once

#include "group/lapse.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace millrace {

struct session_options {
    millrace::worker_id worker;
    nanoseconds lease{std::chrono::seconds{10}};

    /// The owner stops this long before the lease is over; zero means a fifth of it.
    nanoseconds margin{0};

    /// Between two heartbeats; zero means a fifth of the lease.
    nanoseconds heartbeat{0};

    /// Names the first value that is out of range.
    [[nodiscard]] result<void> validate() const;

    /// With the defaults of `margin` and `heartbeat` filled in.
    [[nodiscard]] session_options resolved() const;
};

class session_machine {
public:
    struct begin {};  ///< Register.
    struct end {};    ///< Deregister, for good.
    struct rows_changed {};
    struct timer {};
    struct write_done {
        result<void> outcome;
    };
    struct read_done {
        result<std::optional<worker_row>> outcome;
    };
    struct list_done {
        result<std::vector<worker_row>> outcome;
    };
    struct remove_done {
        result<void> outcome;
    };
    using event =
        std::variant<begin, end, rows_changed, timer, write_done, read_done, list_done, remove_done>;

    struct write {
        worker_row row;
        std::optional<version> expected;
        bool operator==(const write&) const = default;
    };
    struct read {
        incarnation session;
        bool operator==(const read&) const = default;
    };
    struct list {
        bool operator==(const list&) const = default;
    };
    struct remove {
        incarnation session;
        version expected;
        bool operator==(const remove&) const = default;
    };
    /// Nothing is registered before this session under the same id has ended.
    struct waits {
        worker_row elder;
        bool operator==(const waits&) const = default;
    };
    struct started {
        incarnation session;
        bool operator==(const started&) const = default;
    };
    struct lost {
        incarnation session;
        error why;
        bool operator==(const lost&) const = default;
    };
    struct stopped {
        result<void> outcome;
        bool operator==(const stopped&) const = default;
    };
    using action = std::variant<write, read, list, remove, waits, started, lost, stopped>;

    /// `gone` as that of `lapse_observer`: who has ended on this machine does not hold the id.
    session_machine(
        session_options options,
        process_identity self,
        lapse_observer::process_gone gone,
        std::function<std::uint64_t()> random
    );

    /// `now` never decreases between calls.
    [[nodiscard]] std::vector<action> step(mono_time now, const event& what);

    /// The loop was seen turning at `when`. Without it for a lease time nothing is renewed.
    void loop_turned(mono_time when);

    /// A lost session waits for the loop before a new one is registered.
    [[nodiscard]] bool waits_for_loop(mono_time now) const;

    /// Nothing may be done under the session at or after this moment; empty without a session.
    [[nodiscard]] std::optional<mono_time> deadline() const { return deadline_; }

    /// The latest session, also while it is being registered or is over.
    [[nodiscard]] const incarnation& session() const { return session_; }

    /// When `step` wants a `timer` at the latest; empty while only a reply can move it.
    [[nodiscard]] std::optional<mono_time> wake(mono_time now) const;

private:
    enum class phase : std::uint8_t { idle, looking, registering, live, over, stopping, stopped };
    enum class request : std::uint8_t { none, write, read, list, remove };

    /// A write that was sent and of which no reply has proved anything yet.
    struct unproved {
        millrace::write_id id;
        mono_time sent;
    };

    /// An older session under the same worker id.
    struct namesake {
        version counter;
        int moves{0};
    };

    void register_anew(mono_time now);
    void send_heartbeat(mono_time now);
    void request_next(mono_time now);
    void clear_own_row(mono_time now);
    void confirm(mono_time now, version counter, mono_time sent);
    void adopt(mono_time now, const worker_row& row);
    void lose(mono_time now, std::string why, bool row_is_gone);
    void row_gone(mono_time now);
    void stop_now(mono_time now);
    void finish_stop(result<void> outcome);
    void judge(mono_time now, const error& why);
    void check_limits(mono_time now);
    void watch_namesakes(mono_time now, const std::vector<worker_row>& rows);
    void register_if_free(mono_time now, const std::vector<worker_row>& rows);

    void on(mono_time now, const begin&);
    void on(mono_time now, const end&);
    void on(mono_time now, const rows_changed&);
    void on(mono_time now, const timer&) const;
    void on(mono_time now, const write_done& reply);
    void on(mono_time now, const read_done& reply);
    void on(mono_time now, const list_done& reply);
    void on(mono_time now, const remove_done& reply);

    session_options options_;
    process_identity self_;
    lapse_observer on_this_machine_;
    std::function<std::uint64_t()> random_;

    phase phase_{phase::idle};
    request outstanding_{request::none};
    std::vector<action> actions_;

    incarnation session_;
    std::optional<version> known_;  // the counter of our row as last seen; empty before it exists
    std::uint64_t creations_{0};    // attempts to create it under this incarnation
    std::vector<unproved> unproved_;
    std::optional<mono_time> deadline_;
    bool must_read_{false};
    bool row_may_exist_{false};
    bool ever_confirmed_{false};
    std::string trouble_;  // why the latest request failed; empty once one is confirmed
    bool stop_reported_{false};
    std::uint64_t changes_{0};
    bool changes_unsent_{false};

    mono_time next_heartbeat_{};
    mono_time retry_at_{};
    mono_time loop_turned_{};
    mono_time
        clear_at_{};  // our old row is removed no earlier: an act begun before the deadline may still run
    mono_time give_up_at_{};  // deregistering

    std::optional<std::map<incarnation, namesake>> namesakes_;  // empty until the first listing
    mono_time next_list_{};
    bool wait_told_{false};
};

}  // namespace millrace
