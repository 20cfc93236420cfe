/// Makes, describes, fills, splits and merges one stream: what the command line needs of any kind of stream.
///
/// Synchronous; one thread at a time.
#pragma once

#include "record/hash_key.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

struct shard_facts {
    shard_id shard;
    std::vector<shard_id> parents;
    hash_range range;
    bool closed{false};
    std::optional<std::uint64_t> records;  ///< Nothing where the stream does not count.
    std::optional<std::uint64_t> bytes;    ///< Of keys, data and headers.
    std::optional<std::string> first_sequence;
    std::optional<std::string> last_sequence;
};

struct stream_facts {
    std::string name;
    wall_time created_at;
    std::optional<milliseconds> retention;
    std::vector<shard_facts> shards;
};

class stream_admin {
public:
    virtual ~stream_admin() = default;

    /// `already_exists` when there is one of that name.
    virtual result<void> create(std::uint32_t shards, std::optional<milliseconds> retention) = 0;
    virtual result<stream_facts> describe() = 0;

    /// Why the stream cannot take this event, as far as it can be known before.
    virtual result<void> check(const event& /*one*/) { return {}; }

    /// Appends all events, those of one key in order. Their topics are not looked at.
    virtual result<void> put(std::span<const event> events) = 0;

    /// Closes the shard; two children share its hashes, the second from `at`, by default from the middle.
    virtual result<std::pair<shard_id, shard_id>> split(
        const shard_id& shard, std::optional<hash_key> at
    ) = 0;

    /// Closes two neighbours; one child has the hashes of both.
    virtual result<shard_id> merge(const shard_id& one, const shard_id& other) = 0;
};

}  // namespace millrace
