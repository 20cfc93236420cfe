#include "cli.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

int main(int argc, char** argv) {
    // A closed pipe is an error of write(), not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return millrace::app::run_program({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        fmt::print(stderr, "millrace: unexpected: {}; please report it\n", e.what());
        return 1;
    }
}
