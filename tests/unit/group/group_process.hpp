/// One process of a group on a simulated machine, and the stream whose shards it shares.
#pragma once

#include "fake_lease_store.hpp"
#include "group_driver.hpp"
#include "scheduler.hpp"
#include "session_driver.hpp"
#include "unit/remembered_log.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::sim {

/// A stream that is only listed.
class listed_stream final : public shard_lister {
public:
    explicit listed_stream(host& home) : home_(home) {}

    void list_shards(completion<stream_listing> done) override {
        ++asked;
        result<stream_listing> reply = *now;
        if (refuses) reply = tl::unexpected(*refuses);
        auto answer = [done = std::move(done), reply = std::move(reply)] { done(reply); };
        if (takes == nanoseconds::zero()) return home_.post(std::move(answer));
        home_.call_at(home_.now() + takes, std::move(answer));
    }

    std::shared_ptr<stream_listing> now;
    std::optional<error> refuses;
    nanoseconds takes{0};
    int asked{0};

private:
    host& home_;
};

inline listed_shard listed(std::string name, std::vector<shard_id> parents = {}) {
    return {shard_id{std::move(name)}, std::move(parents), false, "0", "1"};
}

inline std::vector<listed_shard> shards_named(std::size_t count) {
    std::vector<listed_shard> all;
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(listed(fmt::format("shard-{:04}", i)));
    return all;
}

struct group_settings {
    group_options group{};
    nanoseconds lease{std::chrono::seconds{10}};
    clock_error clock{};
};

/// One process: a keeper and a loop on one machine, a session and a group on them. Gives shards back as soon
/// as it is asked, unless told otherwise.
class worker final : public group_listener, public session_listener {
public:
    worker(
        scheduler& world,
        rng& random,
        lease_table& table,
        const faults& plan,
        std::shared_ptr<stream_listing> stream,
        process_identity self,
        std::string name,
        const group_settings& settings,
        std::function<bool(const process_identity&)> gone
    )
        : keeper(world, random, settings.clock, &log),
          loop(world, random, settings.clock, &log),
          keeper_store(table, world, keeper, random, plan),
          store(table, world, loop, random, plan),
          lister(loop) {
        lister.now = std::move(stream);
        if (!settings.group.all_shards) {
            session = std::make_unique<session_driver>(
                keeper,
                keeper_store,
                session_options{.worker = worker_id{std::move(name)}, .lease = settings.lease},
                self,
                gone,
                *this
            );
        }
        group = std::make_unique<group_driver>(
            loop, store, lister, session.get(), settings.group, self, std::move(gone), *this
        );
    }

    void start() {
        if (session) session->start();
        group->start();
    }

    void crash() {
        keeper.crash();
        loop.crash();
    }
    void pause() {
        keeper.pause();
        loop.pause();
    }
    void resume() {
        keeper.resume();
        loop.resume();
    }

    /// As the runtime does it: the group first, then the session.
    void stop() {
        group->stop([this](const result<void>& outcome) {
            group_stopped = outcome;
            if (session)
                keeper.post([this] { session->stop([this](const result<void>& o) { stopped = o; }); });
        });
    }

    void granted(const lease_grant& grant) override {
        held.insert_or_assign(grant.shard, grant);
        ++grants;
    }
    void revoke(const shard_id& shard) override {
        ++revokes;
        if (release_at_once) give_back(shard);
    }
    void lost(const shard_id& shard, const error& why) override {
        held.erase(shard);
        losses.push_back(why);
    }
    void membership(std::size_t index, std::size_t total) override { place = {index, total}; }
    void failed(const error& why) override { failure = why; }

    void session_started(const incarnation& mine) override {
        loop.post([this, mine] { group->session_started(mine); });
    }
    void session_ended(const incarnation& mine, const error& why) override {
        ++sessions_ended;
        loop.post([this, mine, why] { group->session_ended(mine, why); });
    }

    void give_back(const shard_id& shard) {
        const auto found = held.extract(shard);
        if (found.empty()) return;
        group->release(shard, found.mapped().epoch, [this](const result<void>& outcome) {
            outcome ? ++releases : ++failed_releases;
        });
    }

    [[nodiscard]] bool acts_on(const shard_id& shard) const {
        const auto found = held.find(shard);
        return !loop.crashed() && found != held.end() && group->may_act(shard, found->second.epoch);
    }

    test::remembered_log log;
    sim_host keeper;
    sim_host loop;
    fake_lease_store keeper_store;
    fake_lease_store store;
    listed_stream lister;
    std::unique_ptr<session_driver> session;
    std::unique_ptr<group_driver> group;

    std::map<shard_id, lease_grant> held;
    std::vector<error> losses;
    std::optional<error> failure;
    std::optional<result<void>> group_stopped;
    std::optional<result<void>> stopped;
    std::pair<std::size_t, std::size_t> place{};
    bool release_at_once{true};
    int grants{0};
    int revokes{0};
    int releases{0};
    int failed_releases{0};
    int sessions_ended{0};
};

}  // namespace millrace::sim
