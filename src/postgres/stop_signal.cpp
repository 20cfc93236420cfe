#include "stop_signal.hpp"

#include "assert.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace millrace::postgres {

stop_signal::stop_signal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    MILLRACE_ASSERT(fd_ >= 0);
}

stop_signal::~stop_signal() {
    close(fd_);
}

void stop_signal::set() noexcept {
    set_.store(true);
    (void)eventfd_write(fd_, 1);  // fails only when it is readable already
}

}  // namespace millrace::postgres
