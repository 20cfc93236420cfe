/// Ends waits on sockets from another thread: once set, it stays set.
///
/// Thread-safe.
#pragma once

#include <atomic>

namespace millrace::postgres {

class stop_signal {
public:
    stop_signal();
    ~stop_signal();
    stop_signal(const stop_signal&) = delete;
    stop_signal& operator=(const stop_signal&) = delete;

    void set() noexcept;
    [[nodiscard]] bool is_set() const noexcept { return set_.load(); }

    /// Readable once set, for `poll`.
    [[nodiscard]] int fd() const noexcept { return fd_; }

private:
    int fd_;
    std::atomic<bool> set_{false};
};

}  // namespace millrace::postgres
