/// The bodies of the DynamoDB requests that this program sends.
///
/// Pure functions. Reads are consistent. A condition that does not hold is to be answered with the item as it
/// is, which not every service does. Names of attributes never meet DynamoDB's reserved words.
#pragma once

#include "dynamodb/value.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace::aws::dynamodb {

inline constexpr const char* content_type = "application/x-amz-json-1.0";

/// The X-Amz-Target of an operation such as "GetItem".
[[nodiscard]] std::string target_of(std::string_view operation);

/// The key of a table: a partition and what orders the items in it, both strings.
struct key_names {
    std::string partition;
    std::string sort;
    bool operator==(const key_names&) const = default;
};

/// The item must not exist. Names an attribute that every item has.
struct absent {
    std::string attribute;
};
struct equals {
    std::string attribute;
    value wanted;
};
using condition = std::variant<absent, equals>;

[[nodiscard]] std::string get_item(std::string_view table, const item& key);

/// Other attributes of the item keep what they hold. Without the item, makes it.
struct update {
    item key;
    item set;
    std::vector<std::string> remove;
    condition only_if;
};
[[nodiscard]] std::string update_item(std::string_view table, const update& what);
[[nodiscard]] std::string delete_item(std::string_view table, const item& key, const condition& only_if);

/// All items of one partition; a page ends at 1 MB, and the next begins after `after`.
[[nodiscard]] std::string query(std::string_view table, const equals& partition, const item& after);

/// Paid per request.
[[nodiscard]] std::string create_table(std::string_view table, const key_names& key);
[[nodiscard]] std::string describe_table(std::string_view table);

[[nodiscard]] std::string describe_time_to_live(std::string_view table);
[[nodiscard]] std::string update_time_to_live(std::string_view table, std::string_view attribute);

}  // namespace millrace::aws::dynamodb
