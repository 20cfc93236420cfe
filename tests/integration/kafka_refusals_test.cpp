// What brokers refuse, by the real relay on the real sink: never 2, 3, 1; innocent rows of a refused batch
// are delivered, never parked.

#include "integration/kafka_relay_world.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string& broker() {
    return support::services().kafka;
}

/// Rows of `keys` keys, in turns, with growing values.
void put_many(
    kafka_relay_world& world, const std::string& topic, int rows, int keys, std::size_t padding = 100
) {
    for (int i = 0; i < rows; ++i)
        world.put(topic, "key-" + std::to_string(i % keys), std::to_string(i) + std::string(padding, '.'));
}

/// All rows of `put_many`, each key in order; `from`: the first that must be there.
void expect_in_order(kafka_relay_world& world, const std::string& topic, int rows, int keys) {
    auto found = world.delivered(topic);
    int total = 0;
    for (int k = 0; k < keys; ++k) {
        const auto& values = found["key-" + std::to_string(k)];
        total += static_cast<int>(values.size());
        int expected = k;
        for (const auto& value : values) {
            ASSERT_EQ(std::stoi(value), expected) << "key " << k;
            expected += keys;
        }
    }
    EXPECT_EQ(total, rows);
}

class KafkaOversize : public testing::TestWithParam<std::string> {};

