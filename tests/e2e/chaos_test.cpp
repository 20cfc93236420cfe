// Promises 1, 2 and 6 with real processes: everything arrives, in order per key, and no more comes twice than
// what was in flight or not yet written at each fault.

#include "application.hpp"
#include "fleet.hpp"

#include <chrono>
#include <future>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::uint64_t events = 20'000;
constexpr auto quiet_limit = 60s;  // the longest time without any delivery

struct fault_counts {
    std::uint64_t kills{0};
    std::uint64_t pauses{0};
    std::uint64_t stops{0};
    std::uint64_t relay_crashes{0};  ///< Kills and pauses: what may repeat events.
    std::uint64_t worker_crashes{0};
};

/// Kills, pauses and stops random members, one after the other, each brought back before the next.
class chaos {
public:
    chaos(fleet& members, std::uint32_t seed) : fleet_(members), random_(seed) {}

    void once() {
        auto& members = fleet_.members();
        const auto index = pick(members.size());
        auto& member = members[index];
        auto& crashes = member.what == fleet::role::relay ? counts_.relay_crashes : counts_.worker_crashes;
        switch (pick(3)) {
            case 0:
                member.process.signal(SIGKILL);
                ASSERT_TRUE(member.process.wait(5s));
                ++counts_.kills;
                ++crashes;
                if (pick(2) == 0) {
                    fleet_.start_again(index);
                } else {
                    fleet_.start_renamed(index);
                }
                break;
            case 1:
                member.process.signal(SIGSTOP);
                wait(fleet_.options().lease + 1500ms);
                member.process.signal(SIGCONT);
                ++counts_.pauses;
                ++crashes;
                break;
            default:
                member.process.ask_to_end();
                const auto ended = member.process.wait(15s);
                ASSERT_TRUE(ended) << member.name << " did not end after SIGTERM";
                EXPECT_EQ(ended->status, 0) << member.name;
                ++counts_.stops;
                fleet_.start_again(index);
        }
    }

    void wait(std::chrono::milliseconds time) {
        support::eventually(time, [&] {
            fleet_.follow();
            return false;
        });
    }

    std::size_t pick(std::size_t bound) { return random_() % bound; }
    [[nodiscard]] const fault_counts& counts() const { return counts_; }

private:
    fleet& fleet_;
    std::mt19937 random_;
    fault_counts counts_;
};

void reshard(fleet& members, std::uint64_t written, int& done) {
    const auto when = [&](int step, std::uint64_t percent) {
        return done == step && written * 100 >= events * percent;
    };
    if (when(0, 15)) {
        ASSERT_EQ(members.stream("split", {"--shard", "shardId-000000000000"}).status, 0);
        ++done;
    } else if (when(1, 35)) {
        ASSERT_EQ(
            members.stream("merge", {"--shard", "shardId-000000000002", "--shard", "shardId-000000000003"})
                .status,
            0
        );
        ++done;
    } else if (when(2, 60)) {
        ASSERT_EQ(members.stream("split", {"--shard", "shardId-000000000001"}).status, 0);
        ++done;
    }
}

TEST(Chaos, NothingIsLostOrReorderedWhileEverythingIsKilledPausedStoppedAndResharded) {
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    fleet members{{}};
    members.start();
    demo::application application{MILLRACE_PROGRAM, members.database(), {.orders = events, .pause = 10ms}};
    auto writing = std::async(std::launch::async, [&] { application.write(); });

    chaos faults{members, seed};
    int resharded = 0;
    while (writing.wait_for(0s) != std::future_status::ready) {
        ASSERT_NO_FATAL_FAILURE(faults.once());
        ASSERT_NO_FATAL_FAILURE(reshard(members, application.written(), resharded));
        faults.wait(std::chrono::milliseconds{300 + faults.pick(900)});
    }
    writing.get();
    while (resharded < 3)
        ASSERT_NO_FATAL_FAILURE(reshard(members, application.written(), resharded));

    auto last_progress = clock::now();
    auto seen = members.check().distinct();
    while (members.check().distinct() < events && clock::now() - last_progress < quiet_limit) {
        support::pause_briefly();
        members.follow();
        if (members.check().distinct() != seen) last_progress = clock::now();
        seen = members.check().distinct();
    }
    for (auto& member : members.members()) {
        member.process.ask_to_end();
    }
    for (auto& member : members.members()) {
        const auto ended = member.process.wait(20s);
        ASSERT_TRUE(ended) << member.name << " did not end after SIGTERM";
        EXPECT_EQ(ended->status, 0) << member.name;
    }
    members.follow();

    for (std::uint64_t number = 1; number <= events; ++number)
        members.check().written(number);
    const auto report = members.check().report();
    const auto& counts = faults.counts();
    const auto& limits = members.options();
    EXPECT_EQ(report.lost, 0U) << "first: " << testing::PrintToString(members.check().missing(5));
    EXPECT_EQ(report.out_of_order, 0U);
    EXPECT_EQ(report.unknown, 0U);
    // A relay repeats at most what it had handed over or not yet deleted; a worker, for each of at most seven
    // shards, what it had acknowledged since the last checkpoint and what was in its handler.
    EXPECT_LE(report.published_twice, counts.relay_crashes * 2 * limits.client_window_rows);
    EXPECT_LE(
        report.handed_twice,
        counts.worker_crashes * 7 * (limits.checkpoint_records + 2 * limits.batch_records)
    );
    std::printf(
        "%lu delivered, %lu kills, %lu pauses, %lu stops; %lu published twice, %lu handed twice\n",
        report.delivered,
        counts.kills,
        counts.pauses,
        counts.stops,
        report.published_twice,
        report.handed_twice
    );
    if (HasFailure()) std::printf("%s\n%s\n", members.group_status().output.c_str(), members.log().c_str());
}

}  // namespace
}  // namespace millrace::e2e
