/// Appends records to streams: routes each to the open shard of its key and gives it the next number, in one
/// transaction with the check of the shards, so that a split in another process is seen.
///
/// Runs on the caller's connection and thread.
#pragma once

#include "database.hpp"
#include "record/hash_key.hpp"
#include "record/md5.hpp"

#include <millrace/error.hpp>
#include <millrace/record.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// What the local stream takes; larger records are refused one by one.
struct local_limits {
    std::size_t key_bytes_max{64 * 1024};
    std::size_t value_bytes_max{10 * 1024 * 1024};
    std::size_t headers_bytes_max{1024 * 1024};  ///< Encoded: 8 bytes a header and its bytes.
};

/// A clock that may be read from any thread.
using local_clock = std::function<wall_time()>;
[[nodiscard]] wall_time system_wall_time();

namespace local {

/// Views that must live until `add` has returned.
struct new_record {
    std::optional<std::string_view> key;  ///< Without a key, records go round over the open shards.
    std::optional<std::string_view> data;
    std::span<const record_header> headers;
};

/// Why the limits forbid the record; nothing when they do not.
[[nodiscard]] std::optional<error> too_large(const new_record& record, const local_limits& limits);

/// Where a record went.
struct appended {
    std::uint64_t shard{0};
    std::uint64_t sequence{0};
};

/// What one connection remembers of the streams' open shards between transactions.
class routing_cache {
public:
    /// The connection was replaced.
    void clear() { streams_.clear(); }

private:
    friend class append_transaction;

    struct open_shard {
        hash_range range;
        std::int64_t id{0};
        std::uint64_t number{0};

        // Of the present transaction.
        std::uint64_t records{0};
        std::uint64_t bytes{0};
        std::uint64_t last_sequence{0};
    };
    struct stream {
        std::int64_t id{0};
        std::int64_t topology{-1};
        std::vector<open_shard> open;  // by hash
        std::uint64_t next_sequence{0};
        wall_time arrival;             // of all records of the present transaction
        std::uint64_t transaction{0};  // that loaded these values
    };

    std::map<std::string, stream, std::less<>> streams_;
    std::string encoded_headers_;
    std::uint64_t transactions_{0};
};

/// Nothing is kept unless `commit` succeeds.
class append_transaction {
public:
    /// Waits for other writers, then reads the clock: arrival times follow the order of commits.
    [[nodiscard]] static result<append_transaction> begin(
        sqlite::database& db, routing_cache& cache, const local_clock& clock
    );

    /// `not_found` when the stream does not exist: then nothing was added and the transaction goes on. After
    /// any other error it must be given up.
    [[nodiscard]] result<appended> add(std::string_view stream, const new_record& record);

    [[nodiscard]] result<void> commit();

private:
    append_transaction(
        sqlite::database& db,
        routing_cache& cache,
        wall_time now,
        sqlite::transaction open,
        sqlite::statement insert
    );

    [[nodiscard]] result<routing_cache::stream*> load(std::string_view name);
    [[nodiscard]] routing_cache::open_shard& route(routing_cache::stream& to, const new_record& record);
    [[nodiscard]] result<void> note(const routing_cache::stream& touched);

    sqlite::database* db_;
    routing_cache* cache_;
    wall_time now_;
    sqlite::transaction open_;
    sqlite::statement insert_;  // after `open_`: must be reset before the rollback
    std::vector<routing_cache::stream*> touched_;
    routing_cache::stream* last_{nullptr};
    std::string last_name_;
};

}  // namespace local
}  // namespace millrace
