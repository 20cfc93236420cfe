// What a real broker does not do on demand, by librdkafka's mock cluster: chosen refusals, a change of
// leader.

#include "integration/kafka_relay_world.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

namespace millrace::test {
namespace {

using testing::IsEmpty;

constexpr std::int16_t produce_request = 0;

class KafkaMock : public testing::Test {
protected:
    KafkaMock() {
        std::array<char, 256> why{};
        home_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why.data(), why.size()));
        cluster.reset(rd_kafka_mock_cluster_new(home_.get(), 2));
        rd_kafka_mock_topic_create(cluster.get(), topic.c_str(), 1, 2);
        rd_kafka_mock_partition_set_leader(cluster.get(), topic.c_str(), 0, 1);
        world = std::make_unique<kafka_relay_world>(
            rd_kafka_mock_cluster_bootstraps(cluster.get()),
            "?linger.ms=5",
            kafka_sink_options{.look_limit = milliseconds{500}}
        );
    }
    ~KafkaMock() override { world.reset(); }

    void put(int rows) {
        for (int i = 0; i < rows; ++i, ++next)
            world->put(topic, "key-" + std::to_string(next % 7), std::to_string(next));
    }

    /// Everything arrived, each key in order.
    void expect_all() {
        ASSERT_TRUE(world->run_until_empty());
        EXPECT_THAT(world->outbox.buried(), IsEmpty());
        int total = 0;
        for (const auto& [key, values] : world->delivered(topic)) {
            int expected = std::stoi(key.substr(4));
            for (const auto& value : values) {
                ASSERT_EQ(std::stoi(value), expected) << key;
                expected += 7;
                ++total;
            }
        }
        EXPECT_EQ(total, next);
    }

    struct closer {
        void operator()(rd_kafka_t* handle) const noexcept { rd_kafka_destroy(handle); }
        void operator()(rd_kafka_mock_cluster_t* c) const noexcept { rd_kafka_mock_cluster_destroy(c); }
    };
    std::unique_ptr<rd_kafka_t, closer> home_;
    std::unique_ptr<rd_kafka_mock_cluster_t, closer> cluster;
    const std::string topic = "t";
    std::unique_ptr<kafka_relay_world> world;
    int next{0};
};

TEST_F(KafkaMock, RefusalOfAWholeBatchJudgesNoRow) {
    put(50);
    world->start();
    expect_all();
    rd_kafka_mock_push_request_errors(
        cluster.get(), produce_request, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE
    );
    put(300);
    expect_all();
    EXPECT_GE(world->sink->counters().refused, 1U);
    EXPECT_GE(world->sink->counters().probed, 1U);
}

TEST_F(KafkaMock, FaultsThatPassAreNoRefusals) {
    put(50);
    world->start();
    expect_all();
    rd_kafka_mock_push_request_errors(
        cluster.get(),
        produce_request,
        3,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION
    );
    put(300);
    expect_all();
    EXPECT_EQ(world->sink->counters().refused, 0U);
}

TEST_F(KafkaMock, APartitionWithoutALeaderStopsNoOtherTopicAndIsServedWhenItHasOne) {
    const std::string sick = "sick";
    rd_kafka_mock_topic_create(cluster.get(), sick.c_str(), 1, 2);
    rd_kafka_mock_partition_set_leader(cluster.get(), sick.c_str(), 0, 1);
    int sent = 0;
    const auto mix = [&](int rows) {
        put(rows);
        for (int i = 0; i < rows; ++i, ++sent)
            world->put(sick, "key-" + std::to_string(sent % 7), std::to_string(sent));
    };
    mix(300);
    world->start();
    expect_all();
    rd_kafka_mock_partition_set_leader(cluster.get(), sick.c_str(), 0, -1);
    for (int i = 0; i < 300; ++i) {
        mix(10);
        world->loop.run_for(milliseconds{1});
    }
    EXPECT_TRUE(world->loop.run_until([&] { return world->outbox.size() == 3'000; }, milliseconds{10'000}))
        << "left: " << world->outbox.size();
    put(300);
    EXPECT_TRUE(world->loop.run_until([&] { return world->outbox.size() == 3'000; }, milliseconds{1'000}))
        << "and from now on nothing waits for it";
    rd_kafka_mock_partition_set_leader(cluster.get(), sick.c_str(), 0, 2);
    expect_all();
    int total = 0;
    for (const auto& [key, values] : world->delivered(sick)) {
        int expected = std::stoi(key.substr(4));
        for (const auto& value : values) {
            ASSERT_EQ(std::stoi(value), expected) << key;
            expected += 7;
            ++total;
        }
    }
    EXPECT_EQ(total, sent);
}

