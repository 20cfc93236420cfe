/// Turns the first SIGTERM or SIGINT into a descriptor that becomes readable, for code that reads with
/// `poll`.
///
/// A second signal has its default again and ends the process. One object at a time.
#pragma once

namespace millrace::app {

class stop_signals {
public:
    stop_signals();
    ~stop_signals();
    stop_signals(const stop_signals&) = delete;
    stop_signals& operator=(const stop_signals&) = delete;

    [[nodiscard]] int fd() const noexcept;
};

}  // namespace millrace::app
