/// What `group reset` writes: a pure function of the rows as they were listed.
///
/// Sessions end first. Every epoch is raised above the highest in the group, so whoever still acts under an
/// old one is refused; checkpoints and finished marks are cleared, so reading starts from the group's start
/// position again. Parents come before their children: a child that is reopened while its parent still counts
/// as finished would be read first.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/options.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace millrace {

/// Another start position than the group began with.
struct reset_start {
    start_policy policy{start_policy::trim_horizon};
    std::optional<wall_time> at;  ///< For `latest` (the stream's clock now) and `at_timestamp`.
};

struct reset_request {
    std::optional<reset_start> start;
    bool force{false};  ///< End the sessions that live.
};

/// The writes, in this order; each new row's version follows the one that it expects.
struct reset_plan {
    std::optional<group_row> group;
    std::vector<shard_row> shards;
};

/// `random` gives the write ids.
[[nodiscard]] reset_plan plan_reset(
    const reset_request& request,
    const std::optional<group_row>& group,
    const std::vector<shard_row>& rows,
    const std::function<std::uint64_t()>& random
);

/// One row of the plan, also used when the row has changed meanwhile.
[[nodiscard]] shard_row reset_row(const shard_row& row, epoch above, write_id id);

}  // namespace millrace
