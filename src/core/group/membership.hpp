/// Who takes part in a group at the moment, in an order on which all agree.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/names.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace millrace {

/// A live session. Ordered by worker id, then incarnation.
struct group_member {
    worker_id worker;
    incarnation session;

    auto operator<=>(const group_member&) const = default;
};

/// The live workers in order, and this worker's place. Advisory: it says nothing about ownership.
struct group_membership {
    std::vector<group_member> members;
    std::optional<std::size_t> index;  ///< Empty while this worker has no session in the listing.

    bool operator==(const group_membership&) const = default;
};

/// `over` are listed sessions that have lapsed and are being ended. Nobody counts on one whose row cannot be
/// read.
[[nodiscard]] group_membership membership_of(
    const std::vector<worker_row>& listed, const std::vector<worker_row>& over, const incarnation& mine
);

}  // namespace millrace
