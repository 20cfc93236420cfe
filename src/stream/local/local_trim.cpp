#include "local_trim.hpp"

#include "database.hpp"
#include "local_catalog.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace millrace::local {

namespace {

/// What one call removes, decided at its start.
struct cut {
    std::uint64_t through{0};  ///< Records up to this number,
    std::optional<wall_time>
        before;  ///< or that arrived before this moment; and closed, empty shards likewise.
};

result<cut> decide(const stream_row& stream, const local_trim& what, const local_admin_options& options) {
    if (what.through_sequence && what.before)
        return fail(errc::invalid_argument, "trim takes a sequence number or a time, not both");
    if (what.through_sequence) return cut{*what.through_sequence, std::nullopt};
    const auto now = options.clock();
    if (what.before) return cut{0, std::min(*what.before, std::max(now, stream.last_arrival))};
    // Not by the stream's clock: one append while the system's was ahead would make all older records too
    // old.
    if (stream.retention) return cut{0, now - *stream.retention};
    return fail(
        errc::invalid_argument,
        fmt::format(
            "stream \"{}\" has no retention, so nothing in it is too old; say up to which sequence number or "
            "time to trim",
            stream.name
        )
    );
}

struct removed {
    std::uint64_t records{0};
    std::uint64_t bytes{0};
    std::uint64_t last{0};  ///< Sequence number
};

/// The oldest records of a shard that are below the limit, as many as one transaction takes.
result<removed> measure(
    sqlite::database& db, const shard_entry& shard, std::uint64_t below, const local_admin_options& options
) {
    auto oldest = db.prepare(
        "SELECT sequence, coalesce(length(key), 0) + coalesce(length(data), 0) + coalesce(length(headers), "
        "0) FROM millrace_stream_record WHERE shard = ?1 AND sequence < ?2 ORDER BY sequence LIMIT ?3"
    );
    if (!oldest) return tl::unexpected(std::move(oldest.error()));
    oldest->with(shard.id, below, options.trim_batch_rows);
    removed some;
    while (some.bytes < options.trim_batch_bytes) {
        auto row = oldest->step();
        if (!row) return tl::unexpected(std::move(row.error()));
        if (!*row) break;
        ++some.records;
        some.last = static_cast<std::uint64_t>(oldest->integer(0));
        some.bytes += static_cast<std::uint64_t>(oldest->integer(1));
    }
    return some;
}

/// One transaction: removes some records of a shard; none left to remove: zero.
result<removed> remove_some(
    sqlite::database& db,
    const stream_row& stream,
    std::uint64_t number,
    const cut& to,
    const local_admin_options& options
) {
    auto open = db.begin(sqlite::transaction_kind::immediate);
    if (!open) return tl::unexpected(std::move(open.error()));
    auto shard = find_shard(db, stream, shard_name(number));
    if (!shard) {
        // Another trim was faster.
        if (shard.error().code == errc::not_found) return removed{};
        return tl::unexpected(std::move(shard.error()));
    }
    auto below = to.before ? first_sequence_since(db, *shard, *to.before)
                           : result<std::uint64_t>(std::min(to.through, shard->last_sequence) + 1);
    if (!below) return tl::unexpected(std::move(below.error()));
    auto some = measure(db, *shard, *below, options);
    if (!some || some->records == 0) return some;
    auto done = db.run(
        "DELETE FROM millrace_stream_record WHERE shard = ?1 AND sequence <= ?2", shard->id, some->last
    );
    if (done) {
        done = db.run(
            "UPDATE millrace_stream_shard SET trimmed_sequence = ?2, records = records - ?3, bytes = bytes - "
            "?4 WHERE id = ?1",
            shard->id,
            some->last,
            some->records,
            some->bytes
        );
    }
    if (done) done = open->commit();
    if (!done) return tl::unexpected(std::move(done.error()));
    return some;
}

/// A shard is kept as long as its youngest possible record would be, so that readers see its end.
result<std::vector<shard_id>> remove_shards(
    sqlite::database& db, const stream_row& stream, wall_time before
) {
    auto open = db.begin(sqlite::transaction_kind::immediate);
    if (!open) return tl::unexpected(std::move(open.error()));
    auto shards = find_shards(db, stream);
    if (!shards) return tl::unexpected(std::move(shards.error()));
    std::vector<shard_id> gone;
    for (const auto& shard : *shards) {
        if (!shard.closed_at || *shard.closed_at >= before || shard.records > 0) continue;
        auto done = db.run("DELETE FROM millrace_stream_shard WHERE id = ?1", shard.id);
        if (!done) return tl::unexpected(std::move(done.error()));
        gone.push_back(shard_name(shard.number));
    }
    return open->commit().map([&] { return std::move(gone); });
}

/// Where the stream's clock is ahead of the system's: puts it back to that of the newest record that is left.
/// Else no removal would ever free the stream of an append while the system's clock was wrong.
result<std::optional<wall_time>> set_clock_back(
    sqlite::database& db, std::string_view stream, const local_admin_options& options
) {
    auto open = db.begin(sqlite::transaction_kind::immediate);
    if (!open) return tl::unexpected(std::move(open.error()));
    auto row = find_stream(db, stream);
    if (!row) return tl::unexpected(std::move(row.error()));
    const auto now = options.clock();
    if (row->last_arrival <= now + options.clock_ahead_max) return std::nullopt;
    auto shards = find_shards(db, *row);
    if (!shards) return tl::unexpected(std::move(shards.error()));
    auto newest = now;
    auto last = db.prepare(
        "SELECT arrival FROM millrace_stream_record WHERE shard = ?1 ORDER BY sequence DESC LIMIT 1"
    );
    if (!last) return tl::unexpected(std::move(last.error()));
    for (const auto& shard : *shards) {
        auto there = last->with(shard.id).step();
        if (!there) return tl::unexpected(std::move(there.error()));
        if (*there) newest = std::max(newest, to_time(last->integer(0)));
        last->reset();
    }
    if (newest == row->last_arrival) return newest;
    auto done =
        db.run("UPDATE millrace_stream SET last_arrival = ?2 WHERE id = ?1", row->id, to_stored(newest));
    if (done) {
        done = db.run(
            "UPDATE millrace_stream_shard SET last_arrival = min(last_arrival, ?2) WHERE stream = ?1",
            row->id,
            to_stored(newest)
        );
    }
    if (done) done = open->commit();
    if (!done) return tl::unexpected(std::move(done.error()));
    return newest > now + options.clock_ahead_max ? std::optional(newest) : std::nullopt;
}

/// Writers wait by looking again and again: they would seldom find the lock free between two batches.
void leave_room(std::chrono::steady_clock::time_point since) {
    std::this_thread::sleep_for(std::chrono::steady_clock::now() - since);
}

}  // namespace

result<local_trimmed> trim_stream(
    sqlite::database& db, std::string_view stream, const local_trim& what, const local_admin_options& options
) {
    auto row = find_stream(db, stream);
    if (!row) return tl::unexpected(std::move(row.error()));
    auto to = decide(*row, what, options);
    if (!to) return tl::unexpected(std::move(to.error()));
    auto shards = find_shards(db, *row);
    if (!shards) return tl::unexpected(std::move(shards.error()));

    local_trimmed total;
    for (const auto& shard : *shards) {
        for (;;) {
            const auto began = std::chrono::steady_clock::now();
            auto some = remove_some(db, *row, shard.number, *to, options);
            if (!some) return tl::unexpected(std::move(some.error()));
            if (some->records == 0) break;
            total.records += some->records;
            total.bytes += some->bytes;
            leave_room(began);
        }
    }
    if (to->before) {
        auto gone = remove_shards(db, *row, *to->before);
        if (!gone) return tl::unexpected(std::move(gone.error()));
        total.shards = std::move(*gone);
    }
    auto ahead = set_clock_back(db, stream, options);
    if (!ahead) return tl::unexpected(std::move(ahead.error()));
    total.clock_ahead = *ahead;
    return total;
}

}  // namespace millrace::local
