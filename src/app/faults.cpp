#include "faults.hpp"

namespace millrace::app {

exit_status status_of(const error& why) noexcept {
    return why.code == errc::invalid_argument ? exit_status::usage : exit_status::failed;
}

}  // namespace millrace::app
