#include "unblocked_fd.hpp"

#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::app {

unblocked_fd::unblocked_fd(int fd) : fd_(fd) {
    struct stat about {};
    if (::fstat(fd, &about) != 0) return;
    if (S_ISSOCK(about.st_mode)) way_ = way::socket;
    if (!S_ISFIFO(about.st_mode) && ::isatty(fd) != 1) return;
    const auto again = fmt::format("/proc/self/fd/{}", fd);
    const int own = ::open(again.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0) {
        way_ = way::look_first;
        return;
    }
    fd_ = own;
    own_ = true;
}

unblocked_fd::~unblocked_fd() {
    if (own_) ::close(fd_);
}

ssize_t unblocked_fd::write(std::string_view bytes) noexcept {
    switch (way_) {
        case way::socket:
            return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        case way::look_first:
            if (!wait(std::chrono::milliseconds{0})) {
                errno = EAGAIN;
                return -1;
            }
            return ::write(fd_, bytes.data(), bytes.size() < PIPE_BUF ? bytes.size() : PIPE_BUF);
        case way::plain:
            break;
    }
    return ::write(fd_, bytes.data(), bytes.size());
}

bool unblocked_fd::wait(std::chrono::milliseconds limit) const noexcept {
    struct pollfd ready {
        fd_, POLLOUT, 0
    };
    return ::poll(&ready, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace millrace::app
