/// What the coordinator is told and what it wants done: plain values, so that tests read as scripts.
#pragma once

#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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
    result<std::optional<group_row>> outcome;
};
struct group_written {
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
    result<void> outcome;
};
struct lease_read {
    shard_id shard;
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

// Actions: requests, each answered by the event of like name.
struct list_workers {
    bool operator==(const list_workers&) const = default;
};
struct list_rows {
    bool operator==(const list_rows&) const = default;
};
struct list_stream {
    bool operator==(const list_stream&) const = default;
};
struct read_group {
    bool operator==(const read_group&) const = default;
};
struct write_group {
    group_row row;
    std::optional<version> expected;
    bool operator==(const write_group&) const = default;
};
struct end_session {
    incarnation session;
    version expected;
    bool operator==(const end_session&) const = default;
};
struct create_row {
    shard_row row;
    bool operator==(const create_row&) const = default;
};
struct remove_row {
    shard_id shard;
    version expected;
    bool operator==(const remove_row&) const = default;
};
struct set_row_aside {
    shard_row row;
    version expected;
    bool operator==(const set_row_aside&) const = default;
};
struct write_lease {
    shard_row row;
    version expected;
    bool operator==(const write_lease&) const = default;
};
struct read_lease {
    shard_id shard;
    bool operator==(const read_lease&) const = default;
};

// Actions: news.
struct lease_granted {
    shard_row row;
    start_position start;
    bool operator==(const lease_granted&) const = default;
};
struct lease_revoked {
    shard_id shard;
    bool operator==(const lease_revoked&) const = default;
};
struct lease_lost {
    shard_id shard;
    error why;
    bool was_releasing{false};  ///< Its owner has given it up already.
    bool operator==(const lease_lost&) const = default;
};
struct lease_persisted {
    shard_id shard;
    std::uint64_t upto;
    result<void> outcome;
    bool operator==(const lease_persisted&) const = default;
};
struct lease_released {
    shard_id shard;
    bool operator==(const lease_released&) const = default;
};
struct lease_finished {
    shard_id shard;
    bool operator==(const lease_finished&) const = default;
};
struct members_changed {
    std::size_t index;
    std::size_t total;
    bool operator==(const members_changed&) const = default;
};
struct rows_were_changed {
    bool operator==(const rows_were_changed&) const = default;
};
struct group_failed {
    error why;
    bool operator==(const group_failed&) const = default;
};
struct group_stopped {
    result<void> outcome;
    bool operator==(const group_stopped&) const = default;
};
struct group_note {
    log_level level;
    const char* event;
    const char* key;
    std::string value;
    std::string detail;
    bool operator==(const group_note&) const = default;
};

using group_action = std::variant<
    list_workers,
    list_rows,
    list_stream,
    read_group,
    write_group,
    end_session,
    create_row,
    remove_row,
    set_row_aside,
    write_lease,
    read_lease,
    lease_granted,
    lease_revoked,
    lease_lost,
    lease_persisted,
    lease_released,
    lease_finished,
    members_changed,
    rows_were_changed,
    group_failed,
    group_stopped,
    group_note>;

/// One shard as the coordinator knows it.
struct shard_status {
    shard_row row;
    bool listed{false};
    bool ready{false};
    bool mine{false};
    bool owner_lapsed{false};
};

}  // namespace millrace
