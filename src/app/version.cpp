#include "version.hpp"

namespace millrace::app {

std::string_view program_version() noexcept {
    return MILLRACE_VERSION;
}

}  // namespace millrace::app
