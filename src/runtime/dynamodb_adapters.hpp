/// What `adapters.hpp` opens in DynamoDB; only in builds that have AWS.
#pragma once

#include "adapters.hpp"

namespace millrace::dynamodb_adapters {

[[nodiscard]] result<std::unique_ptr<lease_store>> open_lease_store(
    const url& where, const group_key& group, host& home, nanoseconds lease
);
[[nodiscard]] result<std::vector<std::string>> known_groups(const url& state, const std::string& stream);
[[nodiscard]] result<std::vector<kept_row>> kept_positions(
    const url& where, kept_by whom, const std::string& under
);

}  // namespace millrace::dynamodb_adapters
