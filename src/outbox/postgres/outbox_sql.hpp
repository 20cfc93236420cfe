/// The SQL of one outbox, made once from its layout.
///
/// Plain data. Statements that read rows give the columns of `row_column`, in order of id.
#pragma once

#include "outbox_layout.hpp"
#include "relay_tables.hpp"

#include <cstdint>
#include <string>

namespace millrace::postgres {

/// What the statements that read rows return.
namespace row_column {
enum : int { id, topic, key, value, names, values, partition, timestamp, created, cut };
}

/// What `status` returns.
namespace status_column {
enum : int {
    in_recovery,
    server_start,
    timeline,
    oid,
    file,
    sequence_file,
    columns,
    generation,
    paused,
    drawn
};
}

struct outbox_sql {
    explicit outbox_sql(const outbox_layout& of);

    /// The largest row that `ahead_small` may be asked for whole.
    static constexpr std::int64_t small_row = 4'096;

    /// A mark on the relay's own transactions, by which they are told from writers.
    static constexpr std::int32_t own_mark = 1'296'911'730;

    /// $1: above this id, $2: rows at most, $3: topics left out, $4: bytes of a row. Columns of a larger row
    /// are left empty, and it is `cut`: cheap, and bounded by rows times bytes.
    std::string ahead_small;

    /// The same, but $4: bytes in all; what lies beyond is `cut`. Exact, at the price of adding up.
    std::string ahead_exact;

    /// $1, $2: first and last ids of ranges, $3: topics left out, $4: rows at most, $5: bytes in all.
    std::string gaps;

    std::string status;

    /// Who holds the lock of a writer on the table: (virtualtransaction text, is it a relay's own mark).
    std::string writers;

    std::string parked;     ///< (topic, key, partition)
    std::string low_water;  ///< (id, epoch, replay generation, identity)

    /// $1: nothing waits at or below this id but, it may be, from $2 to $3. (about how many rows,
    /// milliseconds of the lowest).
    std::string look;
    std::string holders;  ///< (pid, milliseconds since begin, milliseconds since query), the oldest first

    std::string mark_own;

    /// $1, $2: ranges, $3: epoch, $4: file, $5: file of the sequence. To be planned for each call: beside a
    /// table that was empty once, a kept plan reads all of it for each range.
    std::string remove_ranges;

    /// $1: ids, $2: epoch, $3: file, $4: file of the sequence. Slower a row, but there is only one plan.
    std::string remove_ids;

    /// $1: id, $2: epoch, $3: generation, $4: identity.
    std::string remember;

    std::string lock_lease;  ///< (epoch)
    std::string same_table;  ///< $1: file, $2: file of the sequence. A boolean.

    /// $1: topic, $2: key, $3: partition, $4: epoch.
    std::string park;
    std::string lock_parked;  ///< $1: topic, $2: key, $3: partition. A row while it is parked.

    /// $1: ids, $2: epoch, $3: file, $4: file of the sequence, $5: reason, $6: error, $7: attempts, with
    /// `bury_parked` $8: topic, $9: key, $10: partition, and last the microseconds since the first attempt.
    std::string bury;
    std::string bury_parked;
};

}  // namespace millrace::postgres
