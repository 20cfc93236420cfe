/// Splits a command line into words as a shell does, and does nothing else that a shell does: no variables,
/// no wildcards, no substitution. Pure.
#pragma once

#include <millrace/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace::aws {

/// Blanks separate; '...' keeps everything; in "..." a backslash keeps `"`, `\`, `$` and a back quote;
/// outside, it keeps any character. `invalid_argument`, a half sentence without the command, for an open
/// quote and for no word at all.
[[nodiscard]] result<std::vector<std::string>> command_words(std::string_view line);

}  // namespace millrace::aws
