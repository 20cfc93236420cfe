/// The log of the program: one line an event on standard error, key=value or JSON. Any thread may write.
///
/// A thread of its own does the writing: a reader of standard error who stands still costs lines, which are
/// counted and told of, and never holds up the work.
#pragma once

#include <millrace/log.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace millrace::app {

class program_log : public log_sink {
public:
    /// Waits until what was logged is written, for a second at most: before other text on standard error.
    virtual void flush() = 0;

    /// Lines that were dropped because standard error did not take them.
    [[nodiscard]] virtual std::uint64_t dropped() const = 0;
};

/// `level` and `format` as their options allow them.
[[nodiscard]] std::unique_ptr<program_log> make_log(std::string_view level, std::string_view format);

}  // namespace millrace::app
