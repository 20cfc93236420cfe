/// Leadership by leases: of one outbox by the lease in its own store, or of many by a fleet's store, where
/// each outbox is a shard and its epoch is raised in its own store.
///
/// Lives on the loop.
#pragma once

#include "event_loop.hpp"
#include "leadership.hpp"
#include "member.hpp"
#include "seat.hpp"
#include "static_lister.hpp"
#include "unnamed_watch.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

/// An outbox that may be led.
struct seat_setup {
    std::string name;  ///< Of its shard.
    seat_holder* holder{nullptr};
    keeper::store_opener raise_in;  ///< Null: the lease's own epoch is the outbox's.
};

class lease_leadership final : public leadership, private group_listener {
public:
    /// `open` makes the store of the leases; `failed` is told what ends this for good. References must
    /// outlive it.
    [[nodiscard]] static result<std::unique_ptr<lease_leadership>> make(
        event_loop& loop,
        member_settings settings,
        std::vector<seat_setup> seats,
        keeper::store_opener open,
        std::function<void(const error&)> failed
    );
    ~lease_leadership() override;

    [[nodiscard]] result<void> start() override;
    void stop(completion<void> done) override;
    [[nodiscard]] bool may_act(std::size_t seat) const override;
    void refused(std::size_t seat) override;
    [[nodiscard]] std::optional<mono_time> raising_since(std::size_t seat) const override;
    [[nodiscard]] std::optional<error> trouble(std::size_t seat) const override;
    [[nodiscard]] bool behind_another(std::size_t seat) const override;
    void name_other(std::size_t seat, std::function<void(const std::string&)> done) override;
    [[nodiscard]] bool joined() const override { return !away_ && member_->group().settled(); }
    [[nodiscard]] bool others_wait() const override { return workers_ > 1; }
    void give_way() override;

private:
    [[nodiscard]] incarnation other_owner(std::size_t seat) const;

    struct place {
        shard_id shard;
        std::unique_ptr<seat> at;
        std::optional<epoch> granted;
    };

    lease_leadership(
        event_loop& loop,
        member_settings settings,
        keeper::store_opener open,
        std::function<void(const error&)> failed
    );
    [[nodiscard]] result<void> make_member();
    void come_back();
    void release(place& which);
    void look_for_unnamed();
    [[nodiscard]] place& at(const shard_id& shard);

    void granted(const lease_grant& grant) override;
    void revoke(const shard_id& shard) override;
    void lost(const shard_id& shard, const error& why) override;
    void membership(std::size_t index, std::size_t total) override;
    void failed(const error& why) override;

    event_loop& loop_;
    member_settings settings_;
    keeper::store_opener open_;
    std::function<void(const error&)> failed_;
    std::unique_ptr<static_lister> lister_;
    std::vector<place> places_;
    unnamed_watch unnamed_;
    std::size_t workers_{0};
    bool away_{false};
    bool stopping_{false};
    bool leaving_{false};
    completion<void> stop_done_;
    alarm back_;
    lifetime alive_;
    std::unique_ptr<member> member_;
};

}  // namespace millrace
