/// The processes of the demonstration: a relay and three workers a topic, and what is done to them.
#pragma once

#include "places.hpp"
#include "support/process.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::demo {

/// What the ended processes used.
struct usage {
    std::chrono::microseconds relay_cpu{0};
    std::chrono::microseconds workers_cpu{0};
    std::int64_t relay_memory_kib{0};
    std::int64_t worker_memory_kib{0};  ///< Of the largest.
};

class pipeline {
public:
    /// Output, logs and the application's database stand in the folder.
    pipeline(
        std::string millrace, std::filesystem::path folder, places where, std::vector<std::string> topics
    );

    /// Creates the outbox and the streams. Throws std::runtime_error with the command's own message.
    void create();
    void start();

    /// Each is done to the first topic, while events flow.
    void split_a_shard();
    void merge_two_shards();
    void kill_a_worker();
    void restart_the_worker();

    /// Everything that the workers printed, in the order in which they did.
    [[nodiscard]] std::filesystem::path deliveries() const { return folder_ / "deliveries.ndjson"; }
    [[nodiscard]] std::filesystem::path database() const { return folder_ / "shop.db"; }
    [[nodiscard]] std::filesystem::path log() const { return folder_ / "millrace.log"; }

    /// The exit of a process that nobody asked to end.
    [[nodiscard]] std::optional<std::string> broken();

    /// Ends everything by SIGTERM; throws when something does not end in time.
    usage stop();

private:
    struct worker {
        std::string name;
        std::string topic;
        support::process process;
    };

    void command(std::vector<std::string> arguments) const;
    [[nodiscard]] support::process start_worker(const std::string& topic, const std::string& name) const;
    void account(const support::exit_report& report);

    std::string millrace_;
    std::filesystem::path folder_;
    places where_;
    std::vector<std::string> topics_;
    std::optional<support::process> relay_;
    std::vector<worker> workers_;
    usage usage_;
};

}  // namespace millrace::demo
