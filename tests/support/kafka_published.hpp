/// Whether a Kafka sink with this URL can publish: one row, looked for in a topic of its own.
#pragma once

#include "contract/loop_host.hpp"
#include "kafka_sink.hpp"
#include "support/kafka_topics.hpp"
#include "support/services.hpp"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {

inline void expect_published(const std::string& url) {
    const auto topic = support::unique_name("kafka_security");
    support::kafka_admin{support::services().kafka}.create_topic(topic, 1);
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
    EXPECT_TRUE(outcome->failures.empty()) << outcome->failures[0].why.detail;
    EXPECT_THAT(support::read_topic(support::services().kafka, topic), testing::SizeIs(1));
    EXPECT_TRUE(sink->counters().connected);
}

}  // namespace millrace::test
