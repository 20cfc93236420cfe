/// Membership in a leader group on Kafka, as goharvest's relays form it: whoever owns partition 0 of the
/// leader topic leads.
///
/// Works on a thread of its own, so that nothing the relay does can delay a heartbeat or its own fencing.
/// The decisions are those of `kafka_seat`; listeners are called on the host. Everything but `deadline`,
/// `joined`, `others_wait` and `trouble` belongs to the host's thread.
#pragma once

#include "kafka_url.hpp"
#include "port/group_leader.hpp"
#include "port/host.hpp"

#include <millrace/time.hpp>

#include <memory>
#include <string>

namespace millrace {

struct kafka_leader_options {
    kafka_address address;
    std::string group;
    std::string topic;  ///< Made with one partition if it is missing.
    std::string name;   ///< In heartbeats; without %.
    nanoseconds heartbeat_timeout{std::chrono::seconds{5}};

    /// What the group allows a silent member before it replaces it, and how long one that gave way stays out.
    [[nodiscard]] nanoseconds session_timeout() const { return 3 * heartbeat_timeout; }
};

class kafka_leader final : public group_leader {
public:
    kafka_leader(host& home, kafka_leader_options options);

    /// Ends the thread at once; without `stop` before, the session lapses.
    ~kafka_leader() override;
    kafka_leader(const kafka_leader&) = delete;
    kafka_leader& operator=(const kafka_leader&) = delete;

    [[nodiscard]] result<void> start(group_leader_listener& listener) override;
    void stop(completion<void> done) override;
    void drained() override;
    void give_way() override;
    [[nodiscard]] mono_time deadline() const override;
    [[nodiscard]] bool joined() const override;
    [[nodiscard]] bool others_wait() const override;
    [[nodiscard]] std::optional<error> trouble() const override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
