/// An outbox table: what the relay reads, and the short transactions by which it settles rows.
///
/// A source belongs to one host. The table is the truth: whatever is still in it is undelivered.
#pragma once

#include "port/host.hpp"

#include <millrace/names.hpp>
#include <millrace/record.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Inclusive.
struct id_range {
    row_id first;
    row_id last;

    auto operator<=>(const id_range&) const = default;
};

/// A row of the outbox; views point into its batch.
struct outbox_row {
    row_id id;
    std::string_view topic;
    std::optional<std::string_view> key;
    std::optional<std::string_view> value;
    std::span<const record_header> headers;
    std::optional<std::int32_t> partition;
    wall_time created_at;

    /// Why the row cannot be sent whatever the sink says (broken headers, wrong types); empty when well
    /// formed.
    std::string_view malformed;

    std::optional<wall_time> timestamp{};  ///< Of the record, as its writer chose it; otherwise the sink's.

    [[nodiscard]] std::size_t bytes() const noexcept {
        auto sum = sizeof(outbox_row) + topic.size() + key.value_or("").size() + value.value_or("").size();
        for (const auto& header : headers)
            sum += sizeof(header) + header.name.size() + header.value.value_or("").size();
        return sum;
    }
};

/// Rows in order of id, with the memory they point into. Filled once, then shared read-only.
class row_batch {
public:
    row_batch() = default;
    row_batch(const row_batch&) = delete;
    row_batch& operator=(const row_batch&) = delete;
    ~row_batch() = default;

    [[nodiscard]] std::span<const outbox_row> rows() const noexcept { return rows_; }
    void reserve(std::size_t rows) { rows_.reserve(rows); }
    void add(const outbox_row& row) { rows_.push_back(row); }

    /// As `record_batch::store`.
    [[nodiscard]] std::string_view store(std::string_view bytes) { return memory_.store(bytes); }
    [[nodiscard]] std::span<const record_header> store(std::vector<record_header> headers) {
        return memory_.store(std::move(headers));
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return memory_.bytes() + rows_.size() * sizeof(outbox_row);
    }

private:
    std::vector<outbox_row> rows_;
    record_batch memory_{shard_id{}};
};

/// One round: read-ahead first, then the gaps, in the same or a later snapshot.
struct fetch_request {
    row_id after;                    ///< Read-ahead begins above this id.
    std::size_t rows_max{1000};      ///< Of the read-ahead; 0 reads only the gaps.
    std::size_t bytes_max{1 << 20};  ///< At least one row is returned.
    std::vector<id_range> gaps;  ///< Ids that were skipped, ascending; rows that appeared there are returned.
    std::size_t gap_bytes_max{1 << 20};  ///< Of the rows in gaps, lowest first; at least one is returned.

    /// Also by a sweep. To name the writers is not free, so a source may leave them out when this is false.
    bool wants_writers{true};

    /// Set by a sweep, which needs no row above it. A source that would have to walk far to the next row may
    /// stop between two rows, and says so by `fetch_reply::looked_to`.
    std::optional<row_id> until{};
};

struct fetch_reply {
    std::shared_ptr<const row_batch> ahead;
    std::shared_ptr<const row_batch> filled;  ///< Rows found in the gaps, by id.
    bool more{false};                         ///< The read-ahead stopped at a limit.

    /// The next sweep, or read-ahead, goes on above this id: every row up to it that is not held back was
    /// returned. To be set only where that is above the last row, because rows of paused topics were passed
    /// over or a sweep stopped between two rows.
    std::optional<row_id> looked_to;
    bool gaps_more{false};  ///< The gaps above the last filled row were not looked at: `ahead` is void.

    /// Transactions that could still fill a gap, by an id that is stable while they last. Taken in a
    /// statement of its own that began after the read-ahead. A source whose snapshot shows every lower id
    /// that can still appear returns none.
    std::vector<std::uint64_t> writers;
    bool knows_writers{true};  ///< False: they were not wanted and not looked for.

    /// Changes when the table was re-created, restored or moved: the window must be rebuilt from the head.
    std::string table_identity;

    /// Changes when rows were put back, a key was un-parked or a pause ended: the window must be rebuilt from
    /// the head.
    std::uint64_t replay_generation{0};

    /// The highest id that the table's own sequence has given, not earlier than the read-ahead; zero where
    /// nobody knows. Ids of somebody's choice may lie far above it, and later rows begin behind it.
    row_id drawn{};

    /// The topics that are held back, as of the latest statement; an empty one stands for all. What a pause
    /// that was made meanwhile holds back may still be among the rows.
    std::vector<std::string> paused;
};

/// Rows that must keep their order among themselves; a row without a key is a lane of its own.
struct lane_key {
    std::string topic;
    std::optional<std::string> key;
    std::optional<std::int32_t> partition;

    auto operator<=>(const lane_key&) const = default;
};

/// What a relay must know before it reads under a new lease.
struct outbox_start {
    std::vector<lane_key> parked;  ///< The lanes that are parked now.

    /// A hint: nothing at or below it was waiting when it was written. Zero: read from the head.
    row_id low_water;

    /// Of what the hint was written for, as in `fetch_reply`: the hint is dropped when the first fetch tells
    /// otherwise, and not used at all without an identity.
    std::string table_identity;
    std::uint64_t replay_generation{0};
};

/// The table that rows were read from, and so what their ids mean.
struct table_mark {
    row_id low_water;            ///< Nothing waits at or below it. Zero when nothing can be said.
    std::string table_identity;  ///< As in the reply that the rows came with.
};

/// Moves rows to the dead letters. Locks the lease row and compares the epoch in the same transaction.
struct bury_request {
    enum class condition : std::uint8_t {
        none,            ///< Only these rows.
        park_lane,       ///< Also mark their lane as parked.
        lane_is_parked,  ///< Only if the lane still is; `conflict` otherwise, and nothing is moved.
    };

    std::vector<row_id> rows;
    lane_key lane;
    condition when{condition::none};
    std::string reason;  ///< Short and stable, such as `refused_record`.
    std::string detail;
    std::uint32_t attempts{1};
    nanoseconds tried_for{0};      ///< Since the first of these attempts was refused.
    std::string table_identity{};  ///< As in `table_mark`: of another table nothing is moved.
};

class outbox_source {
public:
    virtual ~outbox_source() = default;

    virtual void fetch(fetch_request request, completion<fetch_reply> done) = 0;

    /// Deletes delivered rows. The ranges hold only ids that this owner read and saw acknowledged, so it is
    /// safe under any epoch; the epoch only limits a zombie's work. Of another table than the one they were
    /// read from nothing is deleted. Returns the number of rows deleted; `not_owner` when ranges are given,
    /// nothing of them was deleted and the lease row holds another epoch.
    ///
    /// The low-water mark is remembered beside the lease now and then, at least when it falls to zero, as the
    /// hint for the next owner: never under another epoch, and never as a hint about another table, or a
    /// later replay generation than that of the latest fetch that was completed when this was called. A
    /// source that finds its head without walking dead entries need not remember it.
    virtual void remove(
        std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done
    ) = 0;

    /// `not_owner` when the lease row holds another epoch, or the table is another one.
    virtual void bury(bury_request request, epoch mine, completion<void> done) = 0;

    virtual void start(completion<outbox_start> done) = 0;

    /// As `record_source::watch`.
    virtual void watch(std::function<void()> changed) = 0;

    /// Whether each change is signalled to who watches, so that reads are hardly needed while there is none.
    /// A constant.
    [[nodiscard]] virtual bool signals_changes() const { return false; }
};

}  // namespace millrace
