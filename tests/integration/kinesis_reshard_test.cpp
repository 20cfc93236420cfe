// Splits, merges and ends of shards, on the stand-in of the Kinesis API.

#include "kinesis_latest.hpp"

#include <array>

#include <openssl/evp.h>

namespace millrace::test {
namespace {

/// A record of the Kinesis Producer Library that holds one record for each key.
std::string aggregate(const texts& keys, const std::string& data) {
    const auto field = [](char tag, const std::string& bytes) {
        return std::string{tag, static_cast<char>(bytes.size())} + bytes;
    };
    std::string message;
    for (const auto& key : keys)
        message += field('\x0a', key);
    for (std::size_t i = 0; i < keys.size(); ++i)
        message += field('\x1a', std::string{'\x08', static_cast<char>(i)} + field('\x1a', data));
    std::array<unsigned char, 16> sum{};
    EVP_Digest(message.data(), message.size(), sum.data(), nullptr, EVP_md5(), nullptr);
    return "\xf3\x89\x9a\xc2" + message + std::string(sum.begin(), sum.end());
}

/// A key that hashes into the lower half of the ring, or into the upper one.
std::string key_of_half(bool upper, int which) {
    for (int i = 0, found = 0;; ++i) {
        auto key = "k" + std::to_string(i);
        const bool is_upper = kinesis_fake::hash_of(key).high >> 63U != 0;
        if (is_upper == upper && found++ == which) return key;
    }
}

/// Every record of the parents came before the first of the child.
void expect_behind(
    const kinesis_receipts& seen, std::uint32_t child, const std::vector<std::uint32_t>& parents
) {
    const auto entries = seen.entries();
    const auto first = std::ranges::find(entries, shard_name(child), &kinesis_receipts::entry::shard);
    for (auto later = first; later != entries.end(); ++later) {
        for (const auto parent : parents)
            EXPECT_NE(later->shard, shard_name(parent))
                << later->data << " came behind a record of its child";
    }
}

struct KinesisReshard : testing::TestWithParam<bool> {
    kinesis_fake::server_options options() const {
        kinesis_fake::server_options made;
        made.limits.end_with_records = GetParam();
        return made;
    }
};

INSTANTIATE_TEST_SUITE_P(Ends, KinesisReshard, testing::Bool(), [](const auto& which) {
    return which.param ? "WithTheLastRecord" : "BehindTheLastRecord";
});

TEST_P(KinesisReshard, ReadsParentsBeforeTheirChildrenThroughSplitMergeAndScaling) {
    kinesis_world world(2, options());
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> first(world.settings("a"), handler);
    background<consumer> second(world.settings("b"), handler);
    int number = 0;
    const auto put_some = [&] {
        for (int i = 0; i < 40; ++i, ++number)
            world.put("key-" + std::to_string(number % 10), std::to_string(number + 1));
    };
    put_some();
    world.split(0);  // 2, 3
    put_some();
    world.fake.with([](auto in) { ASSERT_TRUE(in.model.merge("orders", shard_name(2), shard_name(3))); }
    );  // 4
    put_some();
    world.fake.with([](auto in) { ASSERT_TRUE(in.model.resize("orders", 3)); });
    put_some();
    EXPECT_TRUE(seen.wait(static_cast<std::size_t>(number)));
    EXPECT_TRUE(first.stop());
    EXPECT_TRUE(second.stop());
    std::map<std::string, int> last;
    std::set<std::string> known;
    for (const auto& e : seen.entries()) {
        if (!known.insert(e.data).second) continue;
        EXPECT_LT(std::exchange(last[e.key], std::stoi(e.data)), std::stoi(e.data)) << e.key;
    }
    expect_behind(seen, 2, {0});
    expect_behind(seen, 3, {0});
    expect_behind(seen, 4, {2, 3});
}

TEST_P(KinesisReshard, OfAShardWithoutARecordIsPassed) {
    kinesis_world world(1, options());
    world.split(0);
    world.put_to(1, "child");
    world.put_to(2, "other child");
    EXPECT_EQ(world.read(2).size(), 2U);
}

TEST_P(KinesisReshard, OfTheLatestLosesNothing) {
    kinesis_world world(1, options());
    latest_reader reader(world);
    reader.until_asked("GetRecords", 1);
    world.fake.with([](auto in) {
        in.model.append_to("orders", shard_name(0), "k", "1");
        in.model.split_in_middle("orders", shard_name(0));
        for (int i = 2; i <= 9; ++i)  // before anybody knows the children
            in.model.append_to("orders", shard_name(i % 2 == 0 ? 1 : 2), "k", std::to_string(i));
    });
    auto data = reader.read(9);
    std::ranges::sort(data);
    EXPECT_EQ(data, numbered_texts("", 1, 9));
}

TEST_P(KinesisReshard, EndsAShardWhoseLastAggregateBelongsToAnotherShard) {
    kinesis_world world(2, options());
    world.put_to(0, "plain", key_of_half(false, 0));
    world.put_to(0, aggregate({key_of_half(false, 0), key_of_half(true, 0)}, "mine"), "a");
    world.put_to(0, aggregate({key_of_half(true, 1), key_of_half(true, 2)}, "foreign"), "a");
    world.split(0);
    world.put_to(2, "child", key_of_half(false, 1));
    EXPECT_EQ(world.read(3), (texts{"plain", "mine", "child"}));
}

TEST_P(KinesisReshard, LeavesASubRecordThatWasAcknowledgedAndReadsTheNext) {
    kinesis_world world(1, options());
    world.put_to(0, aggregate({"a", "b", "c", "d"}, "x"), "a");
    kinesis_receipts seen;
    kinesis_handler handler(seen, [](const record_batch&, const delivery& how) -> result<handled> {
        how.acknowledge.up_to(1);
        return handled::later;
    });
    auto settings = world.settings();
    settings.sharing.drain_limit = 200ms;
    background<consumer> running(settings, handler);
    ASSERT_TRUE(seen.wait(1));
    ASSERT_TRUE(running.stop());
    ASSERT_EQ(seen.entries().size(), 4U);
    kinesis_receipts again;
    kinesis_handler all(again);
    background<consumer> next(world.settings(), all);
    ASSERT_TRUE(again.wait(1));
    ASSERT_TRUE(next.stop());
    ASSERT_EQ(again.entries().size(), 2U);
    EXPECT_EQ(again.entries()[0].key, "c");
    EXPECT_EQ(again.entries()[1].key, "d");
}

TEST(KinesisLineage, ReadsAChildWhoseParentIsLongGone) {
    kinesis_world world(2);
    world.split(0);
    world.split(2);
    for (const std::uint32_t gone : {0U, 2U})
        world.fake.with([&](auto in) { in.model.forget("orders", shard_name(gone)); });
    for (const std::uint32_t shard : {1U, 3U, 4U, 5U})
        world.put_to(shard, std::to_string(shard));
    EXPECT_EQ(world.read(4).size(), 4U);
}

TEST(KinesisLineage, TakesTheEndOfAShardThatTheServiceGivesWithoutChildren) {
    kinesis_world world(1);
    world.put_to(0, "1");
    world.add({.what = fault::childless_end, .operation = "GetRecords"});
    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> running(world.settings(), handler);
    ASSERT_TRUE(seen.wait(1));
    world.split(0);
    world.put_to(1, "2");
    world.put_to(2, "3");
    EXPECT_TRUE(seen.wait(3));
    EXPECT_TRUE(running.stop());
    EXPECT_EQ(seen.entries().size(), 3U);
}

TEST(KinesisLineage, EndsAShardWhoseCheckpointIsItsLastNumberAndGoesOnWithItsChildren) {
    kinesis_world world(1);
    world.put_to(0, "1");
    EXPECT_EQ(world.read(1), texts{"1"});
    world.split(0);
    world.put_to(1, "2");
    std::string last;
    world.fake.with([&](auto in) {
        last = in.model.last_sequence(in.model.shard_at("orders", shard_name(0)));
    });
    world.set_checkpoint(0, last);
    EXPECT_EQ(world.read(1), texts{"2"});
}

TEST(KinesisLineage, EndsAShardWhoseLastRecordWasAcknowledgedBeforeItWasClosed) {
    kinesis_world world(1);
    world.put_to(0, "1");
    EXPECT_EQ(world.read(1), texts{"1"});
    world.split(0);
    world.put_to(1, "2");
    EXPECT_EQ(world.read(1), texts{"2"}) << "nothing comes twice";
}

TEST(KinesisLineage, ReadsTheRestOfAParentThoughAChildHasACheckpoint) {
    kinesis_world world(1);
    for (int i = 1; i <= 10; ++i)
        world.put_to(0, "p" + std::to_string(i));
    kinesis_receipts half;
    kinesis_handler stops(half, [](const record_batch& batch, const delivery& how) -> result<handled> {
        if (batch.records().size() == 10) how.acknowledge.up_to(4);
        return handled::later;
    });
    auto settings = world.settings();
    settings.sharing.drain_limit = 200ms;
    background<consumer> running(settings, stops);
    ASSERT_TRUE(half.wait(10));
    world.split(0);
    const auto a1 = world.put_to(1, "a1");
    world.put_to(1, "a2");
    world.put_to(2, "b1");
    std::this_thread::sleep_for(1s);  // the children are listed and have rows
    ASSERT_TRUE(running.stop());
    world.set_checkpoint(1, a1.sequence);

    kinesis_receipts seen;
    kinesis_handler handler(seen);
    background<consumer> again(world.settings(), handler);
    EXPECT_TRUE(seen.wait(7));
    EXPECT_TRUE(again.stop());
    EXPECT_EQ(seen.data(shard_name(0)), numbered_texts("p", 6, 10));
    EXPECT_EQ(seen.data(shard_name(1)), texts{"a2"});
    EXPECT_EQ(seen.data(shard_name(2)), texts{"b1"});
    expect_behind(seen, 1, {0});
    expect_behind(seen, 2, {0});
}

TEST(KinesisLineage, KeepsTheDeadlineOfAShutdownWhileAChildWaitsForItsParent) {
    kinesis_world world(1);
    world.put_to(0, "1");
    kinesis_receipts seen;
    kinesis_handler never(seen, [](const record_batch&, const delivery&) -> result<handled> {
        return handled::later;
    });
    background<consumer> running(world.settings(), never);
    ASSERT_TRUE(seen.wait(1));
    world.split(0);
    world.put_to(1, "2");
    std::this_thread::sleep_for(700ms);  // the children are known and wait
    const auto asked = std::chrono::steady_clock::now();
    EXPECT_TRUE(running.stop());
    EXPECT_LT(std::chrono::steady_clock::now() - asked, 2s) << "the drain limit is one second";
    EXPECT_EQ(seen.data(), texts{"1"}) << "the child was not begun";
}

TEST(KinesisFailures, EndThoughAListingIsInFlightAndThenFails) {
    kinesis_world world(2);
    for (int i = 1; i <= 5; ++i) {
        world.put_to(0, "0-" + std::to_string(i));
        world.put_to(1, "1-" + std::to_string(i));
    }
    kinesis_receipts seen;
    std::atomic<bool> sick{false};
    kinesis_handler handler(seen, [&](const record_batch& batch, const delivery&) -> result<handled> {
        if (!sick || batch.shard().value() != shard_name(0)) return handled::all;
        return fail(errc::internal, "the handler fails");
    });
    auto settings = world.settings();
    settings.reading.on_failure = failure_policy::stop;
    background<consumer> running(settings, handler);
    ASSERT_TRUE(seen.wait(10));
    world.add({.what = fault::internal_failure, .operation = "ListShards", .delay = 3s});
    const auto listings = world.fake.requests("ListShards");
    while (world.fake.requests("ListShards") == listings)
        std::this_thread::sleep_for(5ms);
    sick = true;
    world.put_to(0, "0-6");
    world.put_to(1, "1-6");
    EXPECT_TRUE(seen.wait(12));
    world.put_to(1, "1-7");
    EXPECT_TRUE(seen.wait(13)) << "the other shard goes on";
    const auto asked = std::chrono::steady_clock::now();
    const auto ended = running.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - asked, 2s);
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(ended->shards_stopped, 1U);
}

}  // namespace
}  // namespace millrace::test
