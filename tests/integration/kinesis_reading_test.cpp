// A consumer on the stand-in of the Kinesis API: where it begins, what it acknowledges, what it shares.

#include "kinesis_latest.hpp"

#include <atomic>
#include <filesystem>
#include <map>

namespace millrace::test {
namespace {

TEST(KinesisReading, ReadsAllShardsInOrderAndResumesBehindWhatWasAcknowledged) {
    kinesis_world world(4);
    for (int i = 1; i <= 200; ++i)
        world.put("key-" + std::to_string(i % 16), std::to_string(i));
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    ASSERT_TRUE(seen.wait(200));
    ASSERT_TRUE(running.stop());
    std::map<std::string, int> last;
    for (const auto& e : seen.entries()) {
        const int number = std::stoi(e.data);
        EXPECT_LT(std::exchange(last[e.key], number), number) << e.key;
    }
    for (int i = 201; i <= 220; ++i)
        world.put("key-" + std::to_string(i % 16), std::to_string(i));
    auto second = world.read(20);
    std::ranges::sort(second);
    EXPECT_EQ(second, numbered_texts("", 201, 220)) << "what was acknowledged does not come again";
}

TEST(KinesisReading, ReadsAnEndpointThatSpeaksOnlyJson) {
    kinesis_world world(1, {.speaks_cbor = false});
    const std::string bytes("\0\xff\x80{\"", 5);
    world.put("k", bytes);
    EXPECT_EQ(world.read(1), texts{bytes});
}

TEST(KinesisReading, ReadsEveryShardOfAStreamThatIsListedInPages) {
    kinesis_world world(1'266);  // the service's pages have 1,000
    for (std::uint32_t shard = 0; shard < 1'266; ++shard)
        world.put_to(shard, std::to_string(shard));
    auto settings = world.settings();
    settings.sharing.discover_every = 30s;
    settings.sharing.shard_list_every = 30s;
    settings.sharing.tick = 300ms;
    settings.sharing.checkpoint_every = 1s;
    settings.reading.tip_interval = 10s;
    settings.lease = 10s;
    EXPECT_EQ(world.read(1'266, settings).size(), 1'266U);
}

TEST(KinesisReading, BeginsAListingAnewWhenItsTokenHasExpired) {
    kinesis_fake::server_options options;
    options.limits.page_shards = 2;
    kinesis_world world(7, options);
    for (std::uint32_t shard = 0; shard < 7; ++shard)
        world.put_to(shard, std::to_string(shard));
    world.add({.what = fault::expired_token, .operation = "ListShards", .per_mille = 300, .times = 3});
    EXPECT_EQ(world.read(7).size(), 7U);
}

/// Reads with a handler that acknowledges by index in this order, once; true when it was given `expected`.
void acknowledge(kinesis_world& world, const texts& expected, const std::vector<std::size_t>& order) {
    kinesis_receipts seen;
    std::atomic<bool> once{false};
    kinesis_handler handler(seen, [&](const record_batch& batch, const delivery& how) -> result<handled> {
        if (batch.records().size() == expected.size() && !once.exchange(true)) {
            for (const auto index : order)
                how.acknowledge.one(index);
        }
        return handled::later;
    });
    auto settings = world.settings();
    settings.sharing.drain_limit = 200ms;
    background<consumer> running(settings, handler);
    ASSERT_TRUE(seen.wait(expected.size()));
    ASSERT_TRUE(running.stop());
    EXPECT_EQ(seen.data(), expected);
}

TEST(KinesisReading, KeepsTheCheckpointBelowTheFirstRecordThatIsNotAcknowledged) {
    kinesis_world world(1);
    for (int i = 1; i <= 3; ++i)
        world.put("k", std::to_string(i));
    acknowledge(world, {"1", "2", "3"}, {2});
    acknowledge(world, {"1", "2", "3"}, {2, 0});
    acknowledge(world, {"2", "3"}, {});
    acknowledge(world, {"2", "3"}, {1, 0});
    world.put("k", "4");
    EXPECT_EQ(world.read(1), texts{"4"}) << "3, 1, 2 were all acknowledged";
}

TEST(KinesisReading, LetsTwoApplicationsShareTheReadLimitOfAShard) {
    kinesis_world world(1);
    kinesis_receipts one;
    kinesis_receipts other;
    kinesis_handler to_one(one);
    kinesis_handler to_other(other);
    auto settings = world.settings();
    background<consumer> first(settings, to_one);
    settings.group = "audit";
    background<consumer> second(settings, to_other);
    constexpr int records = 100;
    for (int i = 0; i < records; ++i) {
        world.put("k", std::to_string(i));
        std::this_thread::sleep_for(30ms);
    }
    EXPECT_TRUE(one.wait(records, 10s));
    EXPECT_TRUE(other.wait(records, 10s));
    EXPECT_EQ(one.data().size(), static_cast<std::size_t>(records));
    EXPECT_EQ(other.data().size(), static_cast<std::size_t>(records));
    EXPECT_TRUE(first.stop());
    EXPECT_TRUE(second.stop());
}

TEST(KinesisReading, OfTheLatestLosesNothingWhenTheFirstReadIsThrottled) {
    kinesis_world world(1);
    latest_reader reader(world, [&] {
        world.add({.what = fault::throttled, .operation = "GetRecords", .times = 4});
    });
    reader.until_asked("GetRecords", 1);
    for (int i = 1; i <= 5; ++i)
        world.put("k", std::to_string(i));
    EXPECT_EQ(reader.read(5), numbered_texts("", 1, 5));
}

TEST(KinesisReading, OfTheLatestLosesNothingWhenTheIteratorExpiresBeforeTheFirstRecord) {
    kinesis_world world(1);
    latest_reader reader(world);
    reader.until_asked("GetRecords", 2);
    world.fake.with([](auto in) {
        in.faults.add({.what = fault::expired_iterator, .operation = "GetRecords", .times = 3});
        for (int i = 1; i <= 5; ++i)
            in.model.append("orders", "k", std::to_string(i));
    });
    EXPECT_EQ(reader.read(5), numbered_texts("", 1, 5));
}

TEST(KinesisReading, GoesOnWhenIteratorsExpireFasterThanItReads) {
    kinesis_fake::server_options options;
    options.limits.iterator_life = 150ms;
    kinesis_world world(1, options);
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    auto settings = world.settings();
    settings.reading.tip_interval = 400ms;
    background<consumer> running(settings, handler);
    for (int i = 1; i <= 20; ++i) {
        world.put("k", std::to_string(i));
        std::this_thread::sleep_for(100ms);
    }
    EXPECT_TRUE(seen.wait(20));
    EXPECT_TRUE(running.stop());
    EXPECT_EQ(seen.data(), numbered_texts("", 1, 20));
}

struct KinesisClock : testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Minutes, KinesisClock, testing::Values(-5, 5, -90, 90), [](const auto& which) {
    return (which.param < 0 ? "Behind" : "Ahead") + std::to_string(std::abs(which.param));
});

TEST_P(KinesisClock, OfTheServiceMayDifferFromOurs) {
    kinesis_world world(1, {.clock_skew = std::chrono::minutes{GetParam()}});
    latest_reader reader(world, [&] {
        world.add({.what = fault::expired_iterator, .operation = "GetRecords", .times = 2});
    });
    reader.until_asked("GetShardIterator", 1);
    std::this_thread::sleep_for(50ms);  // whether it was refused for its time first
    for (int i = 1; i <= 5; ++i)
        world.put("k", std::to_string(i));
    EXPECT_EQ(reader.read(5), numbered_texts("", 1, 5));
}

TEST(KinesisReading, ReportsTheGapAndGoesOnWhenItWasDownForLongerThanTheRetention) {
    kinesis_world world(1);
    const auto long_ago = std::chrono::floor<milliseconds>(std::chrono::system_clock::now()) - 23h - 59min;
    world.fake.with([&](auto in) {
        for (int i = 1; i <= 3; ++i)
            in.model.append("orders", "k", std::to_string(i), long_ago);
    });
    EXPECT_EQ(world.read(3), numbered_texts("", 1, 3));
    world.fake.with([&](auto in) {
        for (int i = 4; i <= 6; ++i)
            in.model.append("orders", "k", std::to_string(i), long_ago);
        in.model.append("orders", "k", "7");
    });
    world.fake.shift_clock(5min);  // 1 to 6 are gone, and 4 to 6 were never read
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    EXPECT_TRUE(seen.wait(1));
    const auto ended = running.stop();
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(seen.data(), texts{"7"});
    EXPECT_EQ(ended->gaps_reported, 1U);
}

TEST(KinesisReading, SetsCheckpointsOfAnOlderStreamOfThatNameAside) {
    kinesis_world world(2);
    for (int i = 1; i <= 10; ++i)
        world.put("key-" + std::to_string(i), "old " + std::to_string(i));
    EXPECT_EQ(world.read(10).size(), 10U);
    world.fake.with([](auto in) {
        ASSERT_TRUE(in.model.remove("orders"));
        ASSERT_TRUE(in.model.create("orders", 2));
        for (int i = 1; i <= 10; ++i)
            in.model.append("orders", "key-" + std::to_string(i), "new " + std::to_string(i));
    });
    EXPECT_EQ(world.read(10).size(), 10U);
    EXPECT_EQ(world.read(0), texts{});
}

TEST(KinesisReading, ReadsAStreamThatIsMadeAnewUnderItsEyes) {
    kinesis_world world(2);
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    for (int i = 1; i <= 10; ++i)
        world.put("key-" + std::to_string(i), "old " + std::to_string(i));
    ASSERT_TRUE(seen.wait(10));
    world.fake.with([](auto in) { ASSERT_TRUE(in.model.remove("orders")); });
    std::this_thread::sleep_for(500ms);
    EXPECT_FALSE(running.ended()) << "a missing stream may come back";
    world.fake.with([](auto in) {
        ASSERT_TRUE(in.model.create("orders", 3));
        for (int i = 1; i <= 10; ++i)
            in.model.append("orders", "key-" + std::to_string(i), "new " + std::to_string(i));
    });
    EXPECT_TRUE(seen.wait(20));
    const auto ended = running.stop();
    EXPECT_TRUE(ended) << ended.error().detail;
}

TEST(KinesisReading, EndsAtOnceWithoutAStreamWhenItIsToEndWhenIdle) {
    kinesis_world world(1);
    auto settings = world.settings();
    settings.stream = world.fake.url("misspelt");
    settings.idle_exit = 1h;
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    const auto ended = consumer(settings, handler).run();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, errc::not_found);
    EXPECT_NE(ended.error().detail.find("misspelt"), std::string::npos) << ended.error().detail;
    EXPECT_FALSE(std::filesystem::exists(world.folder.file("state.db"))) << "nothing was made for a slip";
}

TEST(KinesisReading, EndsWithAnErrorWhenItsStreamIsDeletedAndItIsToEndWhenIdle) {
    kinesis_world world(1);
    world.put("k", "1");
    auto settings = world.settings();
    settings.idle_exit = 500ms;
    kinesis_receipts seen;
    kinesis_handler handler(seen, [&](const record_batch&, const delivery&) -> result<handled> {
        world.fake.with([](auto in) { EXPECT_TRUE(in.model.remove("orders")); });
        return handled::all;
    });
    const auto ended = consumer(settings, handler).run();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, errc::not_found);
}

// A first run leaves rows, which say nothing of what the stream holds now.
TEST(KinesisReading, WithRowsOfAnEarlierRunDoesNotEndWhenIdleBeforeItHasListedTheStream) {
    for (const bool all_shards : {false, true}) {
        SCOPED_TRACE(all_shards ? "all shards" : "group");
        kinesis_world world(1);
        world.put("k", "1");
        auto settings = world.settings();
        settings.sharing.all_shards = all_shards;
        settings.idle_exit = 300ms;
        kinesis_receipts seen;
        kinesis_handler handler(seen);
        const auto first = consumer(settings, handler).run();
        ASSERT_TRUE(first) << first.error().detail;
        ASSERT_EQ(seen.distinct(), 1U);
        world.put("k", "2");
        world.add({.what = fault::throttled, .operation = "ListShards"});
        background<consumer> again(settings, handler);
        const auto begun = [&] {
            const auto trouble = (*again).status().trouble;
            return again.ended() || (trouble && trouble->detail.find("not been listed") == std::string::npos);
        };
        EXPECT_TRUE(support::eventually(60s, begun)) << "the first look takes its time";
        std::this_thread::sleep_for(1500ms);
        EXPECT_FALSE(again.ended());
        world.mend();
        const auto ended = again.wait();
        EXPECT_TRUE(ended) << ended.error().detail;
        EXPECT_EQ(seen.distinct(), 2U);
    }
}

TEST(KinesisReading, EndsWithAnErrorWhenItMayNoLongerListTheStreamAndIsToEndWhenIdle) {
    kinesis_world world(1);
    world.put("k", "1");
    auto settings = world.settings();
    settings.idle_exit = 500ms;
    kinesis_receipts seen;
    kinesis_handler handler(seen, [&](const record_batch&, const delivery&) -> result<handled> {
        world.add({.what = fault::access_denied, .operation = "ListShards"});
        return handled::all;
    });
    const auto ended = consumer(settings, handler).run();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, errc::permission_denied);
}

TEST(KinesisReading, IsInTroubleUntilItHasListedTheStream) {
    kinesis_world world(1);
    world.add({.what = fault::slow, .operation = "ListShards", .delay = 1s});
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    ASSERT_TRUE(support::eventually(5s, [&] { return (*running).status().total == 1; }));
    ASSERT_TRUE((*running).status().trouble);
    EXPECT_NE((*running).status().trouble->detail.find("not been listed"), std::string::npos);
    EXPECT_TRUE(support::eventually(5s, [&] { return !(*running).status().trouble; }));
    EXPECT_TRUE(running.stop());
}

TEST(KinesisReading, SaysWhyAShardIsNotReadCountsItAndItsLagGrows) {
    kinesis_world world(2);
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    const auto status = [&] { return (*running).status(); };
    ASSERT_TRUE(support::eventually(5s, [&] { return status().idle && status().shards == 2; }));
    world.add({.what = fault::kms_disabled, .operation = "GetRecords", .shard = shard_name(0)});
    ASSERT_TRUE(support::eventually(15s, [&] { return status().trouble.has_value(); }));
    const auto now = status();
    EXPECT_NE(now.trouble->detail.find(shard_name(0)), std::string::npos) << now.trouble->detail;
    EXPECT_NE(now.trouble->detail.find("KMS"), std::string::npos) << now.trouble->detail;
    EXPECT_GT(now.behind, 3s);
    EXPECT_GT(now.reads_failed, 3U);
    EXPECT_LT(now.reads_failed, now.reads);
    ASSERT_EQ(now.progress.size(), 2U);
    EXPECT_EQ(now.progress[0].shard.value(), shard_name(0)) << "the one to look at comes first";
    EXPECT_EQ(now.progress[1].behind, 0ms);
    world.mend();
    EXPECT_TRUE(support::eventually(5s, [&] { return !status().trouble && status().behind == 0ms; }));
    EXPECT_TRUE(running.stop());
}

TEST(KinesisReading, WaitsForAStreamThatIsNotThereYetAndSaysSo) {
    kinesis_world world(1);
    auto settings = world.settings();
    settings.stream = world.fake.url("later");
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(settings, handler);
    const auto missing = [&] {
        const auto trouble = (*running).status().trouble;
        return trouble && trouble->code == errc::not_found;
    };
    ASSERT_TRUE(support::eventually(5s, missing));
    world.fake.with([](auto in) {
        ASSERT_TRUE(in.model.create("later", 1));
        in.model.append("later", "k", "1");
    });
    EXPECT_TRUE(seen.wait(1));
    EXPECT_TRUE(support::eventually(5s, [&] { return !(*running).status().trouble; }));
    EXPECT_FALSE(running.ended());
    EXPECT_TRUE(running.stop());
}

TEST(KinesisReading, PutsARecordThatKeepsFailingIntoAnotherStreamAndGoesOn) {
    kinesis_world world(1);
    world.fake.with([](auto in) { ASSERT_TRUE(in.model.create("letters", 1)); });
    for (int i = 1; i <= 5; ++i)
        world.put("k", std::to_string(i));
    auto settings = world.settings();
    settings.reading.on_failure = failure_policy::dead_letter;
    settings.reading.dead_letter_after = 2;
    settings.dead_letters = world.fake.url("letters");
    kinesis_receipts seen;
    kinesis_handler handler(seen, [](const record_batch& batch, const delivery& how) -> result<handled> {
        for (std::size_t i = 0; i < batch.records().size(); ++i)
            if (batch.records()[i].data == "3") how.acknowledge.fail(i, {errc::internal, {}, false, "three"});
        return handled::all;
    });
    background<consumer> running(settings, handler);
    EXPECT_TRUE(support::eventually(10s, [&] { return (*running).status().records_acknowledged == 5; }));
    const auto ended = running.stop();
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(ended->records_dead_lettered, 1U);
    settings = world.settings();
    settings.stream = world.fake.url("letters");
    EXPECT_EQ(world.read(1, settings), texts{"3"});
}

TEST(KinesisReading, TakesRepliesOfTenMebibytesAlthoughItsMemoryIsSmall) {
    kinesis_world world(2);
    for (std::uint32_t shard : {0U, 1U}) {
        for (char c = 'a'; c < 'n'; ++c)
            world.put_to(shard, std::to_string(shard) + std::string(1'000'000, c));
    }
    auto settings = world.settings();
    settings.reading.memory_bytes = 4 << 20;
    EXPECT_EQ(world.read(26, settings).size(), 26U);
}

TEST(KinesisReading, KeepsAFaultOfOneShardToThatShard) {
    kinesis_world world(2);
    world.add(
        {.what = fault::access_denied, .operation = "GetShardIterator", .shard = shard_name(0), .times = 3}
    );
    world.add({.what = fault::kms_disabled, .operation = "GetRecords", .shard = shard_name(0)});
    for (std::uint32_t shard : {0U, 1U}) {
        for (int i = 1; i <= 20; ++i)
            world.put_to(shard, std::to_string(shard) + "-" + std::to_string(i));
    }
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    EXPECT_TRUE(seen.wait(20));
    EXPECT_EQ(seen.data(), numbered_texts("1-", 1, 20));
    while (world.fake.requests("GetRecords", shard_name(0)) < 5)
        std::this_thread::sleep_for(10ms);
    EXPECT_EQ(seen.distinct(), 20U);
    world.mend();
    EXPECT_TRUE(seen.wait(40));
    EXPECT_EQ(seen.data(shard_name(0)), numbered_texts("0-", 1, 20));
    EXPECT_TRUE(running.stop());
}

}  // namespace
}  // namespace millrace::test
