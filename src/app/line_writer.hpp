/// Lines that a thread of their own writes, so that a reader who stands still holds up nobody who adds one.
///
/// What waits is bounded: beyond that the oldest lines are dropped and counted, and the count is told as soon
/// as the reader takes lines again. `add`, `flush` and `dropped` may be called from any thread.
#pragma once

#include "unblocked_fd.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace millrace::app {

struct line_writer_options {
    std::size_t bytes_max{1 << 20};                          ///< Of the lines that wait.
    std::chrono::milliseconds goodbye{1000};                 ///< The longest wait for the reader at the end.
    std::function<std::string(std::uint64_t)> of_dropped{};  ///< The line that tells how many were dropped.
    std::function<void()> before_write{};  ///< Called before each line, on the writer's thread.
};

class line_writer {
public:
    line_writer(int fd, line_writer_options options);

    /// Waits for what was added, no longer than `goodbye`.
    ~line_writer();
    line_writer(const line_writer&) = delete;
    line_writer& operator=(const line_writer&) = delete;

    /// Never waits.
    void add(std::string line);

    /// Waits until all that was added is written, no longer than `goodbye`.
    void flush();

    /// Lines that nobody got to see.
    [[nodiscard]] std::uint64_t dropped() const;

private:
    void run();
    [[nodiscard]] bool write(std::string_view line);
    [[nodiscard]] bool is_late() const;

    unblocked_fd out_;
    const line_writer_options options_;
    mutable std::mutex turn_;
    std::condition_variable changed_;
    std::deque<std::string> lines_;
    std::size_t bytes_{0};
    std::uint64_t dropped_{0};
    std::uint64_t dropped_told_{0};
    bool writing_{false};
    bool ending_{false};
    std::chrono::steady_clock::time_point give_up_at_{};
    std::thread thread_;
};

}  // namespace millrace::app
