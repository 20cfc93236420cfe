/// The command line: words in, a command with its values out, or what is wrong with them. Uses CLI11 in its
/// .cpp only.
#pragma once

#include "faults.hpp"
#include "option.hpp"
#include "settings.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace millrace::app {

struct command_line {
    const command_spec* command{nullptr};  ///< Null when none was found, or help or the version is asked for.
    std::vector<given_value> flags;
    std::string help;  ///< To be printed instead of running anything.
};

/// `words` without the program's name.
[[nodiscard]] command_line parse_command_line(std::vector<std::string> words, faults& found);

/// The help of a command or of a group of commands (`outbox`), or of the program for an empty path.
[[nodiscard]] std::string help_of(std::string_view path);

/// Runs the program and returns its exit status.
[[nodiscard]] int run_program(std::vector<std::string> words);

}  // namespace millrace::app
