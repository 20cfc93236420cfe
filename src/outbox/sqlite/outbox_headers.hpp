/// The column `headers` of an outbox: a JSON array such as
/// `[["name","value"],["name",{"base64":"AAE="}],["name",null]]`. Pure functions.
#pragma once

#include <millrace/error.hpp>
#include <millrace/event.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Empty for no headers. `invalid_argument` when a name is not UTF-8.
[[nodiscard]] result<std::string> headers_to_json(const std::vector<header>& headers);

/// Empty text is no headers. The detail of an error says what is wrong, without what the headers hold.
[[nodiscard]] result<std::vector<header>> headers_from_json(std::string_view json);

}  // namespace millrace
