/// A stream to be read, shard by shard.
#pragma once

#include "port/host.hpp"

#include <millrace/names.hpp>
#include <millrace/position.hpp>
#include <millrace/record.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace millrace {

/// A shard as the stream lists it.
struct listed_shard {
    shard_id shard;
    std::vector<shard_id> parents;  ///< 0, 1 (split) or 2 (merge); they may no longer be listed.
    bool closed{false};     ///< Nothing is added any more; also of what has no end but the one it is given.
    std::string hash_from;  ///< 128-bit decimal, inclusive
    std::string hash_to;

    bool operator==(const listed_shard&) const = default;
};

struct stream_listing {
    std::string identity;  ///< As `group_row::stream_identity`.
    wall_time now;         ///< The stream's own clock.
    std::optional<milliseconds> retention;
    std::vector<listed_shard> shards;  ///< Complete; a partial list is an error.
};

/// What a listing said of the stream as a whole, at present.
struct stream_moment {
    wall_time now;  ///< By the stream's clock.
    std::optional<milliseconds> retention;
};

/// Where to begin in a shard.
namespace from {
struct trim_horizon {
    bool operator==(const trim_horizon&) const = default;
};
struct latest {
    bool operator==(const latest&) const = default;
};
struct timestamp {
    wall_time at;
    bool operator==(const timestamp&) const = default;
};
struct after {
    position last;
    bool operator==(const after&) const = default;
};
}  // namespace from
using start_position = std::variant<from::trim_horizon, from::latest, from::timestamp, from::after>;

/// An opaque place to read from, given by the source; it may expire.
using read_cursor = strong<struct read_cursor_tag, std::string>;

struct read_limits {
    std::size_t records_max{10'000};
    std::size_t bytes_max{1 << 20};  ///< At least one record is returned, however large.
};

struct read_reply {
    std::shared_ptr<const record_batch> records;  ///< Never null; may be empty, also when more follow.
    std::optional<read_cursor> next;              ///< Absent: the shard is closed and was read to its end.

    /// How far the last record read lies behind the newest; zero at the tip.
    milliseconds behind{0};

    /// As the stream counts them for its limits; zero: those of the records.
    std::size_t bytes{0};
};

/// How fast one shard may be read, by all who read it; zero: no limit.
struct read_rates {
    std::uint64_t reads_per_second{0};
    std::uint64_t bytes_per_second{0};
};

/// What records of a stream were packed into; totals since the start.
struct unpacked_counters {
    std::uint64_t aggregates{0};           ///< Opened.
    std::uint64_t sub_records{0};          ///< In them, those left out included.
    std::uint64_t sub_records_foreign{0};  ///< Left out: their hash is of another shard.
};

/// Lists what can be processed. The outbox of a relay and user-named resources are listings, too.
class shard_lister {
public:
    virtual ~shard_lister() = default;
    virtual void list_shards(completion<stream_listing> done) = 0;
};

/// Errors: `expired_cursor`, `position_trimmed` (reading goes on at the horizon), `throttled`, `unavailable`,
/// `corrupt` (damaged), `not_found` (no such shard: believed once a complete listing lacks it, too).
class record_source : public shard_lister {
public:
    virtual void open(shard_id shard, start_position start, completion<read_cursor> done) = 0;
    virtual void read(
        shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done
    ) = 0;

    /// What the stream allows; readers keep to it unless the user says otherwise. A constant.
    [[nodiscard]] virtual read_rates allowed() const { return {}; }

    /// Zeros of a stream without aggregates.
    [[nodiscard]] virtual unpacked_counters unpacked() const { return {}; }

    /// Calls `changed` on the host soon after records may have been added; a source without such a signal
    /// never does, and readers poll. An empty function ends it.
    virtual void watch(std::function<void()> changed) = 0;
};

}  // namespace millrace
