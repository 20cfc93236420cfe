/// Makes, describes, fills, splits, merges and trims the streams of one file: what the command line needs.
///
/// Synchronous, on a connection of its own; one thread at a time. Other processes may read and append
/// meanwhile. Every change is one transaction that is on the disk when the call returns; `trim` is several.
#pragma once

#include "local_append.hpp"
#include "record/hash_key.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

struct local_admin_options {
    milliseconds busy_timeout{5'000};  ///< How long a call waits for writers before `unavailable`.
    bool only_reads{false};            ///< Then a file that is opened need not be writable.
    local_limits limits;
    local_clock clock{system_wall_time};
    std::uint32_t shards_max{10'000};         ///< Of a stream that is made.
    std::uint32_t trim_batch_rows{1'000};     ///< Removed at once, and
    std::uint64_t trim_batch_bytes{1 << 20};  ///< until there are so many: how long writers are made to wait.
    milliseconds clock_ahead_max{60'000};  ///< Of a stream before the system's clock; beyond, `trim` tells.
};

struct local_shard_info {
    shard_id shard;
    std::vector<shard_id> parents;
    hash_range range;
    bool closed{false};
    std::uint64_t records{0};
    std::uint64_t bytes{0};                       ///< Of keys, data and headers.
    std::optional<std::uint64_t> first_sequence;  ///< Of the records that are there.
    std::optional<std::uint64_t> last_sequence;
};

struct local_stream_info {
    std::string name;
    std::string identity;
    wall_time created_at;
    std::optional<milliseconds> retention;
    std::uint64_t next_sequence{1};
    std::vector<local_shard_info> shards;
};

struct local_position {
    shard_id shard;
    std::uint64_t sequence{0};
};

/// What to remove; with neither, what is older than the retention of the stream.
struct local_trim {
    std::optional<std::uint64_t> through_sequence;  ///< Inclusive.
    std::optional<wall_time> before;                ///< Records that arrived earlier.
};

struct local_trimmed {
    std::uint64_t records{0};
    std::uint64_t bytes{0};
    std::vector<shard_id> shards;  ///< Closed and empty for longer than asked for; no longer listed.

    /// The time of the newest record, when the system's clock is far behind it: it was wrong when that record
    /// was appended, or is now. Later records bear that time, too, until these are removed by number.
    std::optional<wall_time> clock_ahead;
};

class local_admin {
public:
    /// The file must exist, unless a stream is to be made in it.
    [[nodiscard]] static result<local_admin> open(const std::string& file, local_admin_options options = {});
    [[nodiscard]] static result<local_admin> open_or_create(
        const std::string& file, local_admin_options options = {}
    );

    local_admin(local_admin&&) noexcept;
    local_admin& operator=(local_admin&&) noexcept;
    ~local_admin();

    /// Without a retention, records are kept until they are trimmed by hand.
    result<void> create_stream(
        std::string_view name, std::uint32_t shards, std::optional<milliseconds> retention = std::nullopt
    );

    [[nodiscard]] result<std::vector<std::string>> list_streams();
    [[nodiscard]] result<local_stream_info> describe(std::string_view stream);

    /// Whether the event is within the limits.
    [[nodiscard]] result<void> check(const event& one) const;

    /// Appends all events in order, or none. Their topics are not looked at.
    result<std::vector<local_position>> put(std::string_view stream, std::span<const event> events);

    /// Closes the shard; two children share its hashes, the second from `at`, by default from the middle.
    result<std::pair<shard_id, shard_id>> split(
        std::string_view stream, const shard_id& shard, std::optional<hash_key> at = std::nullopt
    );

    /// Closes two neighbours; one child has the hashes of both.
    result<shard_id> merge(std::string_view stream, const shard_id& one, const shard_id& other);

    result<local_trimmed> trim(std::string_view stream, const local_trim& what = {});

private:
    struct impl;
    explicit local_admin(std::unique_ptr<impl> made);
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
