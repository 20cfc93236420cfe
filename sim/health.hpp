/// When each process of the world last had trouble, and when it ended: what excuses a duplicate.
///
/// Trouble is whatever keeps a process from being punctual: a pause, or a request that failed.
#pragma once

#include "scheduler.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace millrace::sim {

using namespace std::chrono_literals;

class health_book {
public:
    explicit health_book(const scheduler& world) : world_(world) {}

    void trouble(const std::string& who) { processes_[who].troubled = world_.now(); }
    void trouble_everywhere() { everywhere_ = world_.now(); }
    void ended(const std::string& who) { processes_[who].ended = world_.now(); }

    /// Whether the process had trouble at or after `since`.
    [[nodiscard]] bool troubled(const std::string& who, world_time since) const {
        const auto found = processes_.find(who);
        const auto own = found != processes_.end() ? found->second.troubled : std::nullopt;
        return (own && *own >= since) || (everywhere_ && *everywhere_ >= since);
    }
    [[nodiscard]] bool alive(const std::string& who) const {
        const auto found = processes_.find(who);
        return found == processes_.end() || !found->second.ended;
    }

    /// Until when the process can have done anything.
    [[nodiscard]] world_time last_moment(const std::string& who) const {
        const auto found = processes_.find(who);
        return found != processes_.end() ? found->second.ended.value_or(world_.now()) : world_.now();
    }

private:
    struct record {
        std::optional<world_time> troubled;
        std::optional<world_time> ended;
    };

    const scheduler& world_;
    std::map<std::string, record> processes_;
    std::optional<world_time> everywhere_;
};

/// Why something is delivered again.
enum class cause : std::uint8_t { none, retry, crash, loss, release, by_operator };

/// How often something was delivered again, by what caused it.
struct repeats {
    std::uint64_t after_retry{0};  ///< The handler or the sink failed, or a reply was lost.
    std::uint64_t after_crash{0};
    std::uint64_t after_loss{0};      ///< A process lost its lease while it lived.
    std::uint64_t after_release{0};   ///< Given back before all was acknowledged.
    std::uint64_t after_operator{0};  ///< A reset, a replay, a restored table.

    void count(cause why) {
        switch (why) {
            case cause::none:
                break;
            case cause::retry:
                ++after_retry;
                break;
            case cause::crash:
                ++after_crash;
                break;
            case cause::loss:
                ++after_loss;
                break;
            case cause::release:
                ++after_release;
                break;
            case cause::by_operator:
                ++after_operator;
                break;
        }
    }
    repeats& operator+=(const repeats& other) {
        after_retry += other.after_retry;
        after_crash += other.after_crash;
        after_loss += other.after_loss;
        after_release += other.after_release;
        after_operator += other.after_operator;
        return *this;
    }
};

}  // namespace millrace::sim
