/// The application of the demonstration on PostgreSQL: it writes orders and, in the same transaction, their
/// events.
///
/// `write` runs on a thread of its own; the rest may be asked from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace millrace::demo {

class postgres_shop {
public:
    using clock = std::chrono::steady_clock;

    /// Events go to `topic`, numbered from 1, with the customer as their key.
    postgres_shop(std::string database, std::string topic, std::uint64_t orders);

    /// Writes everything; throws support::sql_error when the database refuses it.
    void write();

    [[nodiscard]] std::uint64_t orders() const noexcept { return orders_; }
    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

    /// When the commit of this event returned; the epoch when it has not.
    [[nodiscard]] clock::time_point committed_at(std::uint64_t number) const;

private:
    void committed(std::uint64_t first, std::uint64_t last);

    std::string database_;
    std::string topic_;
    std::uint64_t orders_;
    std::atomic<std::uint64_t> written_{0};
    mutable std::mutex mutex_;
    std::vector<clock::time_point> committed_at_;
};

}  // namespace millrace::demo
