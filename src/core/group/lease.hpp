/// The lease of one shard as a state machine: take, advance, persist, release, finish.
///
/// Every write names the version it expects, so a stale owner is refused and nothing is rewound; every write
/// starts from the row as it was last read, so no field is lost. At most one request is outstanding. When a
/// reply is lost or a write is refused, the row is read again and decides: while it names this session under
/// this epoch we go on from its version and ask again for what is still wanted; otherwise the lease is over.
/// That also covers a write that lands after the row was read again, and a handler that moves checkpoint and
/// version in transactions of its own: what the row says is kept. No I/O and no clock; `updated_at` is left
/// to the caller. Once over, a lease stays over. Lives on one thread.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace millrace {

class lease_machine {
public:
    /// Become the owner, under an epoch above the row's and above `above`; in all-shards mode only the epoch
    /// is raised, and the former owner's name goes.
    struct take {
        millrace::epoch above;
    };
    /// The row names this session already (an earlier take landed late), or no owner is ever written.
    struct adopt {};
    struct persist {};
    struct release {};
    struct finish {
        wall_time at;
    };
    struct timer {};
    struct write_done {
        result<void> outcome;
    };
    struct read_done {
        result<std::optional<shard_row>> outcome;
    };
    /// The row as a listing showed it that is younger than what is known here.
    struct observed {
        shard_row row;
    };
    struct session_over {
        error why;
    };
    using event = std::
        variant<take, adopt, persist, release, finish, timer, write_done, read_done, observed, session_over>;

    struct write {
        shard_row row;
        version expected;
        bool operator==(const write&) const = default;
    };
    struct read {
        bool operator==(const read&) const = default;
    };
    struct taken {
        bool operator==(const taken&) const = default;
    };
    /// Somebody else was first, or the store is not usable. Nothing of ours is in doubt.
    struct refused {
        error why;
        bool operator==(const refused&) const = default;
    };
    /// Answers the first `upto` requests to persist.
    struct persisted {
        std::uint64_t upto;
        result<void> outcome;
        bool operator==(const persisted&) const = default;
    };
    struct released {
        bool operator==(const released&) const = default;
    };
    struct finished {
        bool operator==(const finished&) const = default;
    };
    /// The lease is over without our doing; whatever was still asked for has failed.
    struct lost {
        error why;
        bool operator==(const lost&) const = default;
    };
    using action = std::variant<write, read, taken, refused, persisted, released, finished, lost>;

    enum class state : std::uint8_t { idle, taking, held, refused, released, finished, lost };

    /// `mine` is empty in all-shards mode: then no owner is written, and only a known version or a write id
    /// of ours proves that the row is still as we left it.
    lease_machine(shard_row row, incarnation mine, std::function<std::uint64_t()> random);

    [[nodiscard]] std::vector<action> step(mono_time now, const event& what);

    /// Remembers a position; memory only. Errors: `not_owner`, `already_released`, `already_finished`,
    /// `invalid_argument` if it would go back.
    result<void> advance(mono_time now, millrace::epoch e, const checkpoint& reached, std::uint64_t records);

    /// Whether the handle with this epoch may still be used; the error that its use would give.
    [[nodiscard]] result<void> usable(millrace::epoch e) const;

    [[nodiscard]] state now_in() const { return state_; }
    [[nodiscard]] bool active() const { return state_ == state::taking || state_ == state::held; }

    /// The lease is over because the row was read and is not there: somebody deleted it, or the whole store
    /// was made anew.
    [[nodiscard]] bool row_gone() const noexcept { return row_gone_; }

    /// The row as last read or as our last confirmed write left it.
    [[nodiscard]] const shard_row& row() const { return row_; }

    /// The epoch of the lease, also after its end.
    [[nodiscard]] millrace::epoch epoch() const { return epoch_; }

    [[nodiscard]] bool releasing() const { return want_release_; }
    [[nodiscard]] bool dirty() const { return reached_ && reached_ != row_.checkpoint; }
    [[nodiscard]] bool writing() const { return outstanding_; }
    [[nodiscard]] std::uint64_t unwritten_records() const { return unwritten_; }

    /// When the first acknowledgement came that is not yet written.
    [[nodiscard]] std::optional<mono_time> unwritten_since() const { return unwritten_since_; }

    /// The number of requests to persist so far: the ticket of the latest.
    [[nodiscard]] std::uint64_t persist_requests() const { return persist_asked_; }

    /// When `step` wants a `timer`; empty while only a reply or a request can move it.
    [[nodiscard]] std::optional<mono_time> wake() const;

private:
    enum class aim : std::uint8_t { take, persist, release, finish };

    void request_next(mono_time now);
    void send(aim what, shard_row next);
    void succeed(mono_time now);
    void written();
    void judge(mono_time now, const error& why);
    void decide(mono_time now, const std::optional<shard_row>& row);
    void decide_take(mono_time now, const shard_row& row);
    void hold(mono_time now);
    void end(state how, action what);
    void answer_persists(std::uint64_t upto, const result<void>& outcome);
    void back_off(mono_time now);
    [[nodiscard]] bool still_mine(const shard_row& row) const;
    [[nodiscard]] bool has_proof(const shard_row& row) const;
    [[nodiscard]] error not_mine(const shard_row& row) const;

    shard_row row_;
    incarnation mine_;
    std::function<std::uint64_t()> random_;
    state state_{state::idle};
    millrace::epoch epoch_;
    std::vector<action> actions_;

    bool outstanding_{false};
    bool must_read_{false};
    bool row_gone_{false};
    aim aim_{aim::take};
    std::optional<shard_row> sent_;             // the write that is outstanding or was last
    std::vector<millrace::write_id> unproved_;  // all-shards mode: writes in doubt, bounded
    std::uint32_t failures_{0};
    mono_time retry_at_{};

    millrace::epoch take_above_;
    bool want_release_{false};
    bool want_finish_{false};
    wall_time finish_at_{};
    std::uint64_t persist_asked_{0};
    std::uint64_t persist_answered_{0};
    std::uint64_t persist_sent_{0};

    std::optional<checkpoint> reached_;
    std::uint64_t unwritten_{0};
    std::uint64_t unwritten_sent_{0};
    std::optional<mono_time> unwritten_since_;
    std::optional<mono_time> unwritten_since_sent_;  // of what was acknowledged after the outstanding write
};

}  // namespace millrace
