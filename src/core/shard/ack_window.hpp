/// Which records of one shard are acknowledged: in any order, and how far without a gap.
///
/// Records are named by a running index that counts from zero in the order of `push`; batches are kept until
/// all below their end is acknowledged. In-order acknowledgement costs a comparison and no memory; a batch
/// that is acknowledged out of order gets one bit a record. The caller bounds what it pushes by `size`.
/// Thread contract: none; one owner.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/position.hpp>
#include <millrace/record.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

class ack_window {
public:
    using index = std::uint64_t;

    /// A record by its batch and the place there.
    struct place {
        const std::shared_ptr<const record_batch>& batch;
        std::size_t at;
    };

    /// Positions of the batch are greater than all pushed before.
    void push(std::shared_ptr<const record_batch> batch);

    /// Acknowledges first..last (inclusive) as far as they are in the window; repeats are harmless. Returns
    /// how many were not acknowledged before.
    std::uint64_t acknowledge(index first, index last);

    /// Acknowledges every record up to and including the position, which need not be that of a record.
    std::uint64_t acknowledge_up_to(const position& last);

    [[nodiscard]] bool acknowledged(index i) const;

    /// The first record at or after `from` that is not acknowledged; `end()` when there is none.
    [[nodiscard]] index next_unacknowledged(index from) const;

    /// The record must be in the window. The reference lasts until the next call that is not const.
    [[nodiscard]] place at(index i) const;

    /// Forgets the records from `from` on, which nobody was given.
    void truncate(index from);

    /// All below is acknowledged.
    [[nodiscard]] index low() const noexcept { return low_; }
    [[nodiscard]] index end() const noexcept { return end_; }

    /// Records from the lowest unacknowledged to the last one pushed.
    [[nodiscard]] std::uint64_t size() const noexcept { return end_ - low_; }
    [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return size() - ahead_; }

    /// The record below `low()`; none before the first acknowledgement.
    [[nodiscard]] const std::optional<checkpoint>& reached() const noexcept { return reached_; }

private:
    struct segment {
        index first;
        index end;
        std::shared_ptr<const record_batch> batch;
        std::vector<std::uint64_t> bits;  // acknowledged; empty when none of it is, out of order
    };

    [[nodiscard]] std::size_t segment_of(index i) const;
    std::uint64_t set_bits(index first, index last);
    std::uint64_t count_bits(index first, index last) const;
    void advance_low(index to);

    std::deque<segment> segments_;
    index low_{0};
    index end_{0};
    std::uint64_t ahead_{0};  // acknowledged records at or above low_
    std::optional<checkpoint> reached_;
};

}  // namespace millrace
