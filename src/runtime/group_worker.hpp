/// The loop's side of a group that is used from other threads: takes leases, keeps them ready for whoever
/// acquires, and gives them back.
///
/// `group_desk` is where the two sides meet; the worker lives on the loop.
#pragma once

#include "event_loop.hpp"
#include "member.hpp"
#include "static_lister.hpp"
#include "unnamed_watch.hpp"

#include <millrace/error.hpp>
#include <millrace/group.hpp>
#include <millrace/url.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

namespace millrace {

/// A lease as both sides see it; constant but for the stop source.
struct held_resource {
    std::string resource;
    millrace::epoch epoch;
    std::optional<position> begin;
    std::shared_ptr<const lease_guard> guard;
    std::stop_source stop{};

    /// Set once it was given back or done; only touched on the loop. The group may hold the resource again by
    /// then.
    std::optional<errc> ended{};
};

/// Shared by the loop and the threads that acquire. All members are guarded by the mutex.
struct group_desk {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::deque<std::shared_ptr<held_resource>> ready;  ///< Granted and not yet acquired.
    std::set<std::string> finished;
    std::optional<membership> place;
    std::optional<error> failed;  ///< For good.
    bool left{false};
};

class group_worker final : public group_listener {
public:
    /// The resources in `settings` are sorted. References must outlive the worker.
    group_worker(event_loop& loop, group_desk& desk, const group_settings& settings);

    /// `invalid_argument` and what is unusable about the state.
    [[nodiscard]] result<void> open(const url& state);

    /// Looks at the state, then registers.
    void start();
    void leave(completion<void> done);

    [[nodiscard]] result<void> advance(const held_resource& held, position reached);
    void persist(const held_resource& held, completion<void> done);
    void release(const held_resource& held, completion<void> done);
    void finish(const held_resource& held, completion<void> done);
    void finished(const std::string& resource, completion<bool> done);

    /// Why a resource could not be acquired in time.
    [[nodiscard]] error why_not(const std::string& resource) const;

    void granted(const lease_grant& grant) override;
    void revoke(const shard_id& shard) override;
    void lost(const shard_id& shard, const error& why) override;
    void membership(std::size_t index, std::size_t total) override;
    void failed(const error& why) override;

private:
    void look();
    void give_back(const held_resource& held);
    bool take_from_desk(const held_resource& held);

    event_loop& loop_;
    group_desk& desk_;
    const group_settings& settings_;
    static_lister lister_;
    std::unique_ptr<member> member_;
    unnamed_watch unnamed_;
    bool leaving_{false};
    std::map<shard_id, std::shared_ptr<held_resource>> held_;
};

}  // namespace millrace
