/// Applications that commit one-row transactions at fixed times (an open loop), each from a connection of its
/// own.
#pragma once

#include "relay/outboxes.hpp"
#include "relay/servers.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace millrace::bench {

using mono = std::chrono::steady_clock;

class writers {
public:
    /// Values are the numbers of the transactions, from 0 on. `per_second` 0: as fast as the server lets
    /// them.
    writers(
        const servers& at, const pg_outbox& outbox, int connections, double per_second, std::uint64_t count
    );
    ~writers();
    writers(const writers&) = delete;
    writers& operator=(const writers&) = delete;

    /// Waits for all transactions; the rate at which they were committed.
    double finish();

    /// When the commit of this transaction returned; zero before.
    [[nodiscard]] mono::time_point committed(std::uint64_t number) const {
        return mono::time_point{mono::duration{returned_[number].load(std::memory_order_acquire)}};
    }

private:
    void write(const servers& at, const pg_outbox& outbox, double per_second);

    std::vector<std::atomic<mono::rep>> returned_;
    std::atomic<std::uint64_t> next_{0};
    mono::time_point begin_;
    std::vector<std::thread> threads_;
};

}  // namespace millrace::bench
