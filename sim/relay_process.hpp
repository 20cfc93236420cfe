/// A relaying process: a member of the outbox's own group, and a relay driver that works while it holds the
/// one lease.
#pragma once

#include "fake_outbox.hpp"
#include "fake_sink.hpp"
#include "member.hpp"
#include "process.hpp"
#include "relay_driver.hpp"
#include "relay_oracle.hpp"
#include "scenario.hpp"

#include <memory>
#include <optional>

namespace millrace::sim {

struct relay_setup {
    member_setup member;
    relay_options relay;
    sink_options broker;
    outbox_table& table;
    sink_service& service;
    const faults& outbox_faults;
    const faults& sink_faults;
    relay_oracle& oracle;
};

/// The only shard of an outbox's group.
[[nodiscard]] shard_id outbox_shard();

class relay_process final : public process, private group_listener {
public:
    /// As `worker`.
    relay_process(
        const surroundings& around, const relay_setup& setup, std::function<void(const error&)> exited
    );
    ~relay_process() override;

    void start() override;
    void stop(completion<void> done) override { member_.stop(std::move(done)); }
    [[nodiscard]] member& part() override { return member_; }
    [[nodiscard]] std::string over_budget() const override;

private:
    class lister;
    class watched_outbox;
    class watched_sink;

    void granted(const lease_grant& grant) override;
    void revoke(const shard_id& shard) override;
    void lost(const shard_id& shard, const error& why) override;
    void failed(const error& why) override;

    relay_setup setup_;
    member member_;
    std::function<void(const error&)> exited_;
    std::unique_ptr<lister> lister_;
    std::unique_ptr<outbox_source> source_;
    std::unique_ptr<event_sink> sink_;
    std::unique_ptr<relay_driver> relay_;
    std::optional<lease_grant> grant_;
};

}  // namespace millrace::sim
