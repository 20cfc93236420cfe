/// Events as lines of JSON:
/// `{"topic":"orders","key":"42","value":"...","headers":[["name","value"]]}`.
///
/// Bytes that are not text come as `key_base64`, `value_base64` and `["name",{"base64":"..."}]`. A value that
/// is null is a tombstone; an object, list, number or truth value is stored as its own JSON text, byte by
/// byte. Parsing is pure; `line_reader` reads a file descriptor.
#pragma once

#include <millrace/error.hpp>
#include <millrace/event.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::app {

/// Reads one line. `topic` is the only topic allowed, and then may be left out; empty: each line must name
/// one. The error's detail does not say which line it was.
[[nodiscard]] result<event> parse_event(std::string_view line, std::string_view topic = {});

/// Why no event can have this topic; empty when it can.
[[nodiscard]] std::string misfit_of_topic(std::string_view name);

/// The first name that an object of valid JSON has twice, however it is written; empty without one.
[[nodiscard]] std::string doubled_field(std::string_view line);

/// The source text of a field of a line that `parse_event` takes; empty without that field.
[[nodiscard]] std::string_view field_text(std::string_view line, std::string_view name);

/// Splits what comes in at a file descriptor into lines. Not thread-safe.
class line_reader {
public:
    enum class outcome : std::uint8_t {
        line,
        end,
        stopped,   ///< `stop_fd` became readable.
        idle,      ///< Nothing came for the time that the caller is ready to wait.
        too_long,  ///< The next line exceeds the limit.
        failed,    ///< `errno` says why.
    };

    /// Once `stop_fd` is readable, no more is read than has been; none with -1.
    line_reader(int fd, std::size_t line_bytes_max, int stop_fd = -1)
        : fd_(fd), stop_fd_(stop_fd), line_bytes_max_(line_bytes_max) {}

    /// `line` is valid until the next call: without its end, and without a byte order mark at the very
    /// beginning. The last line needs no end.
    outcome next(std::string_view& line, std::chrono::milliseconds patience);

    /// Of the latest line, from 1.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

private:
    outcome fill(std::chrono::milliseconds patience);

    int fd_;
    int stop_fd_;
    std::size_t line_bytes_max_;
    std::string buffer_;
    std::size_t begin_{0};    ///< Of the next line.
    std::size_t scanned_{0};  ///< Up to here there is no end of line.
    std::uint64_t number_{0};
    bool ended_{false};
};

}  // namespace millrace::app
