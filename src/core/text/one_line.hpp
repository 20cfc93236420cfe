/// Text of others within a message: what would break the line or steer a terminal is written as an escape.
/// Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// Control characters as `\n`, `\r`, `\t` or `\x1b`; the rest as it is.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace millrace
