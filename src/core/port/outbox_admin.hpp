/// What people and the command line do with an outbox, whatever database it is in: write to it, look at it,
/// hold it back, settle its dead letters.
///
/// Synchronous, on a connection of its own; not thread-safe. Relays may run meanwhile. Every function that
/// writes is one durable transaction: all of it, or nothing.
#pragma once

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct outbox_stats {
    std::uint64_t backlog{0};
    std::uint64_t dead{0};
    std::uint64_t parked_lanes{0};
    std::optional<nanoseconds> oldest_age;   ///< Of the row of the lowest id, by the database's clock.
    bool paused{false};                      ///< All of it.
    std::vector<std::string> paused_topics;  ///< In order; also while all of it is paused.
};

/// A row that was given up, and why.
struct dead_event {
    row_id id;
    millrace::event event;
    std::string broken_headers;  ///< Why the headers cannot be read; then `event` has none.
    std::string stored_headers;  ///< And what stands in their place.
    wall_time created_at;
    std::string reason;  ///< Short and stable, such as `refused_record`.
    std::string error;
    std::uint32_t attempts{0};
    wall_time first_at;  ///< When it was refused first, and when it was given up.
    wall_time last_at;
};

/// Which dead letters; what is set must all hold, and nothing set means all. Of several with one id, `retry`
/// and `drop` by id take the oldest.
struct dead_selection {
    std::vector<row_id> ids;  ///< One of these; empty: any.
    std::optional<std::string> topic;
    std::optional<std::string> key;
};

/// What is read of dead letters. They are often the largest rows of all: who lists many needs no payload.
enum class dead_part : std::uint8_t { whole, without_payload };

/// The error of a retry that put `moved` rows back and had to leave those of `ids`.
[[nodiscard]] error dead_that_stay(std::uint64_t moved, const std::vector<row_id>& ids);

class outbox_admin {
public:
    virtual ~outbox_admin() = default;

    /// Returns the id of the last event, which is the highest; nothing for no events. What a sink does not
    /// take is its own verdict, so only the database's limits hold.
    virtual result<std::optional<row_id>> put(std::span<const event> events) = 0;

    [[nodiscard]] virtual result<outbox_stats> stats() = 0;

    /// By id, at most `limit`.
    [[nodiscard]] virtual result<std::vector<dead_event>> list_dead(
        const dead_selection& which, std::size_t limit, dead_part part
    ) = 0;

    /// Puts rows back under their old ids and un-parks their lanes, and returns how many. Of a parked lane
    /// all dead letters come back, also those that were not asked for: a part of them would be sent out of
    /// order. Where the outbox was made anew, ids come again: a lane with a row whose id is taken, or that
    /// has an older dead letter of the same id, stays as it is. `conflict` names such rows, after the others
    /// were put back.
    virtual result<std::uint64_t> retry_dead(const dead_selection& which) = 0;

    /// Deletes dead letters for good and returns how many. A lane whose last dead letter goes is un-parked.
    virtual result<std::uint64_t> drop_dead(const dead_selection& which) = 0;

    /// Relays read no more rows of the topic, or, without one, no more rows at all. What they have read
    /// already still goes out. False when it was so before.
    virtual result<bool> pause(const std::optional<std::string>& topic) = 0;

    /// Undoes exactly such a pause: without a topic, topics that were paused by name stay so. Relays go back
    /// to the lowest row. False when there was none.
    virtual result<bool> resume(const std::optional<std::string>& topic) = 0;
};

}  // namespace millrace
