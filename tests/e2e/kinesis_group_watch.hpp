/// Watches a group from outside all the time: reads what its workers print, samples its rows, and keeps when
/// each owner of a shard delivered first and last. Any thread may call.
#pragma once

#include "kinesis_group_state.hpp"
#include "support/group_check.hpp"
#include "support/line_follower.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace millrace::e2e {

class group_watch {
public:
    using clock = std::chrono::steady_clock;
    using moment = support::group_check::moment;

    group_watch(std::filesystem::path deliveries, group_state& state);
    ~group_watch();
    group_watch(const group_watch&) = delete;
    group_watch& operator=(const group_watch&) = delete;

    template <class F>
    auto with(F act) {
        const std::lock_guard lock(mutex_);
        return act(check_);
    }

    /// Behind everything that was printed by now.
    [[nodiscard]] moment now();

    [[nodiscard]] std::uint64_t delivered() {
        return with([](const auto& check) { return check.delivered(); });
    }

    /// Until what was put so far was delivered; false when nothing more comes for so long.
    [[nodiscard]] bool drained(std::chrono::milliseconds quiet_limit);

    /// What one owner of a shard delivered, as it was seen here.
    struct stay {
        std::string worker;
        std::uint64_t epoch{0};
        clock::time_point first;
        clock::time_point last;
        clock::duration longest_silence{0};
    };

    /// The latest of each shard.
    [[nodiscard]] std::map<std::string, stay> stays();

private:
    void watch();
    void read_lines();

    std::mutex mutex_;  // all but the thread and the state
    support::line_follower deliveries_;
    support::group_check check_;
    std::map<std::string, stay> stays_;

    group_state& state_;  // the thread's own
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace millrace::e2e
