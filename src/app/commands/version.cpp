#include "version.hpp"

#include "commands.hpp"
#include "output.hpp"

#include <fmt/format.h>

namespace millrace::app {

namespace {

exit_status print_version(const settings&) {
    return print(fmt::format("millrace {}\n", program_version()));
}

}  // namespace

void add_version_command(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "version",
         .about = "Print the version of the program",
         .example = "millrace version",
         .options = {},
         .run = print_version}
    );
}

}  // namespace millrace::app
