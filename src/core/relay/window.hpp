/// The part of an outbox that a relay looks at: read ahead from a cursor, gaps below it, and a slow sweep.
///
/// It says what to fetch and which rows of a reply are new; one fetch is outstanding at a time. New rows come
/// by id: gaps are probed in the same or a later snapshot than the read-ahead, and both are merged here,
/// before any row can reach a lane. A row that is known (in flight, waiting for its deletion) is never new
/// again, until `restart`. A wrong proof about a gap costs delay, never a row: the sweep finds it. The caller
/// keeps the time and the budgets. Pure; no thread safety.
#pragma once

#include "port/outbox_source.hpp"
#include "relay/gaps.hpp"
#include "relay/known_ids.hpp"

#include <millrace/names.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

class window {
public:
    explicit window(std::size_t gaps_max);

    struct new_row {
        const outbox_row* row;
        bool from_gap;  ///< Its memory belongs to `fetch_reply::filled`, otherwise to `ahead`.
    };

    enum class change : std::uint8_t {
        none,
        replayed,  ///< Rows were put back or a key un-parked: nothing was taken; call `rebuild`.
        table,     ///< Another table, or another state of it: nothing was taken; call `restart`.
    };

    struct intake {
        change what{change::none};
        std::vector<new_row> rows;  ///< by id
        bool more{false};           ///< Fetch again at once.
    };

    /// Of `rows_max` 0 only the gaps are probed. `known_bytes` is what known rows may add to a probe.
    [[nodiscard]] fetch_request look(std::size_t rows_max, std::size_t bytes_max, std::size_t known_bytes);
    [[nodiscard]] intake looked(const fetch_reply& reply);

    /// The next page of a sweep from the head, of the ids below `end` and at most up to the cursor.
    [[nodiscard]] fetch_request sweep(std::size_t rows_max, std::size_t bytes_max, std::optional<row_id> end);

    struct sweep_page {
        change what{change::none};
        bool done{false};      ///< The sweep is complete.
        std::size_t found{0};  ///< Rows that no gap covered; they are gaps again, so the next look has them.
    };
    [[nodiscard]] sweep_page swept(const fetch_reply& reply);

    void fetch_failed();

    /// A known row was deleted or buried. It stays known while a fetch is outstanding whose snapshot may be
    /// older.
    void gone(row_id id);

    /// A known row is dropped from memory and must be read again; call `rewind` or `rebuild` before looking.
    void forget(row_id id) { known_.remove(id); }

    /// A new lease or table: knows nothing, and begins at the head.
    void restart();

    /// After `restart`: begins above the hint. False when there is none to be used. The caller sweeps soon.
    [[nodiscard]] bool begin_at(const outbox_start& hint);

    /// Reads again from the head; known rows stay known.
    void rebuild();

    /// Reads again from `id` on.
    void rewind(row_id id);

    /// All up to here was read, or is a gap.
    [[nodiscard]] row_id cursor() const noexcept { return cursor_; }

    [[nodiscard]] std::size_t known() const noexcept { return known_.size(); }
    [[nodiscard]] std::vector<row_id> lowest_known(std::size_t most) const { return known_.lowest(most); }
    [[nodiscard]] const gap_set& gaps() const noexcept { return gaps_; }

    /// Of the table whose rows are known; empty while none is.
    [[nodiscard]] std::string table_identity() const { return table_identity_.value_or(std::string()); }

    /// Below it nothing is left that this window waits for.
    [[nodiscard]] row_id low_water() const;

private:
    [[nodiscard]] change compare(const fetch_reply& reply);
    void take_filled(const fetch_reply& reply, intake& into);
    void take_ahead(const fetch_reply& reply, intake& into);
    void settle_gone();
    void keep_behind(row_id last);
    /// Keeps looking behind what the sequence gives, where that is below the cursor.
    void follow_sequence(row_id drawn);

    known_ids known_;
    gap_set gaps_;
    writer_watch writers_;
    bool wants_writers_{false};  ///< A gap has outlived a probe.
    row_id cursor_;
    row_id probe_from_;
    std::uint64_t round_{0};
    bool outstanding_{false};
    std::vector<row_id> gone_meanwhile_;
    std::optional<row_id> swept_to_;
    row_id sweep_end_;
    std::optional<std::string> table_identity_;
    std::uint64_t replay_generation_{0};
};

}  // namespace millrace
