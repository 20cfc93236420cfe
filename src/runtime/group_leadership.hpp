/// Leadership of all outboxes of this process by a group elsewhere; the epoch of each is raised in its own
/// store.
///
/// Lives on the loop.
#pragma once

#include "lease_leadership.hpp"
#include "port/group_leader.hpp"

#include <memory>
#include <vector>

namespace millrace {

class group_leadership final : public leadership, private group_leader_listener {
public:
    /// Every seat has a `raise_in`. References must outlive it.
    [[nodiscard]] static result<std::unique_ptr<group_leadership>> make(
        host& loop, std::unique_ptr<group_leader> leader, std::vector<seat_setup> seats
    );

    [[nodiscard]] result<void> start() override { return leader_->start(*this); }
    void stop(completion<void> done) override { leader_->stop(std::move(done)); }
    [[nodiscard]] bool may_act(std::size_t seat) const override;
    void refused(std::size_t seat) override { seats_[seat]->refused(nullptr); }
    [[nodiscard]] std::optional<mono_time> raising_since(std::size_t seat) const override;
    [[nodiscard]] std::optional<error> trouble(std::size_t seat) const override;
    [[nodiscard]] bool behind_another(std::size_t seat) const override;
    void name_other(std::size_t seat, std::function<void(const std::string&)> done) override;
    [[nodiscard]] bool joined() const override { return leader_->joined(); }
    [[nodiscard]] bool others_wait() const override { return leader_->others_wait(); }
    void give_way() override { leader_->give_way(); }

private:
    group_leadership(host& loop, std::unique_ptr<group_leader> leader)
        : loop_(loop), leader_(std::move(leader)) {}

    void chosen() override;
    void retire() override;
    void lost(const error& why) override;

    host& loop_;
    std::vector<std::unique_ptr<seat>> seats_;
    std::size_t draining_{0};
    lifetime turn_;
    std::unique_ptr<group_leader> leader_;
};

}  // namespace millrace
