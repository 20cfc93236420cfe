/// One worker of a group at work on a loop: its leases, and, unless it takes all shards alone, its session
/// on a keeper's thread.
///
/// Lives on the loop. Also beats: about three times a second it proves to the keeper that the loop turns, and
/// calls whoever wants to look after something at that pace.
#pragma once

#include "event_loop.hpp"
#include "group_driver.hpp"
#include "keeper.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/options.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace millrace {

struct member_settings {
    millrace::worker_id worker;  ///< Empty: made from host, process and a random number.
    nanoseconds lease{0};
    group_options sharing;
};

class member final : private session_listener {
public:
    /// `open` makes stores of the group's state. References must outlive the member.
    [[nodiscard]] static result<std::unique_ptr<member>> make(
        event_loop& loop,
        const member_settings& settings,
        keeper::store_opener open,
        shard_lister& lister,
        group_listener& listener
    );
    ~member() override;

    [[nodiscard]] result<void> start();

    /// Gives back every lease, then the session. Completes once, within a second of the drain limit (or some
    /// 1.5 s when it holds no shard), whatever the state does: what it did not take by then lapses.
    void stop(completion<void> done);

    void on_beat(std::function<void()> what) { on_beat_ = std::move(what); }
    [[nodiscard]] group_driver& group() { return *group_; }
    [[nodiscard]] lease_store& store() { return *store_; }
    [[nodiscard]] const worker_id& worker() const { return worker_; }

    /// Why it is cut off from the group's state, if it is: what the latest listing met, else what its session
    /// ended by.
    [[nodiscard]] std::optional<error> trouble() const;

private:
    member(event_loop& loop, const member_settings& settings, keeper::store_opener open, worker_id worker);
    void beat();
    void session_started(const incarnation& mine) override;
    void session_ended(const incarnation& mine, const error& why) override;

    event_loop& loop_;
    worker_id worker_;
    nanoseconds every_;
    nanoseconds stop_limit_;
    keeper::store_opener open_;
    bool started_{false};
    std::optional<error> session_over_;
    lifetime alive_;
    std::function<void()> on_beat_;
    std::unique_ptr<lease_store> store_;
    std::unique_ptr<keeper> keeper_;  // null when all shards are taken alone
    std::unique_ptr<group_driver> group_;
};

}  // namespace millrace
