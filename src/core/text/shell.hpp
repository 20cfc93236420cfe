/// Words for a command that people paste into a shell. Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// In single quotes, within which a shell finds nothing special: URLs hold `?`, `&` and `*`.
[[nodiscard]] inline std::string shell_quoted(std::string_view word) {
    std::string quoted = "'";
    for (const char c : word) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

}  // namespace millrace
