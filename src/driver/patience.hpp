/// How long a tool that a person has called goes on while others are in its way, and the words that say so.
///
/// A store that fails for as long as the wait ends the tool, and no try begins after it; so does a row that
/// others change again and again. What is waited for is logged once, as `tool.waits`. Lives on its host.
#pragma once

#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace millrace {

class patience {
public:
    static constexpr nanoseconds wait_default = std::chrono::seconds{5};
    static constexpr nanoseconds pause = std::chrono::milliseconds{200};  ///< Between two attempts.

    patience(host& loop, nanoseconds wait) : loop_(loop), wait_(wait) {}

    /// Whether to try again what failed for this.
    [[nodiscard]] bool lasts(const error& why) {
        if (why.code == errc::conflict) return ++conflicts_ < conflicts_max;
        if (why.retry == retry_advice::never) return false;
        if (!failing_since_) failing_since_ = loop_.now();
        if (loop_.now() + pause - *failing_since_ >= wait_) return false;
        say(why.detail);
        return true;
    }

    /// The store does again what it failed to do.
    void answered() { failing_since_.reset(); }

    /// Something is done for good.
    void progress() {
        answered();
        conflicts_ = 0;
    }

    void say(const std::string& what) {
        if (said_ == what) return;
        said_ = what;
        loop_.log().write(log_level::info, "tool.waits", {{"detail", what}});
    }

private:
    static constexpr int conflicts_max = 20;

    host& loop_;
    nanoseconds wait_;
    std::optional<mono_time> failing_since_;
    int conflicts_{0};
    std::string said_;
};

}  // namespace millrace
