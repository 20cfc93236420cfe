#include "group/membership.hpp"

#include <algorithm>

namespace millrace {

group_membership membership_of(
    const std::vector<worker_row>& listed, const std::vector<worker_row>& over, const incarnation& mine
) {
    group_membership found;
    for (const auto& row : listed) {
        const bool lapsed = std::any_of(over.begin(), over.end(), [&](const worker_row& other) {
            return other.incarnation == row.incarnation;
        });
        if (!lapsed && row.unreadable.empty()) found.members.push_back({row.worker, row.incarnation});
    }
    std::sort(found.members.begin(), found.members.end());
    for (std::size_t i = 0; i < found.members.size(); ++i) {
        if (found.members[i].session == mine) found.index = i;
    }
    return found;
}

}  // namespace millrace
