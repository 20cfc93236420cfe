// Faults of the stream, a handler that does anything, leases that go and come.
#include "consumer_world.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace testing_shard;

/// One run of `ConsumerDriverUnderFaults`.
struct chaos : ConsumerDriver {
    explicit chaos(std::uint64_t seed)
        : ConsumerDriver(
              {.on_failure = seed % 2 == 0 ? failure_policy::retry : failure_policy::dead_letter,
               .dead_letter_after = 2,
               .batch_records = 1 + seed % 7,
               .read_records = 1 + seed % 23,
               .shard_unacknowledged = 40},
              {.aggregate = 20, .cursor_life = 3s, .partial_page = 20, .empty_page = 10}
          ) {
        random = sim::rng{seed};
        drain_limit = 2s;
        plan = {
            .unavailable = 10,
            .throttled = 10,
            .lost_request = 3,
            .late = 3,
            .latency_min = 1ms,
            .latency_max = 40ms};
        handler.behave = [this](const auto& batch, const delivery& how) { return behave(batch, how); };
    }
    void TestBody() override {}

    result<handled> behave(const std::shared_ptr<const record_batch>& batch, const delivery& how) {
        if (how.attempt == 1)
            for (const auto& r : batch->records()) {
                const auto number = std::stoi(std::string(*r.data));
                EXPECT_TRUE(number <= first_unseen) << number << " was handed over before " << first_unseen;
                first_unseen = std::max(first_unseen, number + 1);
            }
        const auto settle = [this, batch](std::size_t i) {
            done.insert(std::string(*batch->records()[i].data));
        };
        switch (tame ? 0 : random.below(4)) {
            case 0:
                for (std::size_t i = 0; i < batch->records().size(); ++i)
                    settle(i);
                return handled::all;
            case 1: {
                const auto good = random.below(batch->records().size());
                for (std::size_t i = 0; i < good; ++i)
                    settle(i);
                if (good > 0) how.acknowledge.up_to(good - 1);
                return tl::unexpected(broken());
            }
            case 2:
                throw std::runtime_error("thrown");
            default:
                break;
        }
        for (std::size_t i = 0; i < batch->records().size(); ++i) {
            const auto when = world.now() + milliseconds{static_cast<std::int64_t>(random.below(900))};
            world.at(when, [this, settle, how, i, bad = random.chance(20)] {
                if (bad && !tame) return how.acknowledge.fail(i, broken());
                settle(i);
                how.acknowledge.one(i);
            });
        }
        return handled::later;
    }

    void check() {
        const auto& reached = leases->rows[shard(0)].reached;
        for (const auto& r : stream.shards()[0]->records) {
            if (!reached || reached->position < r.position) break;
            const bool buried = std::any_of(
                dead_letters.stored.begin(),
                dead_letters.stored.end(),
                [&](const std::string& s) { return s.starts_with(*r.data + ": "); }
            );
            EXPECT_TRUE(done.contains(*r.data) || buried) << *r.data << " was passed";
        }
    }

    void go() {
        bool held = true;
        grant(0);
        for (int i = 0; i < 60; ++i) {
            append(i * 5, i * 5 + 4);
            pool.takes = milliseconds{static_cast<std::int64_t>(random.below(300))};
            world.run_for(milliseconds{static_cast<std::int64_t>(random.below(700))});
            check();
            held = leases->rows[shard(0)].held;
            if (held && random.chance(10)) lose(0);
            if (held && random.chance(10)) consumer->revoke(shard(0));
            if (!held) grant(0);
            EXPECT_LE(consumer->counters().bytes_in_memory, options.memory_bytes);
        }
        tame = true;
        plan = plan.calm();
        ASSERT_TRUE(stream.split(shard(0)));
        for (int i = 0; i < 100 && !leases->rows[shard(0)].finished; ++i) {
            if (!leases->rows[shard(0)].held) grant(0);
            world.run_for(5s);
        }
        check();
        EXPECT_TRUE(leases->rows[shard(0)].finished);
        EXPECT_EQ(checkpoint_data(0), "299");
        EXPECT_EQ(consumer->counters().bytes_in_memory, 0U);
    }

    int first_unseen{0};
    bool tame{false};
    std::set<std::string> done;
};

// Faults of the stream, a handler that does anything, and leases that go and come: whatever happens, records
// are first handed over in order, the checkpoint never passes one that was not acknowledged, and in the end
// every record was.
TEST(ConsumerDriverUnderFaults, LosesNothingAndPassesNothing) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE("seed=" + std::to_string(seed));
        chaos run{seed};
        run.go();
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace millrace
