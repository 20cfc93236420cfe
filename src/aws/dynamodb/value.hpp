/// The values of DynamoDB, and items made of them, to and from its JSON.
///
/// Pure functions; plain values. Types that this program never writes (binary, sets, maps, null) are read as
/// `foreign`, so that an item which somebody has extended can still be read.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json/fwd.hpp>

namespace millrace::aws::dynamodb {

/// As text, so that none of its up to 38 digits is lost.
struct number {
    std::string text;

    [[nodiscard]] static number of(std::integral auto value) { return {std::to_string(value)}; }

    /// Empty when it is no integer of that range.
    [[nodiscard]] std::optional<std::uint64_t> as_unsigned() const;
    [[nodiscard]] std::optional<std::int64_t> as_signed() const;

    bool operator==(const number&) const = default;
};

/// Of a type that this program does not write.
struct foreign {
    bool operator==(const foreign&) const = default;
};

struct value;
using list = std::vector<value>;

struct value {
    std::variant<foreign, std::string, number, bool, list> is;

    bool operator==(const value&) const = default;
};

using item = std::map<std::string, value, std::less<>>;

/// `foreign` cannot be written.
[[nodiscard]] boost::json::object to_json(const item& from);
[[nodiscard]] boost::json::object to_json(const value& from);

/// Empty when it is not what DynamoDB sends.
[[nodiscard]] std::optional<item> item_from(const boost::json::value& json);

}  // namespace millrace::aws::dynamodb
