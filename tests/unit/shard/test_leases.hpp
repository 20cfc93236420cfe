/// What a consumer needs of the group, for tests: leases that check what they are told, and a session.
#pragma once

#include "consumer_driver.hpp"
#include "shard_driver.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::testing_shard {

using namespace std::chrono_literals;

/// Its deadline is the test's business.
class test_session final : public session_view {
public:
    [[nodiscard]] mono_time deadline(const incarnation&) const override { return until; }
    void note_change() override {}
    void loop_turned(mono_time) override {}

    mono_time until = mono_time::max();
};

/// What the group would keep, with its rules.
class test_leases final : public shard_leases {
public:
    struct row {
        epoch mine;
        bool held{true};
        bool finished{false};
        std::optional<checkpoint> reached;
        std::uint64_t records{0};
    };

    explicit test_leases(host& loop) : loop_(loop) {}

    result<void> advance(const shard_id& shard, epoch e, checkpoint reached, std::uint64_t records) override {
        auto& r = rows[shard];
        EXPECT_TRUE(r.held && r.mine == e) << "advanced without the lease";
        EXPECT_TRUE(!r.reached || r.reached->position < reached.position) << "a checkpoint went back";
        r.reached = reached;
        r.records += records;
        return {};
    }
    void finish(const shard_id& shard, epoch e, completion<void> done) override {
        end(shard, e, true, std::move(done));
    }
    void release(const shard_id& shard, epoch e, completion<void> done) override {
        end(shard, e, false, std::move(done));
    }
    void discover_soon() override { ++discoveries; }
    [[nodiscard]] bool unlisted(const shard_id& shard) const override { return not_listed.contains(shard); }
    [[nodiscard]] std::optional<stream_moment> stream() const override {
        return keeps ? std::optional(stream_moment{loop_.wall(), *keeps}) : std::nullopt;
    }
    [[nodiscard]] nanoseconds drain_limit() const override { return drain; }

    std::map<shard_id, row> rows;
    std::vector<error> refusals;  // of the next finishes or releases
    int discoveries{0};
    std::set<shard_id> not_listed;
    nanoseconds drain{10s};
    std::optional<milliseconds> keeps;  ///< The stream's retention.

private:
    void end(const shard_id& shard, epoch e, bool finish, completion<void> done) {
        auto& r = rows[shard];
        EXPECT_TRUE(r.held && r.mine == e) << "ended without the lease";
        result<void> how;
        if (!refusals.empty()) {
            how = tl::unexpected(refusals.front());
            refusals.erase(refusals.begin());
        } else {
            r.held = false;
            r.finished = finish;
        }
        loop_.post([done = std::move(done), how] { done(how); });
    }

    host& loop_;
};

}  // namespace millrace::testing_shard
