/// The application of the demonstration: it writes orders and, in the same transaction, their events.
///
/// `write` runs on a thread of its own; `written` and `committed_at` may be asked from any thread.
#pragma once

#include "words.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace millrace::demo {

using wall_clock = std::chrono::system_clock;

/// What is to be written: made-up orders, or the lines of the reader's own file.
struct workload {
    std::uint64_t orders{20'000};
    std::uint64_t customers{500};        ///< Keys of the made-up orders.
    std::chrono::milliseconds pause{2};  ///< After each transaction of made-up orders.
    std::vector<std::string> lines;      ///< Events as NDJSON, each with its number in a header.
    std::vector<std::string> topics{"orders"};

    [[nodiscard]] std::uint64_t events() const { return lines.empty() ? orders : lines.size(); }
};

/// Reads the reader's events, adds the header by which they are counted. Throws input_fault with FILE:LINE.
[[nodiscard]] workload read_events(const std::filesystem::path& file);

class application {
public:
    application(std::string millrace, std::filesystem::path database, workload work);

    /// Writes everything; throws std::runtime_error when the database refuses it.
    void write();

    [[nodiscard]] const workload& work() const noexcept { return work_; }
    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
    [[nodiscard]] wall_clock::time_point committed_at(std::uint64_t number) const;

private:
    void write_orders();
    void write_lines();
    void committed(std::uint64_t first, std::uint64_t last);

    std::string millrace_;
    std::filesystem::path database_;
    workload work_;
    std::atomic<std::uint64_t> written_{0};
    mutable std::mutex mutex_;
    std::vector<wall_clock::time_point> committed_at_;
};

}  // namespace millrace::demo
