/// Raises the epoch of a shard's row for a leader that was chosen elsewhere, by compare-and-set, as a state
/// machine.
///
/// Whoever raised it last leads; what an earlier leader still decides is refused. In doubt, or refused, the
/// row is read again: only a write id of this raise proves that it took effect. A row that is missing is
/// made, above the group's floor. It goes on until it has succeeded; whoever is no longer chosen drops it.
/// No I/O and no clock; `updated_at` is left to the caller. Lives on one thread.
#pragma once

#include "port/lease_store.hpp"
#include "retry/backoff.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace millrace {

class epoch_raise {
public:
    struct timer {};
    struct row_read {
        result<std::optional<shard_row>> outcome;
    };
    struct group_read {
        result<std::optional<group_row>> outcome;
    };
    struct row_written {
        result<void> outcome;
    };
    using event = std::variant<timer, row_read, group_read, row_written>;

    struct read_row {
        bool operator==(const read_row&) const = default;
    };
    struct read_group {
        bool operator==(const read_group&) const = default;
    };
    struct write_row {
        shard_row row;
        std::optional<version> expected;
        bool operator==(const write_row&) const = default;
    };
    struct raised {
        millrace::epoch epoch;
        bool operator==(const raised&) const = default;
    };
    /// It is tried again at `wake()`.
    struct trouble {
        error why;
        bool operator==(const trouble&) const = default;
    };
    using action = std::variant<read_row, read_group, write_row, raised, trouble>;

    /// The new epoch is above the row's and above `above`: the highest that this process knows of.
    epoch_raise(
        shard_id shard, incarnation owner, millrace::epoch above, std::function<std::uint64_t()> random
    );

    /// The first action.
    [[nodiscard]] action begin();
    [[nodiscard]] std::optional<action> step(mono_time now, const event& what);

    /// When `step` wants a `timer`; empty while only a reply can move it.
    [[nodiscard]] std::optional<mono_time> wake() const { return retry_at_; }

private:
    [[nodiscard]] action decide(const std::optional<shard_row>& row);
    [[nodiscard]] action write(shard_row next, std::optional<version> expected);
    [[nodiscard]] action retry(mono_time now, const error& why);

    shard_id shard_;
    incarnation owner_;
    millrace::epoch above_;
    std::function<std::uint64_t()> random_;
    backoff wait_;
    int refused_{0};  // writes in a row, without a pause
    std::optional<mono_time> retry_at_;
    std::optional<shard_row> sent_;
    std::vector<write_id> unproved_;  // of the latest writes, bounded
};

}  // namespace millrace
