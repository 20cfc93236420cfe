/// Runs a program for what it prints, without a shell.
///
/// Blocks; thread-safe. The program inherits the environment, and nothing else: no open file, no blocked
/// signal, an empty standard input. What it says on standard error is dropped, since it may hold secrets.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace millrace::aws {

struct program_limits {
    milliseconds timeout{60'000};
    std::size_t bytes_max{64'000};
};

/// What it printed before it ended with status 0. Otherwise a half sentence that fits behind its name, with
/// nothing of what it printed; the program and what it started are gone then, as far as they stayed in its
/// process group. `cancelled` after a stop. The command has at least one word; a name without `/` is looked
/// for in PATH.
[[nodiscard]] result<std::string> run_program(
    const std::vector<std::string>& command, program_limits limits, const std::stop_token& stop
);

}  // namespace millrace::aws
