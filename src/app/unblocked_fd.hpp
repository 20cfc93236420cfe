/// Writes to an inherited descriptor without ever waiting, and without changing it for whoever shares it.
///
/// A pipe or terminal is opened anew for this, a socket is told with each call. Only where a pipe or terminal
/// cannot be opened anew (it belongs to another user), and another process fills it between the look and the
/// write, a write may wait. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <sys/types.h>

namespace millrace::app {

class unblocked_fd {
public:
    explicit unblocked_fd(int fd);
    ~unblocked_fd();
    unblocked_fd(const unblocked_fd&) = delete;
    unblocked_fd& operator=(const unblocked_fd&) = delete;

    /// As write(2): how much was taken, or -1 and errno, which is EAGAIN when nothing is taken now.
    [[nodiscard]] ssize_t write(std::string_view bytes) noexcept;

    /// Until it takes something or has ended, so that a write would tell: true. False: not within the limit.
    [[nodiscard]] bool wait(std::chrono::milliseconds limit) const noexcept;

private:
    enum class way : std::uint8_t { plain, socket, look_first };

    int fd_;
    bool own_{false};
    way way_{way::plain};
};

}  // namespace millrace::app
