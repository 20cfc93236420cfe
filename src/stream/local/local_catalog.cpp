#include "local_catalog.hpp"

#include "local_schema.hpp"
#include "local_url.hpp"
#include "text/nearest.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace millrace::local {

namespace {

constexpr std::string_view shard_prefix = "shardId-";
constexpr std::size_t shard_digits = 12;

#define MILLRACE_SHARD_COLUMNS                                                                      \
    "SELECT id, number, parent, second_parent, hash_from, hash_to, first_sequence, last_sequence, " \
    "trimmed_sequence, last_arrival, records, bytes, closed_at FROM millrace_stream_shard "

std::uint64_t unsigned_at(const sqlite::statement& row, int column) {
    return static_cast<std::uint64_t>(row.integer(column));
}

result<shard_entry> read_shard(const sqlite::database& db, const sqlite::statement& row) {
    shard_entry shard;
    shard.id = row.integer(0);
    shard.number = unsigned_at(row, 1);
    for (const int column : {2, 3}) {
        if (!row.is_null(column)) shard.parents.push_back(unsigned_at(row, column));
    }
    const auto from = hash_key::parse(row.bytes(4));
    const auto to = hash_key::parse(row.bytes(5));
    if (!from || !to || *from > *to) {
        return fail(
            errc::corrupt,
            fmt::format(
                "the hash range of {} in {} is not usable; restore the file from a backup",
                shard_name(shard.number).value(),
                db.name()
            )
        );
    }
    shard.range = {*from, *to};
    shard.first_sequence = unsigned_at(row, 6);
    shard.last_sequence = unsigned_at(row, 7);
    shard.trimmed_sequence = unsigned_at(row, 8);
    shard.last_arrival = to_time(row.integer(9));
    shard.records = unsigned_at(row, 10);
    shard.bytes = unsigned_at(row, 11);
    if (const auto closed = row.maybe_integer(12)) shard.closed_at = to_time(*closed);
    return shard;
}

error missing_stream(sqlite::database& db, std::string_view name) {
    if (const auto usable = check_stream_name(name); !usable) {
        return {
            errc::not_found,
            retry_advice::never,
            false,
            fmt::format("{} can hold no such stream: {}", db.name(), usable.error().detail)};
    }
    const auto names = stream_names(db).value_or(std::vector<std::string>{});
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    return {
        errc::not_found,
        retry_advice::never,
        false,
        fmt::format(
            "stream \"{}\" does not exist in {}{}; create it with `millrace stream create`",
            name,
            db.name(),
            did_you_mean(name, candidates)
        )};
}

}  // namespace

shard_id shard_name(std::uint64_t number) {
    return shard_id{fmt::format("{}{:0{}}", shard_prefix, number, shard_digits)};
}

std::optional<std::uint64_t> shard_number(const shard_id& name) noexcept {
    const std::string_view text = name.value();
    if (!text.starts_with(shard_prefix) || text.size() < shard_prefix.size() + shard_digits)
        return std::nullopt;
    const auto digits = text.substr(shard_prefix.size());
    if (digits.size() > shard_digits && digits.front() == '0') return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (fault != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return number;
}

result<std::vector<std::string>> stream_names(sqlite::database& db) {
    auto rows = db.prepare("SELECT name FROM millrace_stream ORDER BY name");
    if (!rows) return tl::unexpected(damaged(std::move(rows.error())));
    std::vector<std::string> names;
    for (;;) {
        auto row = rows->step();
        if (!row) return tl::unexpected(damaged(std::move(row.error())));
        if (!*row) return names;
        names.push_back(rows->text(0));
    }
}

result<stream_row> find_stream(sqlite::database& db, std::string_view name) {
    auto found = db.prepare(
        "SELECT id, identity, created_at, retention_ms, next_sequence, next_shard, last_arrival, topology "
        "FROM millrace_stream WHERE name = ?1"
    );
    if (!found) return tl::unexpected(damaged(std::move(found.error())));
    auto row = found->with(name).step();
    if (!row) return tl::unexpected(damaged(std::move(row.error())));
    if (!*row) return tl::unexpected(missing_stream(db, name));
    stream_row stream;
    stream.id = found->integer(0);
    stream.name = name;
    stream.identity = found->text(1);
    stream.created_at = to_time(found->integer(2));
    if (const auto retention = found->maybe_integer(3)) stream.retention = milliseconds{*retention};
    stream.next_sequence = unsigned_at(*found, 4);
    stream.next_shard = unsigned_at(*found, 5);
    stream.last_arrival = to_time(found->integer(6));
    stream.topology = found->integer(7);
    return stream;
}

result<std::vector<shard_entry>> find_shards(sqlite::database& db, const stream_row& stream) {
    auto rows = db.prepare(MILLRACE_SHARD_COLUMNS "WHERE stream = ?1 ORDER BY number");
    if (!rows) return tl::unexpected(damaged(std::move(rows.error())));
    rows->with(stream.id);
    std::vector<shard_entry> shards;
    for (;;) {
        auto row = rows->step();
        if (!row) return tl::unexpected(damaged(std::move(row.error())));
        if (!*row) return shards;
        auto shard = read_shard(db, *rows);
        if (!shard) return tl::unexpected(std::move(shard.error()));
        shards.push_back(std::move(*shard));
    }
}

result<shard_entry> find_shard(sqlite::database& db, const stream_row& stream, const shard_id& shard) {
    if (const auto number = shard_number(shard)) {
        auto found = db.prepare(MILLRACE_SHARD_COLUMNS "WHERE stream = ?1 AND number = ?2");
        if (!found) return tl::unexpected(damaged(std::move(found.error())));
        auto row = found->with(stream.id, *number).step();
        if (!row) return tl::unexpected(damaged(std::move(row.error())));
        if (*row) return read_shard(db, *found);
    }
    return fail(
        errc::not_found,
        fmt::format(
            "shard \"{}\" of stream \"{}\" does not exist in {}, or was trimmed away; the stream has made {} "
            "to {}, `millrace stream describe` lists them",
            shard.value(),
            stream.name,
            db.name(),
            shard_name(0).value(),
            shard_name(stream.next_shard - 1).value()
        )
    );
}

result<std::uint64_t> first_sequence_since(sqlite::database& db, const shard_entry& shard, wall_time moment) {
    // Arrival times of a stream never fall, so a binary search over the numbers finds the place.
    auto probe = db.prepare(
        "SELECT sequence, arrival FROM millrace_stream_record WHERE shard = ?1 AND sequence >= ?2 "
        "ORDER BY sequence LIMIT 1"
    );
    if (!probe) return tl::unexpected(damaged(std::move(probe.error())));
    std::uint64_t low = std::max(shard.first_sequence, shard.trimmed_sequence + 1);  // all below are older
    std::uint64_t high = std::max(low, shard.last_sequence + 1);                     // none from here is
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        auto row = probe->with(shard.id, middle).step();
        if (!row) return tl::unexpected(damaged(std::move(row.error())));
        if (*row && to_time(probe->integer(1)) < moment) {
            low = unsigned_at(*probe, 0) + 1;
        } else {
            high = middle;
        }
        probe->reset();
    }
    return low;
}

}  // namespace millrace::local
