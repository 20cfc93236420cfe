// A relay into the stand-in of the Kinesis API, with replies that are lost and records that are refused.

#include "kinesis_world.hpp"

namespace millrace::test {
namespace {

/// What the stream holds: events missing, and first deliveries behind a later event of their key.
struct published {
    std::size_t distinct{0};
    std::size_t records{0};
    std::size_t inverted{0};
};

published look(kinesis_world& world) {
    published found;
    std::set<std::string> known;
    std::map<std::string, std::uint64_t> newest;
    world.fake.with([&](auto in) {
        for (const auto& shard : in.model.find("orders").value()->shards) {
            for (const auto& r : shard.records) {
                ++found.records;
                if (!known.insert(r.data).second) continue;
                const auto number = std::stoull(r.data);
                auto& last = newest[r.key];
                if (number < last) ++found.inverted;
                last = std::max<std::uint64_t>(last, number);
            }
        }
    });
    found.distinct = known.size();
    return found;
}

/// Twenty a transaction.
void commit_numbered(writer& shop, std::uint64_t events) {
    for (std::uint64_t first = 0; first < events; first += 20) {
        std::vector<event> transaction;
        for (auto n = first; n < first + 20; ++n)
            transaction.push_back(numbered(n, 7));
        shop.commit(transaction);
    }
}

TEST(KinesisRelay, LosesNothingAndKeepsTheOrderOfKeysWhateverBecomesOfItsRequests) {
    using enum fault;
    kinesis_world world(3);
    for (const auto what :
         {partial_put, failure_after_effect, internal_failure, throttled, overloaded, cut, garbled, silent})
        world.add({.what = what, .operation = "PutRecords", .per_mille = 60});
    pipeline_files files;
    writer shop(files);
    auto settings = files.relay();
    settings.sink = world.fake.sink_url();
    settings.tuning.retry_min = 10ms;
    settings.tuning.retry_max = 100ms;
    background<relay> running(settings);
    constexpr std::uint64_t events = 2'000;
    commit_numbered(shop, events);
    EXPECT_TRUE(support::eventually(60s, [&] { return shop.rows("outbox") == 0; }));
    const auto ended = running.stop();
    ASSERT_TRUE(ended) << ended.error().detail;
    const auto found = look(world);
    EXPECT_EQ(found.distinct, events);
    EXPECT_EQ(found.inverted, 0U);
    EXPECT_GT(world.fake.faults_drawn(), 10U);
}

TEST(KinesisRelay, SendsEachEventOnceWhenNothingFails) {
    kinesis_world world(3);
    pipeline_files files;
    writer shop(files);
    auto settings = files.relay();
    settings.sink = world.fake.sink_url();
    settings.once = true;
    commit_numbered(shop, 500);
    const auto ended = relay(settings).run();
    ASSERT_TRUE(ended) << ended.error().detail;
    const auto found = look(world);
    EXPECT_EQ(found.records, 500U);
    EXPECT_EQ(found.inverted, 0U);
}

TEST(KinesisRelay, CountsWhatItLeavesAfterTheDrainThatMayStillDeliverIt) {
    kinesis_world world(3);
    world.add({.what = fault::slow, .operation = "PutRecords", .delay = 3s});
    pipeline_files files;
    writer shop(files);
    auto settings = files.relay();
    settings.sink = world.fake.sink_url();
    settings.once = true;
    settings.leadership.yield_after = 1s;
    settings.tuning.drain_limit = 20s;
    std::vector<event> few;
    for (std::uint64_t n = 0; n < 5; ++n)
        few.push_back(numbered(n, 7));
    shop.commit(few);
    const auto ended = relay(settings).run();
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(shop.rows("outbox"), 0U);
    EXPECT_EQ(ended->deleted, 5U);
    EXPECT_EQ(ended->left, 0U);
    EXPECT_EQ(ended->ended, once_end::nothing_left);
}

}  // namespace
}  // namespace millrace::test
