/// Ids that were skipped while reading ahead and may still be filled, and the proof that they will not.
///
/// A gap is dead when every writer that was seen after it was skipped is gone, and a probe of a later round
/// still misses it; without a look at the writers it stays; never by one reply, whose probe and list of
/// writers have different snapshots. Memory is flat: above a limit, neighbours are merged and re-scanned as
/// one range. Pure; no thread safety.
#pragma once

#include "port/outbox_source.hpp"

#include <millrace/names.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

/// Since which round each writer has been seen without a break.
class writer_watch {
public:
    void observe(std::uint64_t round, std::span<const std::uint64_t> writers);
    void clear();

    /// Gaps of rounds below this one: all writers seen after them are gone.
    [[nodiscard]] std::uint64_t cleared_below() const noexcept { return cleared_below_; }

private:
    std::vector<std::pair<std::uint64_t, std::uint64_t>> since_;  // writer, round; by writer
    std::uint64_t cleared_below_{0};
};

class gap_set {
public:
    explicit gap_set(std::size_t limit) : limit_(limit) {}

    /// `ids` lies above every other gap. Who may fill it is not known yet.
    void append(id_range ids);

    /// The writers were looked for in this round, after the last `append`.
    void writers_seen(std::uint64_t round);

    /// Takes everything up to `last` for a gap again, as if skipped in `round`.
    void revive_up_to(row_id last, std::uint64_t round);

    /// Takes these ids, and gaps that they touch, for one gap that was skipped just now.
    void revive(id_range ids);

    /// Forgets of the gap that holds `id` what lies from there on. False when none does.
    bool cut_from(row_id id);

    /// Where rows were found that no gap covered, more will come: the ids behind `last` up to `end` are
    /// probed, too, so many of them that dead entries of an index cost little, until it is called again. They
    /// are never dead, and no gap in other respects: nothing waits for them.
    void keep_behind(row_id last, row_id end);

    /// Forgets all gaps above `last`.
    void cut_above(row_id last);

    enum class filled : std::uint8_t { no, gap, kept };

    /// A row with this id was read: it is no gap any more. `no` when it was none.
    filled fill(row_id id);

    /// Drops what a probe missed: the gaps within `probed` of rounds below `cleared_below`.
    void drop_dead(id_range probed, std::uint64_t cleared_below);

    /// Merges the nearest neighbours until the limit holds.
    void enforce_limit();

    void clear();

    [[nodiscard]] bool contains(row_id id) const;
    [[nodiscard]] bool keeps(row_id id) const;  ///< By `keep_behind`.
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return gaps_.size() - kept_; }
    [[nodiscard]] std::optional<row_id> first() const;

    /// Gaps may span rows that are known: a probe may return them, too.
    [[nodiscard]] bool merged() const noexcept { return merged_; }

    /// All gaps and what is kept, clipped to the ids from `from` on.
    [[nodiscard]] std::vector<id_range> ranges(row_id from) const;

private:
    static constexpr std::uint64_t no_round = std::numeric_limits<std::uint64_t>::max();
    static constexpr std::uint64_t never_dead = no_round - 1;
    static constexpr std::uint64_t kept_max = 10'000;

    struct gap {
        id_range ids;
        std::uint64_t round{no_round};  ///< When writers were first looked for since it was skipped.
    };

    [[nodiscard]] std::size_t at_or_above(row_id id) const;
    void drop_kept();
    void count_kept();

    std::size_t limit_;
    std::vector<gap> gaps_;  // ascending, disjoint
    std::size_t kept_{0};    // of them, one at most
    bool merged_{false};
};

}  // namespace millrace