TEST_P(KafkaOversize, RowAboveTheTopicsLimitNeverLetsLaterRowsOfItsKeyOvertake) {
    kafka_relay_world world(broker(), GetParam());
    const auto topic = world.topic("oversize", 1, {{"max.message.bytes", "20000"}});
    put_many(world, topic, 200, 10);
    std::string noise;  // no codec makes it small
    for (std::uint64_t x = 1; noise.size() < 60'000; x = x * 6364136223846793005ULL + 1)
        noise += static_cast<char>(x >> 56U);
    const auto poison = world.put(topic, "k", noise);
    world.put(topic, "k", "2");
    world.put(topic, "k", "3");
    world.put(topic, "other", "a");
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    // The key is parked: its later rows follow the refused one.
    ASSERT_THAT(world.outbox.buried(), SizeIs(3));
    EXPECT_EQ(world.outbox.buried()[0].id, poison);
    EXPECT_EQ(world.outbox.buried()[0].reason, "refused_record");
    EXPECT_THAT(world.outbox.buried()[0].detail, HasSubstr(topic));
    auto found = world.delivered(topic);
    EXPECT_THAT(found["k"], IsEmpty());
    EXPECT_THAT(found["other"], ElementsAre("a"));
    found.erase("k");
    EXPECT_EQ(found.size(), 11U);
}

INSTANTIATE_TEST_SUITE_P(
    WithAndWithoutCompression,
    KafkaOversize,
    testing::Values("", "?compression.codec=gzip", "?message.max.bytes=30000")
);

// Nothing is known of the topic when its first row is sent, so that row must not be judged by what main says
// of it.
TEST(KafkaRefusals, FirstRowOfATopicThatOnlyAProbeTakesIsDelivered) {
    kafka_relay_world world(broker());
    const auto topic = world.topic("large", 4, {{"max.message.bytes", "3000000"}});
    const std::string large(2'400'000, 'x');
    world.put(topic, "z", large);
    world.put(topic, "z", "4");
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    EXPECT_TRUE(world.delivered(topic)["z"] == std::vector<std::string>({large, "4"}));
    EXPECT_EQ(world.sink->counters().resets, 0U) << "its size is known before it can stop main";
}

TEST(KafkaRefusals, FirstRowOfATopicThatOnlyCompressionBringsBelowTheLimitIsDelivered) {
    kafka_relay_world world(broker(), "?compression.codec=gzip");
    const auto topic = world.topic("compressed", 1, {{"max.message.bytes", "20000"}});
    const std::string large(60'000, 'x');
    world.put(topic, "z", large);
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    EXPECT_TRUE(world.delivered(topic)["z"] == std::vector<std::string>({large}));
}

TEST(KafkaRefusals, RowsOfTheParkedKeyAreParkedAndNeverOvertakeWithPolicyParkRow) {
    relay_options relay;
    relay.on_poison = poison_policy::park_row;
    kafka_relay_world world(broker(), "", {}, relay);
    const auto topic = world.topic("park_row", 1, {{"max.message.bytes", "5000"}});
    const auto poison = world.put(topic, "k", std::string(6'000, 'x'));
    world.put(topic, "k", "2");
    world.put(topic, "k", "3");
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.outbox.buried(), SizeIs(1));
    EXPECT_EQ(world.outbox.buried()[0].id, poison);
    EXPECT_THAT(world.delivered(topic)["k"], ElementsAre("2", "3"));
}

TEST(KafkaRefusals, NullKeyOfACompactedTopicIsParkedAloneWithoutStoppingMain) {
    kafka_relay_world world(broker());
    const auto topic = world.topic("compacted", 1, {{"cleanup.policy", "compact"}});
    world.put(topic, "k", "1");
    world.outbox.put({.topic = topic, .value = "no key"});
    world.put(topic, "k", "2");
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.outbox.buried(), SizeIs(1));
    EXPECT_EQ(world.outbox.buried()[0].id, 2);
    EXPECT_THAT(world.outbox.buried()[0].detail, HasSubstr("Broker failed")) << "only the broker judges";
    EXPECT_THAT(world.delivered(topic)["k"], ElementsAre("1", "2"));
}

TEST(KafkaRefusals, TopicWithALimitBelowTheProducersBatchIsServed) {
    kafka_relay_world world(broker(), "?linger.ms=20");
    const auto topic = world.topic("small_limit", 2, {{"max.message.bytes", "1000"}});
    put_many(world, topic, 500, 7);
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    EXPECT_EQ(world.sink->counters().refused, 0U);
    expect_in_order(world, topic, 500, 7);
}

TEST(KafkaRefusals, LimitLoweredBelowABatchParksNoInnocentRow) {
    kafka_relay_world world(broker(), "?linger.ms=20");
    const auto topic = world.topic("lowered", 1);
    put_many(world, topic, 50, 7);
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    world.admin().configure_topic(topic, {{"max.message.bytes", "1000"}});
    for (int i = 50; i < 550; ++i)
        world.put(topic, "key-" + std::to_string(i % 7), std::to_string(i) + std::string(100, '.'));
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    EXPECT_GE(world.sink->counters().refused, 1U) << "the limit was not met, so nothing was shown";
    EXPECT_GE(world.sink->counters().resets, 1U);
    expect_in_order(world, topic, 550, 7);
}

TEST(KafkaRefusals, UnknownTopicStopsNoOtherAndIsDeliveredOnceItExists) {
    relay_options relay;
    relay.retry_max = milliseconds{300};
    kafka_relay_world world(broker(), "", {}, relay);
    const auto topic = world.topic("known");
    const auto missing = support::unique_name("kafka_missing");
    put_many(world, topic, 50, 5);
    world.put(missing, "k", "1");
    world.put(missing, "k", "2");
    for (int i = 50; i < 100; ++i)
        world.put(topic, "key-" + std::to_string(i % 5), std::to_string(i));
    world.start();
    ASSERT_TRUE(world.loop.run_until([&] { return world.outbox.size() == 2; }));
    world.loop.run_for(milliseconds{500});
    ASSERT_TRUE(world.driver->last_error());
    EXPECT_THAT(world.driver->last_error()->detail, HasSubstr(missing));
    EXPECT_EQ(world.outbox.size(), 2U);
    world.admin().create_topic(missing, 1);
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    EXPECT_THAT(world.delivered(missing)["k"], ElementsAre("1", "2"));
    expect_in_order(world, topic, 100, 5);
}

TEST(KafkaRefusals, DeniedTopicStopsMainOnceAndIsDeliveredOnceAllowed) {
    relay_options relay;
    relay.retry_max = milliseconds{300};
    kafka_relay_world world(broker(), "", {}, relay);
    const auto topic = world.topic("allowed");
    const auto denied = world.topic("denied");
    world.admin().deny(denied, support::kafka_admin::operation::write);
    world.put(denied, "k", "1");
    world.put(denied, "k", "2");
    put_many(world, topic, 100, 5);
    world.start();
    ASSERT_TRUE(world.loop.run_until([&] { return world.outbox.size() == 2; }));
    put_many(world, topic, 100, 5);
    ASSERT_TRUE(world.loop.run_until([&] { return world.outbox.size() == 2; }));
    world.loop.run_for(milliseconds{500});
    EXPECT_LE(world.sink->counters().resets, 1U) << "a denied topic must not end main again and again";
    world.admin().allow_all(denied);
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    EXPECT_THAT(world.delivered(denied)["k"], ElementsAre("1", "2"));
}

TEST(KafkaRefusals, PartitionThatDoesNotExistHoldsUpItsLaneAloneUntilItDoes) {
    relay_options relay;
    relay.retry_max = milliseconds{300};
    kafka_sink_options sink;
    sink.refresh_every = milliseconds{200};
    kafka_relay_world world(broker(), "", sink, relay);
    const auto topic = world.topic("partitions", 2);
    world.outbox.put({.topic = topic, .key = "k", .value = "later", .partition = 3});
    world.outbox.put({.topic = topic, .key = "k", .value = "now", .partition = 1});
    world.start();
    ASSERT_TRUE(world.loop.run_until([&] { return world.outbox.size() == 1; }));
    world.admin().add_partitions(topic, 4);
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    std::vector<std::pair<std::int32_t, std::string>> found;
    for (const auto& r : support::read_topic(broker(), topic))
        found.emplace_back(r.partition, r.value.value_or(""));
    EXPECT_THAT(found, testing::UnorderedElementsAre(std::pair(1, "now"), std::pair(3, "later")));
}

TEST(KafkaSink, ARowThatNamesAPartitionIsTakenByTheFirstTryAfterThatWasAdded) {
    kafka_relay_world world(broker());
    const auto topic = world.topic("partition_added", 2);
    const auto probe = [&](std::int32_t partition) {
        auto rows = std::make_shared<row_batch>();
        outbox_row row;
        row.id = row_id{1};
        row.topic = rows->store(topic);
        row.partition = partition;
        rows->add(row);
        const auto outcome = world.loop.await<publish_outcome>([&](auto done) {
            world.sink->publish(channel::probe, {{&rows->rows()[0], rows}}, epoch{1}, std::move(done));
        });
        return outcome && outcome->failures.empty();
    };
    EXPECT_TRUE(probe(1)) << "the client knows the topic";
    EXPECT_FALSE(probe(3));
    world.loop.run_for(milliseconds{1'000});  // what the refusal had looked up is known
    world.admin().add_partitions(topic, 4);
    EXPECT_TRUE(probe(3));
}

// As with a relay whose clock is far from the broker's: what this machine calls now is refused.
TEST(KafkaRefusals, EventsWithoutATimestampAreNeverBuriedForTheTimeOfThisMachine) {
    relay_options relay;
    relay.retry_max = milliseconds{300};
    relay.max_attempts = 3;
    kafka_relay_world world(broker(), "", {}, relay);
    const auto topic = world.topic("clock", 1, {{"message.timestamp.before.max.ms", "0"}});
    put_many(world, topic, 200, 20);
    const auto dated = world.outbox.put(
        {.topic = topic, .key = "dated", .value = "1"}, wall_time{milliseconds{1'700'000'000'000}}
    );
    world.start();
    ASSERT_TRUE(world.loop.run_until(
        [&] {
            const auto why = world.driver->last_error();
            return why && why->detail.find("clock of this machine or of the broker") != std::string::npos;
        },
        milliseconds{20'000}
    ));
    world.loop.run_for(milliseconds{2'000});
    world.admin().configure_topic(topic, {});
    ASSERT_TRUE(world.run_until_empty());
    for (const auto& row : world.outbox.buried())
        EXPECT_EQ(row.id, dated) << row.detail;
    auto found = world.delivered(topic);
    found.erase("dated");
    EXPECT_EQ(found.size(), 20U);
    for (const auto& [key, values] : found)
        EXPECT_THAT(values, SizeIs(10)) << key;
}

TEST(KafkaSink, SendsTimestampsHeadersAndTheHeaderOfTheOutbox) {
    kafka_sink_options how;
    how.outbox = "app/public.outbox";
    kafka_relay_world world(broker(), "", how);
    const auto topic = world.topic("full");
    const wall_time then{milliseconds{1'700'000'000'123}};
    world.outbox.put(
        {.topic = topic, .key = "k", .value = "v", .headers = {{"h", std::string("\0\xff", 2)}}}, then
    );
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    const auto records = support::read_topic(broker(), topic);
    ASSERT_THAT(records, SizeIs(1));
    EXPECT_EQ(records[0].timestamp, then.time_since_epoch().count());
    EXPECT_EQ(records[0].header("h"), std::string("\0\xff", 2));
    EXPECT_EQ(records[0].header("millrace-outbox"), "1 app/public.outbox");
}

}  // namespace
}  // namespace millrace::test
