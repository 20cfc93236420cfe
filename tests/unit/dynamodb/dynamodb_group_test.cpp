// A whole worker over DynamoDB: what it asks for, what that costs, and what it bears.
#include "dynamodb_lease_store.hpp"
#include "fake_dynamodb.hpp"
#include "unit/group/group_process.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace::sim {
namespace {

using namespace std::chrono_literals;
using test::dynamodb_fate;
using testing::AllOf;
using testing::Gt;
using testing::Le;

/// As long as those of a real machine.
process_identity process_of(std::int64_t pid) {
    return {
        "ip-10-0-12-34.eu-west-1.compute.internal",
        "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        "pid:[4026531836]",
        pid,
        123'456'789};
}

/// Takes shards and keeps them.
class dynamodb_worker final : public group_listener, public session_listener {
public:
    dynamodb_worker(
        scheduler& world,
        rng& random,
        test::fake_dynamodb_table& table,
        std::shared_ptr<stream_listing> stream,
        std::int64_t pid
    )
        : keeper(world, random, {}, &log),
          loop(world, random, {}, &log),
          keeper_store(keeper, std::make_unique<test::fake_dynamodb>(world, table), where()),
          store(loop, std::make_unique<test::fake_dynamodb>(world, table), where()),
          lister(loop),
          session(
              keeper,
              keeper_store,
              {.worker = worker_id{fmt::format("ip-10-0-12-34.eu-west-1.compute.internal-{}-5f0c1e", pid)}},
              process_of(pid),
              [](const auto&) { return false; },
              *this
          ),
          group(
              loop, store, lister, &session, {}, process_of(pid), [](const auto&) { return false; }, *this
          ) {
        lister.now = std::move(stream);
        session.start();
        group.start();
    }

    static dynamodb_lease_store_options where() {
        return {.where = {"t", "eu-west-1", "", "table t"}, .group = {"orders", "billing"}};
    }

    void granted(const lease_grant& grant) override { held.insert_or_assign(grant.shard, grant); }
    void revoke(const shard_id& shard) override {
        const auto found = held.extract(shard);
        if (!found.empty()) group.release(shard, found.mapped().epoch, [](const result<void>&) {});
    }
    void lost(const shard_id& shard, const error&) override { held.erase(shard); }
    void membership(std::size_t, std::size_t) override {}
    void failed(const error& why) override { ADD_FAILURE() << why.detail; }
    void session_started(const incarnation& mine) override {
        loop.post([this, mine] { group.session_started(mine); });
    }
    void session_ended(const incarnation& mine, const error& why) override {
        ++sessions_ended;
        loop.post([this, mine, why] { group.session_ended(mine, why); });
    }

    test::remembered_log log;
    sim_host keeper;
    sim_host loop;
    dynamodb_lease_store keeper_store;
    dynamodb_lease_store store;
    listed_stream lister;
    session_driver session;
    group_driver group;
    std::map<shard_id, lease_grant> held;
    int sessions_ended{0};
};

struct DynamodbGroup : testing::Test {
    void begin(std::size_t shards, std::size_t count = 1) {
        stream->identity = "1767225600750";
        for (std::size_t i = 0; i < shards; ++i)
            stream->shards.push_back(listed(fmt::format("shardId-{:012}", i)));
        for (std::size_t i = 0; i < count; ++i) {
            workers.push_back(std::make_unique<dynamodb_worker>(
                world, random, table, stream, 4'000'000 + static_cast<std::int64_t>(i)
            ));
        }
        world.run_for(20s);
        std::size_t held = 0;
        for (const auto& worker : workers)
            held += worker->held.size();
        ASSERT_EQ(held, shards);
    }
    static wall_time loop_time(dynamodb_worker& of) { return of.loop.wall(); }
    void forget_counts() {
        table.requests.clear();
        table.read_units = table.write_units = 0;
    }