TEST_F(KafkaMock, AfterAnOutageRowsThatWaitedGoTogetherOnceOneWasTaken) {
    world = std::make_unique<kafka_relay_world>(
        rd_kafka_mock_cluster_bootstraps(cluster.get()),
        "?linger.ms=5",
        kafka_sink_options{.idle_partition = milliseconds{300}, .look_limit = milliseconds{500}}
    );
    const auto batch = std::make_shared<row_batch>();
    for (int i = 0; i < 500; ++i) {
        outbox_row row;
        row.id = row_id{i + 1};
        row.topic = topic;
        row.key = "k";
        row.value = "v";
        batch->add(row);
    }
    std::vector<outgoing_row> rest;
    for (std::size_t i = 1; i < batch->rows().size(); ++i)
        rest.push_back({&batch->rows()[i], batch});
    int done = 0;
    const auto count = [&](const result<publish_outcome>& o) { done += o && o->failures.empty() ? 1 : 0; };
    world->sink->publish(channel::main, {{&batch->rows()[0], batch}}, epoch{1}, count);
    ASSERT_TRUE(world->loop.run_until([&] { return done == 1; }));
    ASSERT_EQ(rd_kafka_mock_broker_set_down(cluster.get(), 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    world->loop.run_for(milliseconds{400});
    world->sink->publish(channel::main, std::move(rest), epoch{1}, count);
    world->loop.run_for(milliseconds{600});
    rd_kafka_mock_broker_set_rtt(cluster.get(), 1, 20);
    ASSERT_EQ(rd_kafka_mock_broker_set_up(cluster.get(), 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_TRUE(world->loop.run_until([&] { return done == 2; }, milliseconds{5'000}))
        << "one by one it takes 10 s";
}

TEST_F(KafkaMock, WhatWasOnProbeWhenALifeEndedIsNeverPublishedLater) {
    put(1);
    world->start();
    expect_all();
    ASSERT_EQ(rd_kafka_mock_broker_set_down(cluster.get(), 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    const auto batch = std::make_shared<row_batch>();
    outbox_row row;
    row.id = row_id{1};
    row.topic = topic;
    row.key = "old";
    row.value = "old";
    batch->add(row);
    std::optional<result<publish_outcome>> outcome;
    world->sink->publish(channel::probe, {{&batch->rows()[0], batch}}, epoch{1}, [&](auto o) {
        outcome = std::move(o);
    });
    world->loop.run_for(milliseconds{500});
    EXPECT_FALSE(outcome);
    EXPECT_TRUE(world->loop.await<void>([&](auto done) { world->sink->purge(done); }));
    ASSERT_TRUE(outcome && *outcome);
    EXPECT_EQ((*outcome)->failures.size(), 1U);
    ASSERT_EQ(rd_kafka_mock_broker_set_up(cluster.get(), 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    put(50);
    ASSERT_TRUE(world->run_until_empty());
    world->loop.run_for(milliseconds{500});
    EXPECT_EQ(world->delivered(topic).count("old"), 0U);
}

TEST_F(KafkaMock, ChangeOfLeaderKeepsEachKeyInOrder) {
    put(200);
    world->start();
    ASSERT_TRUE(world->loop.run_until([&] { return world->outbox.size() < 200; }));
    rd_kafka_mock_partition_set_leader(cluster.get(), topic.c_str(), 0, 2);
    put(300);
    expect_all();
}

}  // namespace
}  // namespace millrace::test
