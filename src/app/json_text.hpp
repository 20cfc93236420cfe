/// Writes JSON text into a buffer that the caller keeps. Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace::app {

/// Appends `text` as a JSON string. It must be valid UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// `text` as a JSON string; what is not UTF-8 is replaced by `?`.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace millrace::app