    scheduler world;
    rng random{7};
    test::fake_dynamodb_table table;
    std::shared_ptr<stream_listing> stream = std::make_shared<stream_listing>();
    std::vector<std::unique_ptr<dynamodb_worker>> workers;
};

struct DynamodbQuietTick : DynamodbGroup, testing::WithParamInterface<std::size_t> {};

TEST_P(DynamodbQuietTick, IsAtMostOneWriteAndOneListingOfWorkersHoweverManyShards) {
    begin(GetParam());
    // Between two listings of shards, which come every 30 s.
    const auto shard_listings = table.requests["Query shards"];
    while (table.requests["Query shards"] == shard_listings)
        world.run_for(100ms);
    world.run_for(1s);
    forget_counts();
    constexpr int seconds = 24;
    world.run_for(seconds * 1s);
    EXPECT_EQ(table.requests["Query shards"], 0);
    EXPECT_EQ(table.requests["UpdateItem"], seconds / 2) << "heartbeats";
    const auto listings = table.requests["Query workers"];
    EXPECT_GE(listings, seconds * 3);
    EXPECT_LE(listings, seconds * 10 / 3);
    for (const auto& [operation, count] : table.requests) {
        EXPECT_TRUE(count == 0 || operation == "UpdateItem" || operation == "Query workers") << operation;
    }
    EXPECT_EQ(table.read_units, listings) << "one unit each";
    EXPECT_EQ(table.write_units, seconds / 2) << "one unit each";
}

INSTANTIATE_TEST_SUITE_P(Shards, DynamodbQuietTick, testing::Values(10U, 2'000U));

// docs/state-stores.md counts on these.
TEST_F(DynamodbGroup, RowsAreAsSmallAsTheDocsSay) {
    begin(2'000, 10);
    for (const auto& worker : workers) {
        for (const auto& [shard, grant] : worker->held) {
            // As long as those of Kinesis.
            const auto at =
                sequence_number::parse("49590338271490256608559692538361571095921575989136588898").value();
            EXPECT_TRUE(worker->group.advance(shard, grant.epoch, {{at, 0}, loop_time(*worker)}, 1));
        }
    }
    world.run_for(10s);
    for (const auto& [key, item] : table.items) {
        const auto bytes = test::fake_dynamodb_table::bytes_of(item);
        if (key.first.starts_with("workers/")) {
            EXPECT_THAT(bytes, AllOf(Gt(350U), Le(400U)));
        } else if (key.first.starts_with("shards/")) {
            EXPECT_THAT(bytes, AllOf(Gt(200U), Le(300U)));
        }
    }
    forget_counts();
    std::size_t rows = 0;
    workers.front()->store.list_shards([&](const auto& found) { rows = found.value().size(); });
    world.run_for(4ms);
    EXPECT_EQ(rows, 2'000U);
    EXPECT_THAT(table.read_units, AllOf(Gt(100), Le(147)));
}

TEST_F(DynamodbGroup, ThrottledHeartbeatsEndNoSessionBeforeItsTime) {
    begin(4);
    world_time throttled_until{0};
    table.meets = [&](const std::string& operation) {
        const bool now = world.now() < throttled_until && operation == "UpdateItem";
        return now ? dynamodb_fate::throttled : dynamodb_fate::normal;
    };
    for (int i = 0; i < 10; ++i) {
        const auto beats = table.requests["UpdateItem"];
        while (table.requests["UpdateItem"] == beats)
            world.run_for(10ms);
        throttled_until = world.now() + 7s;  // of the 8 that the owner has
        world.run_for(10s);
    }
    EXPECT_EQ(workers.front()->sessions_ended, 0);
    EXPECT_EQ(workers.front()->held.size(), 4U);
}

TEST_F(DynamodbGroup, ThrottledShardsDoNotStarveHeartbeats) {
    begin(4);
    table.meets = [&](const std::string& operation) {
        return operation == "Query" ? dynamodb_fate::throttled : dynamodb_fate::normal;
    };
    world.run_for(60s);
    EXPECT_EQ(workers.front()->sessions_ended, 0);
    EXPECT_EQ(workers.front()->held.size(), 4U);
}

TEST_F(DynamodbGroup, LostRepliesAreReadAgainAndEndNoSession) {
    begin(4);
    for (const bool items : {true, false}) {
        table.returns_items = items;
        int writes = 0;
        table.meets = [&](const std::string& operation) {
            if (operation != "UpdateItem" || ++writes % 2 == 0) return dynamodb_fate::normal;
            return writes % 4 == 1 ? dynamodb_fate::lost_reply : dynamodb_fate::late;
        };
        world.run_for(60s);
        EXPECT_GT(writes, 10);
        EXPECT_EQ(workers.front()->sessions_ended, 0);
        EXPECT_EQ(workers.front()->held.size(), 4U);
    }
}

}  // namespace
}  // namespace millrace::sim
