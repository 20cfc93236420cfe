/// The healthy rows of a relay: waiting by id, and in flight on the sink's main channel.
///
/// The channel is gapless: a first failure stops it, what is behind comes back untried, and after a reset
/// everything that was not acknowledged goes out again in order. Rows of lanes in trouble never come here.
/// The caller hands the rows and outcomes in and carries the requests out. Pure; no thread safety.
#pragma once

#include "port/event_sink.hpp"
#include "relay/held_rows.hpp"
#include "relay/options.hpp"
#include "retry/backoff.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

class main_channel {
public:
    explicit main_channel(const relay_options& options);

    struct request {
        std::uint64_t number;
        std::vector<outgoing_row> rows;
    };

    struct refused_row {
        held_row row;
        error why;
        bool alone;  ///< The sink named this row itself.
    };

    /// Rows by id, each unlike any that is here; they are merged with those that wait.
    void queue(std::span<const held_row> rows);

    /// Takes out the waiting rows for which `elsewhere` is true.
    template <class Predicate>
    [[nodiscard]] std::vector<held_row> take_out(Predicate elsewhere) {
        std::vector<held_row> taken;
        std::erase_if(waiting_, [&](const held_row& row) {
            if (!elsewhere(row)) return false;
            taken.push_back(row);
            return true;
        });
        return taken;
    }

    /// The next request, within what the sink takes and what may be in flight; nothing when none may go out.
    [[nodiscard]] std::optional<request> next(
        mono_time now, const event_sink::capacity& limits, std::size_t rows_room, std::size_t bytes_room
    );

    /// The rows of a request that were published. Unknown requests (of an earlier life) have none.
    [[nodiscard]] std::vector<held_row> published(std::uint64_t number, result<publish_outcome> outcome);

    /// True once after each failure: the channel must be reset.
    [[nodiscard]] bool take_reset(mono_time now);
    /// The reset that was taken is of probes, too.
    [[nodiscard]] bool resets_probes() const noexcept { return resetting_probes_; }
    void reset_done(mono_time now, std::uint64_t random, const result<void>& outcome);

    /// When the channel stands still after a failure and nothing is unknown any more: opens it again (after a
    /// back-off when no row was to blame) and returns the rows that were refused, by id. The others wait
    /// again.
    [[nodiscard]] std::optional<std::vector<refused_row>> reopen(mono_time now, std::uint64_t random);

    /// Topics that stopped the channel again, although no row of theirs was to blame: since the last call.
    [[nodiscard]] std::vector<std::string> take_unwell_topics() { return std::exchange(unwell_, {}); }

    /// Forgets all rows. The channel is reset before it is used again when any of them was in flight; with
    /// `probes`, which are forgotten likewise, the other channel, too.
    void clear(bool probes);

    /// Every request up to `number` was acknowledged; its rows went nowhere else.
    [[nodiscard]] bool settled(std::uint64_t number) const noexcept;
    [[nodiscard]] std::uint64_t last_request() const noexcept { return last_request_; }

    [[nodiscard]] bool in_flight() const noexcept { return !flying_.empty(); }
    [[nodiscard]] std::size_t rows_in_flight() const noexcept { return rows_in_flight_; }
    [[nodiscard]] std::size_t bytes_in_flight() const noexcept { return bytes_in_flight_; }
    [[nodiscard]] std::size_t rows_waiting() const noexcept { return waiting_.size(); }
    [[nodiscard]] std::uint64_t rows_retried() const noexcept { return rows_retried_; }
    [[nodiscard]] const std::optional<error>& trouble() const noexcept { return trouble_; }

    /// When something may be done without an event; far in the future when nothing.
    [[nodiscard]] mono_time due() const noexcept;

    void each_waiting(std::vector<held_row*>& into);

private:
    struct flight {
        std::uint64_t number;
        std::vector<held_row> rows;
        std::size_t count{0};
        std::size_t bytes{0};
        bool done{false};
    };

    void fail_rows(const flight& of, std::vector<row_failure> failures, std::vector<held_row>& acknowledged);
    void fail_row(held_row row, const error& why, bool alone, bool of_topic);
    void judge_stoppers(mono_time now);

    std::deque<held_row> waiting_;  // by id
    std::deque<flight> flying_;     // by number; the first is not done
    std::vector<held_row> untried_;
    std::vector<refused_row> refused_;
    struct stops {
        std::uint32_t count{0};
        mono_time latest;
    };
    std::set<std::string, std::less<>> stoppers_;           // of the present stop
    std::map<std::string, stops, std::less<>> stopped_by_;  // topics, of late
    std::vector<std::string> unwell_;
    const nanoseconds remember_stops_;
    std::uint64_t last_request_{0};
    std::size_t rows_in_flight_{0};
    std::size_t bytes_in_flight_{0};
    std::uint64_t rows_retried_{0};

    enum class state : std::uint8_t { open, to_reset, resetting, reset };
    state state_{state::open};
    bool probes_{false};  ///< Of an earlier life are under way.
    bool resetting_probes_{false};
    mono_time not_before_{};
    backoff wait_;
    std::optional<error> trouble_;
};

}  // namespace millrace
