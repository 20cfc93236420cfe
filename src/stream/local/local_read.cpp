#include "local_read.hpp"

#include "local_catalog.hpp"
#include "local_headers.hpp"
#include "local_schema.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace::local {

error not_there_now(error why) {
    if (why.code == errc::not_found) {
        why.code = errc::unavailable;
        why.retry = retry_advice::after_delay;
    }
    return why;
}

namespace {

/// One snapshot of a shard, for as long as the object lives.
struct shard_view {
    sqlite::transaction snapshot;
    stream_row stream;
    shard_entry shard;
};

result<shard_view> view_shard(sqlite::database& db, std::string_view stream, const shard_id& shard) {
    auto snapshot = db.begin(sqlite::transaction_kind::deferred);
    if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
    auto row = find_stream(db, stream);
    if (!row) return tl::unexpected(not_there_now(std::move(row.error())));
    auto entry = find_shard(db, *row, shard);
    if (!entry) return tl::unexpected(std::move(entry.error()));
    return shard_view{std::move(*snapshot), std::move(*row), std::move(*entry)};
}

tl::unexpected<error> trimmed(
    const sqlite::database& db, const shard_view& view, const shard_id& shard, std::uint64_t wanted
) {
    return fail(
        errc::position_trimmed,
        fmt::format(
            "records of {} of stream \"{}\" in {} from sequence number {} up to {} were trimmed before they "
            "were read; read on from the trim horizon, and keep records for longer than readers may lag",
            shard.value(),
            view.stream.name,
            db.name(),
            wanted,
            view.shard.trimmed_sequence
        )
    );
}

result<std::uint64_t> sequence_after(
    const sqlite::database& db, const shard_view& view, const shard_id& shard, const position& last
) {
    if (last.sequence >= sequence_number{view.stream.next_sequence}) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "sequence number {} of {} was never given by stream \"{}\" in {}, whose next number is {}; "
                "the position belongs to another stream, or the file was restored from an older copy; reset "
                "the group",
                last.sequence.to_string(),
                shard.value(),
                view.stream.name,
                db.name(),
                view.stream.next_sequence
            )
        );
    }
    const auto next = last.sequence.low64() + 1;
    if (view.shard.trimmed_sequence >= next) return trimmed(db, view, shard, next);
    return next;
}

struct open_at {
    sqlite::database& db;
    const shard_view& view;
    const shard_id& shard;

    result<std::uint64_t> operator()(const from::trim_horizon&) const {
        return std::max(view.shard.first_sequence, view.shard.trimmed_sequence + 1);
    }
    result<std::uint64_t> operator()(const from::latest&) const { return view.stream.next_sequence; }
    result<std::uint64_t> operator()(const from::timestamp& moment) const {
        return first_sequence_since(db, view.shard, moment.at);
    }
    result<std::uint64_t> operator()(const from::after& position) const {
        return sequence_after(db, view, shard, position.last);
    }
};

result<std::uint64_t> parse_cursor(const read_cursor& cursor) {
    const auto& text = cursor.value();
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();  // what the file can count
    std::uint64_t next = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), next);
    if (fault == std::errc{} && end == text.data() + text.size() && next <= most) return next;
    return fail(
        errc::invalid_argument,
        fmt::format(
            "read cursor \"{}\" is not one that a local stream gave; open the shard anew", text.substr(0, 40)
        )
    );
}

/// What is known before reading about how many records there will be, so that memory is taken once.
std::size_t expected_records(const shard_entry& shard, std::uint64_t next, const read_limits& limits) {
    if (shard.records == 0 || next > shard.last_sequence) return 0;
    const auto each = sizeof(record) + shard.bytes / shard.records;
    const auto fit = limits.bytes_max / each + 1;
    return std::min({limits.records_max, fit, shard.last_sequence - next + 1, shard.records});
}

result<std::span<const record_header>> copy_headers(
    const sqlite::database& db, std::uint64_t sequence, std::string_view encoded, record_batch& to
) {
    auto headers = decode_headers(to.store(encoded));
    if (headers) return to.store(std::move(*headers));
    return fail(
        errc::corrupt,
        fmt::format(
            "the headers of record {} of {} in {} are damaged: {}; restore the file from a backup",
            sequence,
            to.shard().value(),
            db.name(),
            headers.error().detail
        )
    );
}

