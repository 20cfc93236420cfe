#include "contract/lease_store_contract.hpp"

#include "memory_lease_store.hpp"
#include "sqlite_lease_store.hpp"
#include "support/temporary_folder.hpp"

#include <atomic>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

class memory_world final : public lease_world {
public:
    std::unique_ptr<lease_store> make(host& home) override {
        return std::make_unique<memory_lease_store>(home, table_);
    }

private:
    std::shared_ptr<memory_lease_table> table_ = std::make_shared<memory_lease_table>();
};

class sqlite_world final : public lease_world {
public:
    std::unique_ptr<lease_store> make(host& home) override {
        return std::make_unique<sqlite_lease_store>(
            home,
            sqlite_lease_store_options{
                .path = files_.file("state.db"), .group = {"s", "g"}, .when_missing = "", .busy_timeout = 10s}
        );
    }

private:
    support::temporary_folder files_;
};

TEST_P(LeaseStore, IsEmptyAtFirst) {
    EXPECT_TRUE(workers().empty());
    EXPECT_TRUE(shards().empty());
    EXPECT_EQ(read(std::monostate{}), std::nullopt);
    EXPECT_EQ(read(shard_id{"a"}), std::nullopt);
    EXPECT_EQ(read(incarnation{"a"}), std::nullopt);
}

TEST_P(LeaseStore, GivesBackEveryFieldOfAGroup) {
    group_row row;
    row.version = version{1};
    row.write_id = write_id{std::numeric_limits<std::uint64_t>::max()};
    row.stream_identity = "2026-01-01 \"x\"";
    row.start = start_policy::at_timestamp;
    row.start_at = wall_time{1'700'000'000'123ms};
    row.epoch_floor = epoch{7};
    ASSERT_TRUE(write(row));
    EXPECT_EQ(read(std::monostate{}), lease_row{row});

    row.version = version{2};
    row.start = start_policy::latest;
    row.start_at.reset();
    row.epoch_floor = epoch{8};
    ASSERT_TRUE(write(row, version{1}));
    EXPECT_EQ(read(std::monostate{}), lease_row{row});
}

TEST_P(LeaseStore, GivesBackEveryFieldOfAWorker) {
    auto row = worker("i-1", 1);
    row.changes = 3;
    row.process = {"host.example", "boot", "pid:[4026531836]", 4'711, 123'456'789'012};
    row.updated_at = wall_time{1'700'000'000'001ms};
    ASSERT_TRUE(write(row));
    EXPECT_EQ(read(row.incarnation), lease_row{row});
    EXPECT_THAT(workers(), testing::ElementsAre(row));

    row.counter = version{2};
    row.changes = 4;
    row.lease = 5s;
    ASSERT_TRUE(write(row, version{1}));
    EXPECT_EQ(read(row.incarnation), lease_row{row});
}

TEST_P(LeaseStore, GivesBackEveryFieldOfAShard) {
    auto row = shard("shard \"ü\",[1]", 1);
    row.parents = {shard_id{"p,\"1\""}, shard_id{""}};
    row.owner = incarnation{"i-1"};
    row.epoch = epoch{std::uint64_t{1} << 40};
    row.checkpoint = checkpoint{
        {sequence_number::parse(std::string(sequence_number::digits_max, '9')).value(), 17},
        wall_time{1'700'000'000'002ms}};
    row.updated_at = wall_time{1'700'000'000'003ms};
    ASSERT_TRUE(write(row));
    EXPECT_EQ(read(row.shard), lease_row{row});
    EXPECT_THAT(shards(), testing::ElementsAre(row));

    row.version = version{2};
    row.owner = incarnation{};
    row.parents.clear();
    row.checkpoint.reset();
    row.finished_at = wall_time{0ms};
    ASSERT_TRUE(write(row, version{1}));
    EXPECT_EQ(read(row.shard), lease_row{row});
}

TEST_P(LeaseStore, RefusesToCreateWhatExists) {
    ASSERT_TRUE(write(shard("a", 5)));
    expect_conflict(write(shard("a", 1)));
    EXPECT_EQ(read(shard_id{"a"}), lease_row{shard("a", 5)});
}

TEST_P(LeaseStore, RefusesAWriteThatExpectsAnotherVersion) {
    ASSERT_TRUE(write(shard("a", 5)));
    auto another = shard("a", 5);
    another.write_id = write_id{1};
    expect_conflict(write(another, version{4}));
    expect_conflict(write(shard("a", 7), version{6}));
    EXPECT_EQ(read(shard_id{"a"}), lease_row{shard("a", 5)});
    EXPECT_TRUE(write(shard("a", 6), version{5}));
}

TEST_P(LeaseStore, RefusesToReplaceWhatIsAbsent) {
    expect_conflict(write(shard("a", 1), version{0}));
    expect_conflict(write(worker("a", 2), version{1}));
    group_row group;
    group.version = version{2};
    expect_conflict(write(group, version{1}));
    EXPECT_TRUE(shards().empty());
    EXPECT_TRUE(workers().empty());
}

