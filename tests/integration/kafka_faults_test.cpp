// Brokers that forget, go away and say nothing of their limits, under the real relay and sink.

#include "integration/kafka_relay_world.hpp"
#include "support/private_servers.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Bytes that no codec makes small.
std::string noise(std::size_t bytes) {
    std::string text;
    for (std::uint64_t x = 1; text.size() < bytes; x = x * 6364136223846793005ULL + 1)
        text += static_cast<char>(x >> 56U);
    return text;
}

/// Later rows go out while the broker refuses the first one: only its order keeps them back.
class KafkaUndescribed : public testing::Test {
protected:
    KafkaUndescribed() : topic(world.topic("undescribed")) {
        world.admin().deny(topic, support::kafka_admin::operation::describe_configs);
        world.admin().configure_topic(topic, {{"max.message.bytes", "20000"}});
    }
    static relay_options park_row() {
        relay_options relay;
        relay.on_poison = poison_policy::park_row;
        return relay;
    }
    kafka_relay_world world{support::services().kafka, "?linger.ms=10", {}, park_row()};
    std::string topic;
};

TEST_F(KafkaUndescribed, LimitIsLearnedFromARefusalAndInnocentRowsOfItsBatchAreDelivered) {
    for (int i = 0; i < 20; ++i)
        world.put(topic, "innocent-" + std::to_string(i), "1");
    world.put(topic, "k", "0");
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    const auto poison = world.put(topic, "k", noise(60'000));
    world.put(topic, "k", "2");
    world.put(topic, "k", "3");
    for (int i = 0; i < 20; ++i)
        world.put(topic, "innocent-" + std::to_string(i), "2");
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.outbox.buried(), SizeIs(1));
    EXPECT_EQ(world.outbox.buried()[0].id, poison);
    auto found = world.delivered(topic);
    EXPECT_THAT(found["k"], ElementsAre("0", "2", "3"));
    for (int i = 0; i < 20; ++i)
        EXPECT_THAT(found["innocent-" + std::to_string(i)], ElementsAre("1", "2"));
    EXPECT_EQ(world.sink->counters().resets, 1U);

    // A second one of that size is known beforehand and ends no producer.
    world.put(topic, "k", noise(60'000));
    world.put(topic, "k", "4");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.outbox.buried(), SizeIs(2));
    EXPECT_THAT(world.delivered(topic)["k"], ElementsAre("0", "2", "3", "4"));
    EXPECT_EQ(world.sink->counters().resets, 1U);
}

/// Hands rows of one key to main in requests of their own, the first one too large for the broker, and gives
/// back what arrived of the key.
std::vector<std::string> after_an_idle_time(nanoseconds idle_partition, milliseconds idle) {
    static support::private_kafka broker(
        {"producer.id.expiration.ms=1500", "producer.id.expiration.check.interval.ms=100"}
    );
    kafka_sink_options how;
    how.idle_partition = idle_partition;
    kafka_relay_world world(broker.bootstrap(), "?batch.num.messages=1", how);
    const auto topic = world.topic("idle");
    // It says 1 MB when asked, and takes less: as a limit that was lowered since.
    const auto batch = std::make_shared<row_batch>();
    const auto large = noise(60'000);
    for (int i = 0; i < 200; ++i) {
        outbox_row row;
        row.id = row_id{i + 1};
        row.topic = topic;
        row.key = "k";
        row.value = i == 100 ? std::string_view(large) : batch->store(std::to_string(i));
        batch->add(row);
    }
    int done = 0;
    const auto send = [&](std::size_t from, std::size_t to) {
        for (auto i = from; i < to; ++i)
            world.sink->publish(channel::main, {{&batch->rows()[i], batch}}, epoch{1}, [&](auto) { ++done; });
    };
    send(0, 100);
    EXPECT_TRUE(world.loop.run_until([&] { return done == 100; }));
    world.admin().configure_topic(topic, {{"max.message.bytes", "20000"}});
    world.loop.run_for(idle);
    send(100, 200);
    EXPECT_TRUE(world.loop.run_until([&] { return done == 200; }));
    return world.delivered(topic)["k"];
}

TEST(KafkaIdlePartition, NothingOvertakesAnOversizeRowAfterTheBrokerForgotTheProducer) {
    EXPECT_THAT(after_an_idle_time(std::chrono::milliseconds{300}, milliseconds{3'000}), SizeIs(100));
}

TEST(KafkaIdlePartition, WithoutTheRuleTheBrokerLetsThemOvertake) {
    EXPECT_GT(after_an_idle_time(std::chrono::hours{1}, milliseconds{3'000}).size(), 100U)
        << "the test above shows nothing";
}

TEST(KafkaBroker, RestartLosesNothingAndKeepsEachKeyInOrder) {
    support::private_kafka broker;
    kafka_relay_world world(broker.bootstrap());
    const auto topic = world.topic("restart", 4);
    world.start();
    int next = 0;
    const auto put = [&](int rows) {
        for (int i = 0; i < rows; ++i, ++next)
            world.put(topic, "key-" + std::to_string(next % 11), std::to_string(next));
    };
    put(500);
    ASSERT_TRUE(world.run_until_empty());
    broker.kill();
    put(3'000);
    world.loop.run_for(milliseconds{500});
    broker.start();
    put(500);
    ASSERT_TRUE(world.run_until_empty(milliseconds{60'000}));
    EXPECT_THAT(world.outbox.buried(), IsEmpty());
    auto found = world.delivered(topic);
    int total = 0;
    for (int k = 0; k < 11; ++k) {
        int expected = k;
        for (const auto& value : found["key-" + std::to_string(k)]) {
            ASSERT_EQ(std::stoi(value), expected);
            expected += 11;
            ++total;
        }
    }
    EXPECT_EQ(total, 4'000);
}

TEST(KafkaBroker, ATopicThatAsksForMoreReplicasThanItHasIsServed) {
    kafka_relay_world world(support::services().kafka);
    const auto few = world.topic("few", 1, {{"min.insync.replicas", "2"}});
    for (int i = 0; i < 50; ++i)
        world.put(few, "k", std::to_string(i));
    world.start();
    ASSERT_TRUE(world.run_until_empty());
    world.loop.run_for(milliseconds{3'000});
    world.put(few, "k", "50");
    ASSERT_TRUE(world.run_until_empty()) << "also once the topic was looked at again";
    EXPECT_THAT(world.delivered(few)["k"], SizeIs(51));
}

TEST(KafkaBroker, AbsenceIsNoVerdictAndIsTold) {
    const std::string nobody = "127.0.0.1:1";
    loop_host loop;
    auto sink = kafka_sink::open(
                    loop, parse_kafka_url("kafka://" + nobody).value(), {.look_limit = milliseconds{300}}
    ).value();
    const auto looked = loop.await<void>([&](auto done) { sink->look(done); });
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().code, errc::unavailable);
    EXPECT_NE(looked.error().detail.find(nobody), std::string::npos) << looked.error().detail;

    const auto batch = std::make_shared<row_batch>();
    outbox_row row;
    row.topic = "t";
    row.value = "v";
    batch->add(row);
    std::optional<result<publish_outcome>> outcome;
    sink->publish(channel::main, {{&batch->rows()[0], batch}}, epoch{1}, [&](auto o) {
        outcome = std::move(o);
    });
    loop.run_for(milliseconds{500});
    EXPECT_FALSE(outcome) << "it waits for the broker";
    EXPECT_TRUE(loop.await<void>([&](auto done) { sink->reset_main(done); }));
    ASSERT_TRUE(outcome && *outcome);
    ASSERT_THAT((*outcome)->failures, SizeIs(1));
    EXPECT_EQ((*outcome)->failures[0].why.code, errc::purged);
}

}  // namespace
}  // namespace millrace::test
