/// What a relay tells people of its outbox. Asked for about once a second, so a source answers from a few
/// steps in an index and never counts rows.
#pragma once

#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace {

/// A transaction that could still fill a gap, and so keeps the low-water mark where it is. Times are unknown
/// where the relay's role may not see them.
struct gap_holder {
    std::int64_t pid{0};                         ///< 0 for a prepared transaction.
    std::optional<nanoseconds> transaction_age;  ///< Since it began.
    std::optional<nanoseconds> query_age;        ///< Since its present or latest statement began.

    bool operator==(const gap_holder&) const = default;
};

struct outbox_look {
    std::uint64_t backlog{0};               ///< Rows, estimated from the span of their ids.
    std::optional<nanoseconds> oldest_age;  ///< Of the row of the lowest id, by the database's clock.
    std::vector<gap_holder> holders;        ///< Oldest first, at most 10.

    bool operator==(const outbox_look&) const = default;
};

}  // namespace millrace
