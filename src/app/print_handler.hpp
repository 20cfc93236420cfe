/// Prints records as lines of JSON and acknowledges each one when its line is written.
///
/// Lines of several shards interleave as wholes. The lease is checked before each write. When the output is
/// gone, nothing more is acknowledged, `output_gone` is called once, and calls wait until the shard is taken
/// away: that nobody reads is no fault of a record, and must put none among the dead letters. A reader that
/// stands still delays a stop by at most `stall_limit` after it was asked for.
#pragma once

#include "unblocked_fd.hpp"

#include <millrace/handler.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::app {

/// A file descriptor that whole lines are written to. Thread-safe.
class line_output {
public:
    static constexpr std::chrono::milliseconds stall_limit{1000};

    /// `fd` stays open and its flags unchanged.
    explicit line_output(int fd) : out_(fd) {}

    /// Writes all or fails: `unavailable` when the output is gone, `cancelled` when the reader stands still
    /// and `stop` is requested, `not_owner` when `may_write` says no right before the first byte.
    result<void> write(
        std::string_view lines, const std::stop_token& stop, const std::function<bool()>& may_write
    );

private:
    result<void> wait_for_room(const std::stop_token& stop, std::chrono::milliseconds& stalled) const;

    unblocked_fd out_;
    std::mutex turn_;
    std::optional<error> broken_{};  ///< Why nothing may follow: it is gone, or a line was cut short.
};

class print_handler final : public record_handler {
public:
    print_handler(int fd, std::string stream, std::string worker, std::function<void(error)> output_gone);

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override;

private:
    line_output output_;
    std::string stream_;
    std::string worker_;
    std::function<void(error)> output_gone_;
    void wait_for_the_end(const std::stop_token& stop);

    std::once_flag reported_;
    std::mutex ending_;
    std::condition_variable_any ended_;
};

}  // namespace millrace::app
