/// What the coordinator wants done, and its news. Plain values, so that tests read as scripts.
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

namespace millrace {

// Requests, each answered by the event of like name.
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
    std::uint64_t request;  ///< Goes back with the reply.
    bool operator==(const read_group&) const = default;
};
struct write_group {
    std::uint64_t request;
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
    std::uint64_t lease;  ///< Which of this worker's leases asks: goes back with the reply.
    bool operator==(const write_lease&) const = default;
};
struct read_lease {
    shard_id shard;
    std::uint64_t lease;
    bool operator==(const read_lease&) const = default;
};

// News.
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
    bool again_and_again{false};  ///< Likely to come with each retry: the first is told, the others in part.
    bool state_is_away{false};  ///< The state does not answer, so that all else that it is asked fails, too.
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

}  // namespace millrace
