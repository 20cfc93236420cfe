/// Applications that write events to an outbox in PostgreSQL in concurrent transactions, through anything
/// that happens to the server.
///
/// Each event carries its number within its lane (topic and key), from 1 on: a counter in a table of the
/// application's own, raised in the same transaction. The lock on that row is held until the transaction ends
/// and taken before the outbox draws an id, so numbers, ids and commits of a lane have one order, and the
/// table says at the end what was committed, also where a reply was lost. One in five transactions is rolled
/// back, some pause between insert and commit. A writer whose connection ends makes a new one.
#pragma once

#include "support/keyed_check.hpp"

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace millrace::support {

class sql_connection;

struct writing {
    int writers{8};
    int keys{200};  ///< Of each topic.
    std::vector<std::string> topics;
    double rows_per_second{0};  ///< Of all writers; 0: as fast as the server lets them.
    int large_percent{2};       ///< Of the rows.
    int small_bytes{150};       ///< Of a value.
    int large_bytes{30'000};
};

class keyed_writers {
public:
    /// Makes the table of counters and starts. The outbox is `outbox`, made by `millrace outbox init`.
    keyed_writers(std::string url, writing what);
    ~keyed_writers();
    keyed_writers(const keyed_writers&) = delete;
    keyed_writers& operator=(const keyed_writers&) = delete;

    /// Each ends its transaction; returns when all have.
    void stop();

    [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }            ///< Committed for sure.
    [[nodiscard]] std::uint64_t rollbacks() const noexcept { return rollbacks_; }  ///< Asked for.
    [[nodiscard]] std::uint64_t reconnects() const noexcept { return reconnects_; }

    /// Tells the check what was committed of each lane, as the server has it.
    void judge(keyed_check& check) const;

private:
    void write(std::uint32_t seed);
    void write_through_one_connection(std::mt19937& random);
    std::uint64_t transaction(sql_connection& sql, std::mt19937& random);

    std::string url_;
    writing what_;
    std::atomic<bool> stops_{false};
    std::atomic<std::uint64_t> rows_{0};
    std::atomic<std::uint64_t> rollbacks_{0};
    std::atomic<std::uint64_t> reconnects_{0};
    std::vector<std::thread> threads_;
};

}  // namespace millrace::support
