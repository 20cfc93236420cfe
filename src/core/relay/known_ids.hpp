/// The ids of the rows that a relay knows: read, and not yet seen to be gone from the table.
///
/// Appending at the end and removing at the front, the usual case, cost O(1) and no allocation of their own;
/// everything else is a binary search. Pure; no thread safety.
#pragma once

#include <millrace/names.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace millrace {

class known_ids {
public:
    /// `id` must not be contained.
    void add(row_id id);
    void remove(row_id id);
    void clear();

    [[nodiscard]] bool contains(row_id id) const;
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size() - gone_; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// The lowest; there must be one.
    [[nodiscard]] row_id first() const { return entries_.front().id; }

    /// The lowest above `id`.
    [[nodiscard]] std::optional<row_id> first_above(row_id id) const;

    [[nodiscard]] std::vector<row_id> lowest(std::size_t most) const;

private:
    struct entry {
        row_id id;
        bool gone{false};
    };

    [[nodiscard]] std::deque<entry>::const_iterator find(row_id id) const;

    std::deque<entry> entries_;  // by id; the first is never gone
    std::size_t gone_{0};
};

}  // namespace millrace
