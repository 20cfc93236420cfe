#include "local_append.hpp"

#include "assert.hpp"
#include "local_catalog.hpp"
#include "local_headers.hpp"
#include "local_schema.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace millrace {

wall_time system_wall_time() {
    return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
}

namespace local {

std::optional<error> too_large(const new_record& record, const local_limits& limits) {
    const auto refuse = [](std::string_view what, std::size_t bytes, std::size_t limit) {
        return error{
            errc::refused_record,
            retry_advice::never,
            false,
            fmt::format(
                "the {} has {} bytes and a local stream takes at most {}; store it elsewhere and send a "
                "reference",
                what,
                bytes,
                limit
            )};
    };
    const auto size = [](const std::optional<std::string_view>& bytes) { return bytes ? bytes->size() : 0; };
    if (size(record.key) > limits.key_bytes_max) return refuse("key", size(record.key), limits.key_bytes_max);
    if (size(record.data) > limits.value_bytes_max)
        return refuse("value", size(record.data), limits.value_bytes_max);
    const auto headers = encoded_size(record.headers);
    if (headers > limits.headers_bytes_max) return refuse("header list", headers, limits.headers_bytes_max);
    return std::nullopt;
}

append_transaction::append_transaction(
    sqlite::database& db,
    routing_cache& cache,
    wall_time now,
    sqlite::transaction open,
    sqlite::statement insert
)
    : db_(&db), cache_(&cache), now_(now), open_(std::move(open)), insert_(std::move(insert)) {}

result<append_transaction> append_transaction::begin(
    sqlite::database& db, routing_cache& cache, const local_clock& clock
) {
    auto open = db.begin(sqlite::transaction_kind::immediate);
    if (!open) return tl::unexpected(std::move(open.error()));
    auto insert = db.prepare(
        "INSERT INTO millrace_stream_record (shard, sequence, arrival, key, data, headers) VALUES (?1, ?2, "
        "?3, ?4, ?5, ?6)"
    );
    if (!insert) return tl::unexpected(damaged(std::move(insert.error())));
    ++cache.transactions_;
    return append_transaction(db, cache, clock(), std::move(*open), std::move(*insert));
}

result<routing_cache::stream*> append_transaction::load(std::string_view name) {
    if (last_ != nullptr && last_name_ == name) return last_;
    const auto known = cache_->streams_.find(name);
    if (known == cache_->streams_.end() || known->second.transaction != cache_->transactions_) {
        auto row = find_stream(*db_, name);
        if (!row) return tl::unexpected(std::move(row.error()));
        auto& stream = known == cache_->streams_.end() ? cache_->streams_[row->name] : known->second;
        if (stream.id != row->id || stream.topology != row->topology) {
            auto shards = find_shards(*db_, *row);
            if (!shards) return tl::unexpected(std::move(shards.error()));
            stream.open.clear();
            for (const auto& shard : *shards) {
                if (!shard.closed_at) stream.open.push_back({shard.range, shard.id, shard.number});
            }
            std::ranges::sort(stream.open, {}, &routing_cache::open_shard::range);
        }
        stream.id = row->id;
        stream.topology = row->topology;
        stream.next_sequence = row->next_sequence;
        stream.arrival = std::max(now_, row->last_arrival);
        stream.transaction = cache_->transactions_;
        for (auto& shard : stream.open)
            shard.records = shard.bytes = 0;
        touched_.push_back(&stream);
        last_ = &stream;
    } else {
        last_ = &known->second;
    }
    last_name_ = name;
    return last_;
}

routing_cache::open_shard& append_transaction::route(routing_cache::stream& to, const new_record& record) {
    if (to.open.size() == 1) return to.open.front();
    if (!record.key) return to.open[to.next_sequence % to.open.size()];
    const auto point = hash_of(*record.key);
    const auto above = std::ranges::upper_bound(
        to.open, point, {}, [](const routing_cache::open_shard& shard) { return shard.range.from; }
    );
    return *std::prev(above);
}

result<appended> append_transaction::add(std::string_view stream, const new_record& record) {
    auto to = load(stream);
    if (!to) return tl::unexpected(std::move(to.error()));
    if ((*to)->open.empty() || (*to)->open.front().range.from != hash_key{}) {
        return fail(
            errc::corrupt,
            fmt::format(
                "the open shards of stream \"{}\" in {} do not cover all hashes; restore the file from a "
                "backup",
                stream,
                db_->name()
            )
        );
    }
    auto& shard = route(**to, record);
    const auto sequence = (*to)->next_sequence;

    auto& headers = cache_->encoded_headers_;
    headers.clear();
    encode_headers(record.headers, headers);
    const auto blob = [](const std::optional<std::string_view>& bytes) {
        return bytes ? std::optional(sqlite::blob_view{*bytes}) : std::nullopt;
    };
    insert_.with(
        shard.id,
        sequence,
        to_stored((*to)->arrival),
        blob(record.key),
        blob(record.data),
        headers.empty() ? std::nullopt : std::optional(sqlite::blob_view{headers})
    );
    if (auto done = insert_.run(); !done) return tl::unexpected(damaged(std::move(done.error())));
    insert_.reset();

    ++(*to)->next_sequence;
    ++shard.records;
    shard.bytes +=
        (record.key ? record.key->size() : 0) + (record.data ? record.data->size() : 0) + headers.size();
    shard.last_sequence = sequence;
    return appended{shard.number, sequence};
}

result<void> append_transaction::note(const routing_cache::stream& touched) {
    auto done = db_->run(
        "UPDATE millrace_stream SET next_sequence = ?2, last_arrival = ?3 WHERE id = ?1",
        touched.id,
        touched.next_sequence,
        to_stored(touched.arrival)
    );
    for (const auto& shard : touched.open) {
        if (!done || shard.records == 0) continue;
        done = db_->run(
            "UPDATE millrace_stream_shard SET last_sequence = ?2, last_arrival = ?3, records = records + ?4, "
            "bytes = bytes + ?5 WHERE id = ?1",
            shard.id,
            shard.last_sequence,
            to_stored(touched.arrival),
            shard.records,
            shard.bytes
        );
    }
    return done;
}

result<void> append_transaction::commit() {
    for (const auto* stream : touched_) {
        if (auto done = note(*stream); !done) return done;
    }
    return open_.commit();
}

}  // namespace local
}  // namespace millrace
