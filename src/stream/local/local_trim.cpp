#include "local_trim.hpp"

#include "database.hpp"
#include "local_catalog.hpp"

#include <algorithm>
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
    const auto now = std::max(options.clock(), stream.last_arrival);
    if (what.before) return cut{0, std::min(*what.before, now)};
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

/// The oldest records of a shard that are below the limit, at most so many.
result<removed> measure(
    sqlite::database& db, const shard_entry& shard, std::uint64_t below, std::uint32_t rows
) {
    auto oldest = db.prepare(
        "SELECT count(*), sum(size), max(sequence) FROM (SELECT sequence, coalesce(length(key), 0) + "
        "coalesce(length(data), 0) + coalesce(length(headers), 0) AS size FROM millrace_stream_record "
        "WHERE shard = ?1 AND sequence < ?2 ORDER BY sequence LIMIT ?3)"
    );
    if (!oldest) return tl::unexpected(std::move(oldest.error()));
    return oldest->with(shard.id, below, rows).step().map([&](bool) {
        const auto number = [&](int column) { return static_cast<std::uint64_t>(oldest->integer(column)); };
        return removed{number(0), number(1), number(2)};
    });
}

/// One transaction: removes some records of a shard; none left to remove: zero.
result<removed> remove_some(
    sqlite::database& db, const stream_row& stream, std::uint64_t number, const cut& to, std::uint32_t rows
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
    auto some = measure(db, *shard, *below, rows);
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
            auto some = remove_some(db, *row, shard.number, *to, options.trim_batch_rows);
            if (!some) return tl::unexpected(std::move(some.error()));
            if (some->records == 0) break;
            total.records += some->records;
            total.bytes += some->bytes;
        }
    }
    if (to->before) {
        auto gone = remove_shards(db, *row, *to->before);
        if (!gone) return tl::unexpected(std::move(gone.error()));
        total.shards = std::move(*gone);
    }
    return total;
}

}  // namespace millrace::local