/// Fills the batch up to the limits; true when the rows ended first.
result<bool> copy_rows(
    sqlite::database& db, std::int64_t shard, std::uint64_t next, const read_limits& limits, record_batch& to
) {
    auto rows = db.prepare(
        "SELECT sequence, arrival, key, data, headers FROM millrace_stream_record "
        "WHERE shard = ?1 AND sequence >= ?2 ORDER BY sequence"
    );
    if (!rows) return tl::unexpected(damaged(std::move(rows.error())));
    rows->with(shard, next);
    const auto keep = [&to](const std::optional<std::string_view>& bytes) {
        return bytes ? std::optional(to.store(*bytes)) : std::nullopt;
    };
    const auto records_max = std::max<std::size_t>(limits.records_max, 1);
    while (to.records().size() < records_max) {
        auto row = rows->step();
        if (!row) return tl::unexpected(damaged(std::move(row.error())));
        if (!*row) return true;
        const auto sequence = static_cast<std::uint64_t>(rows->integer(0));
        const auto key = rows->maybe_bytes(2);
        const auto data = rows->maybe_bytes(3);
        const auto encoded = rows->maybe_bytes(4).value_or(std::string_view{});
        const auto size =
            sizeof(record) + key.value_or("").size() + data.value_or("").size() + encoded.size();
        if (!to.records().empty() && to.bytes() + size > limits.bytes_max) return false;

        record copy{{sequence_number{sequence}}, keep(key), keep(data), {}, to_time(rows->integer(1))};
        if (!encoded.empty()) {
            auto headers = copy_headers(db, sequence, encoded, to);
            if (!headers) return tl::unexpected(std::move(headers.error()));
            copy.headers = *headers;
        }
        to.add(copy);
    }
    return false;
}

/// The stream, and a moment before which nothing that is not yet visible arrives: the clock while no other
/// connection writes; else the newest arrival, for a writer takes its time when it begins, however long ago.
result<std::pair<stream_row, wall_time>> moment_of(
    sqlite::database& db, std::string_view name, const local_clock& clock
) {
    auto locked = db.begin(sqlite::transaction_kind::immediate);
    const auto can_wait_later = [](errc code) {
        return code == errc::unavailable || code == errc::permission_denied || code == errc::out_of_space;
    };
    if (!locked && !can_wait_later(locked.error().code)) return tl::unexpected(std::move(locked.error()));
    auto row = find_stream(db, name);
    if (!row) return tl::unexpected(std::move(row.error()));
    // SQLite gives a connection that may not write a transaction that locks nothing, without a word.
    const bool exact = locked && sqlite3_db_readonly(db.handle(), "main") == 0;
    const auto now = exact ? std::max(clock(), row->last_arrival) : row->last_arrival;
    return std::pair{std::move(*row), now};
}

}  // namespace

result<stream_listing> list_stream(sqlite::database& db, std::string_view stream, const local_clock& clock) {
    // The moment comes before the shards: a shard that is made in between is listed and read from its start.
    auto moment = moment_of(db, stream, clock);
    if (!moment) return tl::unexpected(std::move(moment.error()));
    const auto& [row, now] = *moment;
    auto shards = find_shards(db, row);
    if (!shards) return tl::unexpected(std::move(shards.error()));

    stream_listing listing{row.identity, now, row.retention, {}};
    listing.shards.reserve(shards->size());
    for (const auto& shard : *shards) {
        auto& listed = listing.shards.emplace_back();
        listed.shard = shard_name(shard.number);
        for (const auto parent : shard.parents)
            listed.parents.push_back(shard_name(parent));
        listed.closed = shard.closed_at.has_value();
        listed.hash_from = shard.range.from.to_string();
        listed.hash_to = shard.range.to.to_string();
    }
    return listing;
}

result<read_cursor> open_cursor(
    sqlite::database& db, std::string_view stream, const shard_id& shard, const start_position& start
) {
    auto view = view_shard(db, stream, shard);
    if (!view) return tl::unexpected(std::move(view.error()));
    return std::visit(open_at{db, *view, shard}, start).map([](std::uint64_t next) {
        return read_cursor{std::to_string(next)};
    });
}

result<read_reply> read_records(
    sqlite::database& db,
    std::string_view stream,
    const shard_id& shard,
    const read_cursor& cursor,
    const read_limits& limits
) {
    auto next = parse_cursor(cursor);
    if (!next) return tl::unexpected(std::move(next.error()));
    auto view = view_shard(db, stream, shard);
    if (!view) return tl::unexpected(std::move(view.error()));
    if (view->shard.trimmed_sequence >= *next) return trimmed(db, *view, shard, *next);

    auto batch = std::make_shared<record_batch>(shard);
    batch->reserve(expected_records(view->shard, *next, limits));
    auto exhausted = copy_rows(db, view->shard.id, *next, limits, *batch);
    if (!exhausted) return tl::unexpected(std::move(exhausted.error()));

    read_reply reply;
    bool tip = *exhausted;
    if (!batch->records().empty()) {
        const auto& last = batch->records().back();
        const auto sequence = last.position.sequence.low64();
        next = sequence + 1;
        tip = tip || sequence >= view->shard.last_sequence;
        // 0 would say that nothing is left to be read, but records of one append arrive together.
        if (!tip) reply.behind = std::max(milliseconds{1}, view->shard.last_arrival - last.arrival);
    }
    reply.records = std::move(batch);
    if (!tip || !view->shard.closed_at) reply.next = read_cursor{std::to_string(*next)};
    return reply;
}

}  // namespace millrace::local
