/// What a coordinator remembers, by concern: its listings, the group row, what it plans, the starts it reads,
/// a stream that was made anew.
///
/// Plain data; the rules are in coordinator*.cpp. Thread contract: none; one owner.
#pragma once

#include "group/shard_table.hpp"
#include "port/lease_store.hpp"

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace millrace {

/// Listings of one kind: one at a time.
struct listing_requests {
    bool wanted{false};
    std::optional<step_count> begun;  ///< The one under way.
    mono_time sent{};                 ///< The latest.
    mono_time due{};                  ///< Of the next, unless something asks for one before.
};

/// Of the group row.
struct group_row_requests {
    std::optional<group_row> sent;  ///< To be written.
    std::uint64_t count{0};
    std::uint64_t latest{0};  ///< The reply to an earlier one says nothing any more.
    mono_time retry_at{};
};

/// What the latest plan wants and what is under way of it.
struct planned_work {
    std::vector<shard_id> to_take;
    std::size_t taking{0};
    mono_time take_after{};
    std::vector<shard_row> to_create;
    std::set<shard_id> creating;
    std::map<shard_id, shard_row> removing;
    bool orphans{false};  ///< Shards of owners that are not live: look again at the next listing.
};

/// Where leases of shards without a checkpoint are to begin.
struct start_reads {
    std::map<shard_id, std::uint64_t> wanted, asked;  ///< Leases whose start is to be read.
    std::optional<std::uint64_t> request;
    mono_time retry_at{};
};

/// The stream was deleted and made again under its name.
struct stream_recreation {
    enum class phase : std::uint8_t { none, listing, reading, looking, writing, switching };

    phase now{phase::none};
    std::optional<std::string> outdated;  ///< The latest stream that is proven to be gone.
    step_count looking_since{};           ///< Only a listing of the stream begun since then is young enough.
    std::vector<shard_row> rows;
    std::set<shard_id> setting_aside;
    bool aside_failed{false};
};

}  // namespace millrace
