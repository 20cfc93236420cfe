/// Sums up how the outboxes of one relay fare. Pure.
#pragma once

#include <millrace/relay.hpp>

#include <vector>

namespace millrace {

[[nodiscard]] relay_status sum_of(const std::vector<relay_status>& all);

}  // namespace millrace
