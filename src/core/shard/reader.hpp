/// Decides when one shard is read and from where.
///
/// Keeps the position of the last record that was *read*, apart from what is acknowledged: a cursor that must
/// be renewed goes on there. If nothing was read yet it goes back to the start, which is never LATEST: a
/// group pins that to a moment when it begins, so that a renewal never skips what came in between.
///
/// It keeps to the limits of the stream (`read_pace.hpp`) and to the user's shortest interval.
///
/// A shard that the source says it does not have is at its end only when a complete listing lacks it, too:
/// a stale answer, or a file that was away for a moment, ends nothing. Until then it is asked again.
///
/// Every step answers with one action, which replaces the one before. Whether there is room for a `read` is
/// the caller's business: it may carry it out later, at the price of a cursor that has expired by then.
/// Thread contract: none; one owner.
#pragma once

#include "port/record_source.hpp"
#include "retry/backoff.hpp"
#include "shard/options.hpp"
#include "shard/read_pace.hpp"

#include <millrace/error.hpp>
#include <millrace/position.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

namespace millrace {

class shard_reader {
public:
    /// What to do next.
    struct open {
        start_position start;
        bool operator==(const open&) const = default;
    };
    struct read {
        read_cursor cursor;
        bool operator==(const read&) const = default;
    };
    struct wait {
        mono_time until;  ///< Then `woken`; a change of the source may come sooner.
        bool operator==(const wait&) const = default;
    };
    struct await {  ///< A request is under way, or the last `read` is still to be carried out.
        bool operator==(const await&) const = default;
    };
    struct end {  ///< Nothing follows, now or later.
        bool operator==(const end&) const = default;
    };
    using action = std::variant<open, read, wait, await, end>;

    /// What happened.
    struct started {};
    struct opened {
        read_cursor cursor;
    };
    struct records {
        std::optional<read_cursor> next;
        std::optional<position> last;  ///< Of the last record; none when the reply is empty.
        milliseconds behind{0};
        mono_time sent;        ///< When the request was sent.
        std::size_t bytes{0};  ///< As the stream counts them.
    };
    struct failed {  ///< The open or the read under way.
        error why;
        bool unlisted{false};  ///< The latest complete listing of the stream lacks the shard.
    };
    struct woken {};
    struct changed {};  ///< The source says that there may be more.
    using event = std::variant<started, opened, records, failed, woken, changed>;

    /// What a person should know of.
    enum class notice : std::uint8_t {
        none,
        gap,      ///< Records between the last position and the horizon are gone; once per shard and lease.
        missing,  ///< The source denies a shard that is listed; said at the 1st, 2nd, 4th, ... denial in a
                  ///< row.
        shard_gone,  ///< Denied and unlisted: what was not read is lost unless the shard comes back.
        failing      ///< Said at the 1st, 2nd, 4th, ... failure in a row; throttling from the 8th on.
    };
    struct outcome {
        action next;
        notice say{notice::none};
    };

    shard_reader(const shard_options& options, start_position start);

    /// `now` never decreases. One random number a step.
    [[nodiscard]] outcome step(mono_time now, std::uint64_t random, const event& what);

    /// At the newest record, as of the last read, or at the end. False while requests fail.
    [[nodiscard]] bool at_tip() const noexcept { return at_tip_; }
    [[nodiscard]] std::uint64_t failures() const noexcept { return backoff_.failures(); }

private:
    [[nodiscard]] start_position reopen_at() const;
    [[nodiscard]] action request();
    [[nodiscard]] action request_in_turn(mono_time now);
    [[nodiscard]] action pause_until(mono_time when);
    [[nodiscard]] mono_time whole_interval(mono_time due) const;
    [[nodiscard]] outcome on(mono_time now, std::uint64_t random, const records& what);
    [[nodiscard]] outcome on(mono_time now, std::uint64_t random, const failed& what);
    [[nodiscard]] action on_changed(mono_time now);

    enum class state : std::uint8_t { idle, requesting, pausing, calm, ended };

    nanoseconds read_interval_;
    nanoseconds tip_interval_;
    backoff backoff_;
    read_pace pace_;
    start_position start_;
    std::optional<position> last_read_;
    std::optional<read_cursor> cursor_;
    state state_{state::idle};
    mono_time until_{};      // while pausing or calm
    mono_time next_read_{};  // not sooner than the read interval allows
    bool changed_{false};    // while a request was under way
    bool at_tip_{false};
    bool gap_said_{false};
};

}  // namespace millrace
