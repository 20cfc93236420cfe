/// Follows the deliveries while they are printed, and says at the end what became of every event.
#pragma once

#include "application.hpp"
#include "pipeline.hpp"
#include "support/delivery_check.hpp"
#include "support/line_follower.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::demo {

/// How long each first delivery took, in two parts.
struct latencies {
    std::vector<std::chrono::milliseconds> in_outbox;  ///< Commit to arrival in the stream.
    std::vector<std::chrono::milliseconds> in_stream;  ///< Arrival to the handler's output.
};

class follower {
public:
    follower(std::filesystem::path deliveries, const application& writer);

    /// Reads what was printed since the last call.
    void read();

    [[nodiscard]] std::uint64_t delivered() const { return check_.distinct(); }
    [[nodiscard]] const support::delivery_check& check() const { return check_; }
    [[nodiscard]] const latencies& times() const { return times_; }

    void all_written();

private:
    void line(const std::string& text);

    support::line_follower deliveries_;
    const application& writer_;
    support::delivery_check check_;
    latencies times_;
};

/// The closing words, ready to print.
[[nodiscard]] std::string summary(
    const follower& seen,
    const usage& used,
    std::chrono::milliseconds writing,
    std::chrono::milliseconds whole
);

}  // namespace millrace::demo
