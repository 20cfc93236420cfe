/// The version of the program, as `millrace version` prints it.
#pragma once

#include <string_view>

namespace millrace::app {

[[nodiscard]] std::string_view program_version() noexcept;

}  // namespace millrace::app