TEST_P(LeaseStore, RemovesOnlyTheExpectedVersion) {
    ASSERT_TRUE(write(worker("a", 5)));
    ASSERT_TRUE(write(worker("b", 5)));
    expect_conflict(remove(incarnation{"a"}, version{4}));
    EXPECT_EQ(workers().size(), 2u);
    EXPECT_TRUE(remove(incarnation{"a"}, version{5}));
    expect_conflict(remove(incarnation{"a"}, version{5}));
    EXPECT_THAT(workers(), testing::ElementsAre(worker("b", 5)));
}

TEST_P(LeaseStore, RefusesAHeartbeatOfAnEndedSession) {
    ASSERT_TRUE(write(worker("a", 1)));
    ASSERT_TRUE(remove(incarnation{"a"}, version{1}));
    expect_conflict(write(worker("a", 2), version{1}));
    EXPECT_TRUE(workers().empty());
}

TEST_P(LeaseStore, LetsADeletedRowBeMadeAnew) {
    for (const lease_row& row : {lease_row{shard("a", 1)}, lease_row{worker("a", 1)}, lease_row{[] {
                                     group_row g;
                                     g.version = version{1};
                                     return g;
                                 }()}}) {
        ASSERT_TRUE(write(row));
        ASSERT_TRUE(remove(key_of(row), version{1}));
        EXPECT_EQ(read(key_of(row)), std::nullopt);
        EXPECT_TRUE(write(row));
        EXPECT_EQ(read(key_of(row)), row);
    }
}

TEST_P(LeaseStore, KeepsWorkersShardsAndTheGroupApart) {
    group_row group;
    group.version = version{1};
    ASSERT_TRUE(write(group));
    ASSERT_TRUE(write(shard("a", 1)));
    ASSERT_TRUE(write(worker("a", 1)));
    ASSERT_TRUE(write(shard("b", 1)));
    EXPECT_THAT(shards(), testing::UnorderedElementsAre(shard("a", 1), shard("b", 1)));
    EXPECT_THAT(workers(), testing::ElementsAre(worker("a", 1)));
}

TEST_P(LeaseStore, ShowsAWriteToEveryOtherStoreAtOnce) {
    loop_host elsewhere;
    const auto other = world->make(elsewhere);
    for (std::uint64_t v = 1; v <= 20; ++v) {
        ASSERT_TRUE(write(shard("a", v), v == 1 ? std::nullopt : std::optional(version{v - 1})));
        const auto seen = elsewhere.await<std::optional<lease_row>>([&](auto done) {
            other->read(shard_id{"a"}, std::move(done));
        });
        EXPECT_EQ(seen.value(), lease_row{shard("a", v)});
    }
}

TEST_P(LeaseStore, CompletesManyRequestsExactlyOnceEach) {
    int completed = 0;
    for (int i = 0; i < 200; ++i) {
        store->write(shard(std::to_string(i), 1), std::nullopt, [&](const result<void>& r) {
            EXPECT_TRUE(r);
            ++completed;
        });
    }
    EXPECT_EQ(completed, 0);
    ASSERT_TRUE(home.run_until([&] { return completed == 200; }));
    home.run_for(5ms);
    EXPECT_EQ(completed, 200);
    EXPECT_EQ(shards().size(), 200u);
}

TEST_P(LeaseStore, LetsExactlyOneOfSeveralRacersWin) {
    constexpr std::uint64_t racers = 3;
    constexpr std::uint64_t last = 40;
    std::atomic<std::uint64_t> wins{0};
    const auto race = [&](std::uint64_t racer) {
        loop_host mine;
        const auto own = world->make(mine);
        for (std::uint64_t v = 0; v < last; ++v) {
            auto row = shard("contended", v + 1);
            row.write_id = write_id{row.write_id.value() + racer};
            const auto done = mine.await<void>([&](auto d) {
                own->write(row, v == 0 ? std::nullopt : std::optional(version{v}), std::move(d));
            });
            if (done) {
                ++wins;
            } else {
                EXPECT_EQ(done.error().code, errc::conflict) << done.error().detail;
            }
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t racer = 0; racer < racers; ++racer)
        threads.emplace_back(race, racer);
    for (auto& thread : threads)
        thread.join();
    const auto left = read(shard_id{"contended"});
    ASSERT_TRUE(left);
    EXPECT_EQ(wins, version_of(*left).value());
}

INSTANTIATE_TEST_SUITE_P(
    Contract,
    LeaseStore,
    testing::Values(
        lease_store_case{"memory", [] { return std::make_unique<memory_world>(); }},
        lease_store_case{"sqlite", [] { return std::make_unique<sqlite_world>(); }}
    ),
    [](const auto& which) { return which.param.name; }
);

}  // namespace
}  // namespace millrace::test
