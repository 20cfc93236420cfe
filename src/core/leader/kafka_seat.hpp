/// Leadership by the group protocol of goharvest, as a state machine: who owns partition 0 of the leader
/// topic leads.
///
/// The owner writes heartbeat records `<unix ns>%<name>` to partition 0 and leads while its own come back:
/// from the first one that was written under the present assignment, until the sending of the latest that
/// came back plus the time-out. That is far below the group's session time-out, after which another owner
/// may be chosen. Records of others prove nothing, but one that lies behind own ones is of a successor and
/// ends the lead at once. When the partition is taken back in order, the relay drains first. No I/O; the
/// clock is a monotonic one, wall time only names a record. Lives on one thread.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

struct kafka_seat_options {
    std::string name;  ///< Without %.
    nanoseconds heartbeat_timeout{std::chrono::seconds{5}};

    /// How long a leader that gave way stays out of the group.
    nanoseconds away{std::chrono::seconds{15}};
};

class kafka_seat {
public:
    // What happens.
    struct begin {};
    struct assigned {
        bool first;  ///< Partition 0 is among them.
    };
    struct revoked {
        bool in_order;  ///< False: others may own it already.
    };
    struct record_seen {
        std::string_view value;  ///< Of partition 0.
    };
    struct drained {};   ///< The relay has given back what `retire` asked for.
    struct give_way {};  ///< To whoever waits in the group.
    struct stop {};
    struct left {};  ///< The client is closed.
    struct broken {
        error why;  ///< The client cannot go on.
    };
    struct tick {};
    using event =
        std::variant<begin, assigned, revoked, record_seen, drained, give_way, stop, left, broken, tick>;

    // What is to be done.
    struct join {};  ///< Make a client and subscribe.
    struct send {
        std::string value;  ///< To partition 0.
    };
    struct lead {};
    struct retire {};  ///< Drain, then `drained`; it still leads until the deadline.
    struct lose {
        error why;  ///< Stop at once.
    };
    struct unassign {};  ///< Answers `revoked`.
    struct leave {};     ///< Close the client, then `left`.
    struct stopped {};
    using action = std::variant<join, send, lead, retire, lose, unassign, leave, stopped>;

    explicit kafka_seat(kafka_seat_options options);

    [[nodiscard]] std::vector<action> step(mono_time now, wall_time wall, const event& what);

    /// Nothing may be done as the leader at or after it; the past when not leading.
    [[nodiscard]] mono_time deadline() const;

    /// When `step` wants a `tick` at the latest.
    [[nodiscard]] std::optional<mono_time> wake() const;

private:
    enum class phase : std::uint8_t { idle, member, leaving, away, stopped };

    void on(const begin&);
    void on(const assigned& what);
    void on(const revoked& what);
    void on(const record_seen& what);
    void on(const drained&);
    void on(const give_way&);
    void on(const stop&);
    void on(const left&);
    void on(const broken& what);
    void on(const tick&);
    void another_beats();
    void go();
    void lost(std::string why);
    void settle();

    const kafka_seat_options options_;
    mono_time now_{};
    wall_time wall_{};
    std::vector<action> actions_;

    phase phase_{phase::idle};
    bool stopping_{false};
    bool owner_{false};
    bool leads_{false};
    bool retiring_{false};
    bool owes_unassign_{false};
    bool leave_asked_{false};
    bool contested_{false};               ///< The lead was lost to the heartbeat of another.
    std::optional<mono_time> confirmed_;  // the sending of the latest heartbeat that came back
    mono_time next_beat_{};
    mono_time back_at_{};
    std::int64_t last_stamp_{0};
    std::deque<std::pair<std::int64_t, mono_time>> sent_;  // heartbeats that have not come back, bounded
};

/// A heartbeat's time and sender; empty if it is none.
[[nodiscard]] std::optional<std::pair<std::int64_t, std::string_view>> parse_heartbeat(std::string_view value
);

}  // namespace millrace
