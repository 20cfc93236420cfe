/// What this program reads in DynamoDB's replies.
///
/// Pure functions of the body. `corrupt` when it is not what DynamoDB documents; members that are not known
/// are ignored.
#pragma once

#include "dynamodb/value.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::aws::dynamodb {

/// Empty: there is no such item.
[[nodiscard]] result<std::optional<item>> read_get_item(std::string_view body);

struct page {
    std::vector<item> items;
    item next;  ///< Key after which the next page begins; empty when this is the last one.
};
[[nodiscard]] result<page> read_query(std::string_view body);

struct table_description {
    bool active{false};
    std::string key;  ///< As people read it: `pk (S), sk (S)`, the partition key first.
};
[[nodiscard]] result<table_description> read_describe_table(std::string_view body);

/// The attribute by which items of the table end, also while that is being switched on; empty: none.
[[nodiscard]] result<std::string> read_describe_time_to_live(std::string_view body);

/// The item of a condition that did not hold, from the body of the refusal; empty when it is not there.
[[nodiscard]] std::optional<item> refused_item(std::string_view body);

}  // namespace millrace::aws::dynamodb
