// A hundred workers share two thousand shards.

#include "fake_lease_store.hpp"
#include "fake_stream.hpp"
#include "member.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

constexpr std::size_t shard_count = 2'000;
constexpr nanoseconds tick = 300ms;
constexpr nanoseconds drain = 50ms;

/// Gives a shard back a while after it was asked to, as if a batch had been under way.
class holder final : public group_listener {
public:
    void attach(member& part) { part_ = &part; }

    void granted(const lease_grant& grant) override { epochs_[grant.shard] = grant.epoch; }
    void revoke(const shard_id& shard) override {
        auto& loop = part_->loop();
        loop.call_at(loop.now() + drain, [this, shard, e = epochs_.at(shard)] {
            part_->group().release(shard, e, [](const result<void>&) {});
        });
    }
    void lost(const shard_id&, const error&) override {}
    void failed(const error& why) override { ADD_FAILURE() << why.detail; }

private:
    member* part_{nullptr};
    std::map<shard_id, epoch> epochs_;
};

struct Scale : testing::Test {
    struct process {
        process(Scale& test, std::int64_t pid)
            : part(
                  {test.world, test.random, test.events, test.judge, test.between, test.gone, test.health},
                  {{"h", "b", "n", pid, 1},
                   {.worker = worker_id{"w" + std::to_string(pid)}, .lease = 10s},
                   {.tick = tick},
                   {},
                   test.table,
                   test.good}
              ),
              source(test.stream, test.world, part.loop(), test.random, test.good) {
            listener.attach(part);
            part.join(source, listener);
            part.start();
        }
        ~process() { part.end(); }

        holder listener;
        member part;
        fake_record_source source;
    };

    scheduler world;
    rng random{11};
    trace events{world, false};
    verdicts judge{events};
    health_book health{world};
    seams between;
    faults good{.latency_min = 1ms, .latency_max = 5ms};
    lease_table table;
    fake_stream stream{world, random, {.shards = shard_count}};
    std::map<std::int64_t, std::unique_ptr<process>> processes;
    std::function<bool(const process_identity&)> gone = [this](const process_identity& who) {
        return !processes.contains(who.pid);
    };
    std::uint64_t moves{0};

    void SetUp() override {
        table.observe([this](const std::string&, const lease_row* before, const lease_row* after) {
            const auto* was = before != nullptr ? std::get_if<shard_row>(before) : nullptr;
            const auto* is = after != nullptr ? std::get_if<shard_row>(after) : nullptr;
            if (is != nullptr && !is->owner.value().empty() && (was == nullptr || was->owner != is->owner))
                ++moves;
        });
    }
    void start(std::int64_t from, std::int64_t to) {
        for (auto pid = from; pid < to; ++pid) {
            processes[pid];
            processes[pid] = std::make_unique<process>(*this, pid);
        }
    }

    [[nodiscard]] bool balanced() const {
        std::map<incarnation, std::size_t> holds;
        for (const auto& [key, row] : table.rows())
            if (std::holds_alternative<worker_row>(row)) holds[std::get<incarnation>(key)] = 0;
        if (holds.size() != processes.size()) return false;
        for (const auto& [key, row] : table.rows()) {
            const auto* shard = std::get_if<shard_row>(&row);
            if (shard == nullptr) continue;
            if (!holds.contains(shard->owner)) return false;
            ++holds[shard->owner];
        }
        const auto [least, most] = std::minmax_element(
            holds.begin(), holds.end(), [](const auto& a, const auto& b) { return a.second < b.second; }
        );
        return least->second > 0 && most->second <= least->second + 1;
    }
    [[nodiscard]] nanoseconds settles() {
        const auto begin = world.now();
        while (!balanced() && world.now() < begin + 60s)
            world.run_for(20ms);
        return world.now() - begin;
    }
};

TEST_F(Scale, AHundredWorkersSettleWithinThreeTicksAndTheDrain) {
    // A hungry worker takes what is free instead of waiting for its own: a few shards move twice.
    constexpr auto moves_max = shard_count / 10 + shard_count / 50;
    const auto bound = 3 * tick + drain + 300ms;  // and the requests' own time
    start(0, 90);
    // The first start also creates two thousand rows.
    EXPECT_LE(settles(), 10s);

    moves = 0;
    start(90, 100);
    EXPECT_LE(settles(), bound) << "ten workers joined";
    EXPECT_LE(moves, moves_max) << "hardly more than the newcomers' shares move";

    moves = 0;
    for (std::int64_t pid = 0; pid < 10; ++pid)
        processes.erase(pid);
    EXPECT_LE(settles(), bound) << "ten processes of this machine died";
    EXPECT_LE(moves, moves_max) << "hardly more than the shards of the dead move";
    EXPECT_TRUE(judge.clean());
}

}  // namespace
}  // namespace millrace::sim
