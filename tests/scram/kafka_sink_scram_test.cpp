// The sink with SCRAM, built with a librdkafka that can do it.

#include "contract/loop_host.hpp"
#include "kafka_sink.hpp"
#include "support/kafka_topics.hpp"
#include "support/services.hpp"

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

TEST(KafkaScram, TheSinkPublishes) {
    const auto topic = support::unique_name("kafka_scram");
    support::kafka_admin{support::services().kafka}.create_topic(topic, 1);
    const auto url = "kafka://" + support::services().kafka_sasl +
                     "?security.protocol=sasl_plaintext&sasl.mechanism=SCRAM-SHA-256&sasl.username=bob"
                     "&sasl.password=bob-secret";
    loop_host loop;
    const auto sink = kafka_sink::open(loop, parse_kafka_url(url).value()).value();
    const auto batch = std::make_shared<row_batch>();
    outbox_row row;
    row.topic = topic;
    row.value = "v";
    batch->add(row);
    const auto outcome = loop.await<publish_outcome>([&](auto done) {
        sink->publish(channel::main, {{&batch->rows()[0], batch}}, epoch{1}, std::move(done));
    });
    ASSERT_TRUE(outcome) << outcome.error().detail;
    EXPECT_TRUE(outcome->failures.empty());
    EXPECT_EQ(support::read_topic(support::services().kafka, topic).size(), 1U);
}

}  // namespace
}  // namespace millrace::test
