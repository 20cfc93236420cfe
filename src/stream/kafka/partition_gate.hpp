/// Decides when the next row may follow to one partition.
///
/// A broker refuses what comes behind a refused batch only while it remembers the producer, so to a partition
/// whose last acknowledgement is too old (or that never had one) a single row goes first, and the others wait
/// until it is acknowledged. Where the topic takes only small batches, so much is under way as fits into one.
/// Pure; no thread safety.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace millrace::kafka {

class partition_gate {
public:
    /// A row that waits, by its request and its place there.
    struct row {
        std::uint32_t request;
        std::uint32_t place;
        std::uint32_t bytes;
    };

    struct limits {
        nanoseconds idle;             ///< An older acknowledgement counts for nothing.
        std::size_t batch_bytes_max;  ///< 0: no limit.
    };

    /// Whether a row that comes now may go at once.
    [[nodiscard]] bool lets_pass(mono_time now, std::size_t bytes, const limits& l) const {
        return waiting_.empty() && open(now, bytes, l);
    }
    void wait(row which) { waiting_.push_back(which); }

    /// The next that waits and may go now.
    [[nodiscard]] std::optional<row> next(mono_time now, const limits& l) {
        if (waiting_.empty() || !open(now, waiting_.front().bytes, l)) return std::nullopt;
        const auto first = waiting_.front();
        waiting_.pop_front();
        return first;
    }

    void sent(std::size_t bytes) noexcept {
        ++rows_;
        bytes_ += bytes;
    }

    /// `acknowledged`: when the row was handed over, if it was published. That is before the broker saw it,
    /// so the partition never counts as fresher than it is.
    void settled(std::size_t bytes, std::optional<mono_time> acknowledged) noexcept {
        --rows_;
        bytes_ -= bytes;
        if (acknowledged && (!fresh_ || *fresh_ < *acknowledged)) fresh_ = acknowledged;
    }

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] bool empty() const noexcept { return rows_ == 0 && waiting_.empty(); }

    /// A row was reported, or the first of some is under way.
    void moved(mono_time now) noexcept { moved_ = now; }

    /// Nothing was heard of its rows for so long.
    [[nodiscard]] bool is_silent(mono_time now, nanoseconds limit) const noexcept {
        return rows_ > 0 && now - moved_ > limit;
    }

    [[nodiscard]] std::deque<row> take_waiting() { return std::exchange(waiting_, {}); }

private:
    [[nodiscard]] bool open(mono_time now, std::size_t bytes, const limits& l) const noexcept {
        if (rows_ == 0) return true;
        if (!fresh_ || now - *fresh_ > l.idle) return false;
        return l.batch_bytes_max == 0 || bytes_ + bytes <= l.batch_bytes_max;
    }

    std::deque<row> waiting_;
    std::optional<mono_time> fresh_;
    mono_time moved_{};
    std::size_t rows_{0};
    std::size_t bytes_{0};
};

}  // namespace millrace::kafka
