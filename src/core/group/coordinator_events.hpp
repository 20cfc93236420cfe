/// What the coordinator is told: requests of its owner, and the outcomes of its actions. Plain values, so
/// that tests read as scripts.
#pragma once

#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <optional>
#include <variant>
#include <vector>

namespace millrace {

// Events: requests of the owner.
struct group_begin {};
struct group_tick {};
struct session_came {
    incarnation mine;
};
struct session_went {
    incarnation mine;
    error why;
};
struct discover_request {};
struct persist_request {
    shard_id shard;
};
struct release_request {
    shard_id shard;
};
struct finish_request {
    shard_id shard;
    wall_time at;
};
struct stop_request {};

// Events: outcomes of actions.
struct workers_listed {
    result<std::vector<worker_row>> outcome;
};
struct rows_listed {
    result<std::vector<shard_row>> outcome;
};
struct stream_listed {
    result<stream_listing> outcome;
};
struct group_read {
    std::uint64_t request;
    result<std::optional<group_row>> outcome;
};
struct group_written {
    std::uint64_t request;
    result<void> outcome;
};
struct session_ended_reply {
    incarnation session;
    result<void> outcome;
};
struct row_created {
    shard_row row;
    result<void> outcome;
};
struct row_removed {
    shard_id shard;
    result<void> outcome;
};
struct row_set_aside {
    shard_row row;
    result<void> outcome;
};
struct lease_written {
    shard_id shard;
    std::uint64_t lease;  ///< Of the request.
    result<void> outcome;
};
struct lease_read {
    shard_id shard;
    std::uint64_t lease;
    result<std::optional<shard_row>> outcome;
};

using group_event = std::variant<
    group_begin,
    group_tick,
    session_came,
    session_went,
    discover_request,
    persist_request,
    release_request,
    finish_request,
    stop_request,
    workers_listed,
    rows_listed,
    stream_listed,
    group_read,
    group_written,
    session_ended_reply,
    row_created,
    row_removed,
    row_set_aside,
    lease_written,
    lease_read>;

}  // namespace millrace
