#include "fake_lease_store.hpp"

#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

struct FakeLeaseStore : testing::Test {
    scheduler world;
    rng random{7};
    faults plan{.timeout = 100ms};
    sim_host host{world, random};
    lease_table table;
    fake_lease_store store{table, world, host, random, plan};

    static shard_row shard(std::string name, std::uint64_t v) {
        shard_row row;
        row.shard = shard_id{std::move(name)};
        row.version = version{v};
        return row;
    }
    std::optional<result<void>> outcome;
    void write(shard_row row, std::optional<version> expected) {
        outcome.reset();
        store.write(std::move(row), expected, [this](result<void> r) { outcome = std::move(r); });
    }
    [[nodiscard]] std::uint64_t stored(const std::string& name) const {
        const auto* row = table.find(shard_id{name});
        return row != nullptr ? version_of(*row).value() : 0;
    }
};

TEST_F(FakeLeaseStore, RefusesAWriteThatNamesAnotherVersion) {
    table.put(shard("a", 3));
    write(shard("a", 3), version{2});
    world.run_for(50ms);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->error().code, errc::conflict);
    EXPECT_FALSE(outcome->error().in_doubt);
    EXPECT_EQ(stored("a"), 3U);
}

TEST_F(FakeLeaseStore, AnswersOnItsHostAndOnlyAfterTheCallReturned) {
    host.pause();
    write(shard("a", 1), std::nullopt);
    EXPECT_FALSE(outcome);
    world.run_for(50ms);
    EXPECT_EQ(stored("a"), 1U);
    EXPECT_FALSE(outcome) << "the host is paused";
    host.resume();
    world.run_for(1ms);
    EXPECT_TRUE(outcome && outcome->has_value());
}

TEST_F(FakeLeaseStore, ALostReplyHidesAWriteThatHappened) {
    store.force("write", fate::lost_reply);
    write(shard("a", 1), std::nullopt);
    world.run_for(150ms);
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->error().in_doubt);
    EXPECT_EQ(stored("a"), 1U);
}

TEST_F(FakeLeaseStore, ALateRequestLandsAfterTheClientGaveUp) {
    store.force("write", fate::late);
    write(shard("a", 1), std::nullopt);
    world.run_until(101ms);
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->error().in_doubt);
    world.run_for(5s);
    EXPECT_EQ(stored("a"), 1U);
}

TEST_F(FakeLeaseStore, ADoubledWriteIsRefusedTheSecondTimeAlthoughItHappened) {
    store.force("write", fate::doubled);
    write(shard("a", 1), std::nullopt);
    world.run_for(50ms);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->error().code, errc::conflict);
    EXPECT_EQ(stored("a"), 1U);
}

TEST_F(FakeLeaseStore, RequestsOfACrashedClientStillLand) {
    {
        sim_host doomed{world, random};
        fake_lease_store mine{table, world, doomed, random, plan};
        mine.write(shard("a", 1), std::nullopt, [](const result<void>&) { FAIL() << "the client is gone"; });
    }
    world.run_for(50ms);
    EXPECT_EQ(stored("a"), 1U);
}

TEST_F(FakeLeaseStore, AListingIsNoSnapshot) {
    bool torn = false;
    for (std::uint64_t v = 1; v < 200 && !torn; ++v) {
        table.put(shard("a", v));
        table.put(shard("b", v));
        bool listed = false;
        store.list_shards([&](result<std::vector<shard_row>> rows) {
            torn = rows->at(0).version != rows->at(1).version;
            listed = true;
        });
        while (!listed) {
            world.step();
            table.put(shard("a", v + 1));
            table.put(shard("b", v + 1));
        }
    }
    EXPECT_TRUE(torn);
}

}  // namespace
}  // namespace millrace::sim
