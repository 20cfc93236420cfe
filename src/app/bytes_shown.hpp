/// Keys and values as commands show them: text as it is, anything else as base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace::app {

/// For a table: `"text"`, `base64:...`, or `-`.
[[nodiscard]] std::string shown(const std::optional<std::string>& bytes);

/// `"key":"text"`, `"key_base64":"..."` or `"key":null`.
[[nodiscard]] std::string field_json(std::string_view name, const std::optional<std::string>& bytes);

}  // namespace millrace::app
