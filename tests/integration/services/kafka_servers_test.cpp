#include "support/fault_proxy.hpp"
#include "support/kafka_topics.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

TEST(KafkaServers, ATopicIsMadeOnceAndDeleted) {
    kafka_admin admin{services().kafka};
    const auto topic = unique_name("services");
    admin.create_topic(topic, 2);
    EXPECT_TRUE(read_topic(services().kafka, topic).empty());
    EXPECT_THROW(admin.create_topic(topic, 2), std::runtime_error);
    admin.delete_topic(topic);
}

TEST(KafkaServers, ATopicReadsBackAsItWasWritten) {
    kafka_admin admin{services().kafka};
    const auto topic = unique_name("services");
    admin.create_topic(topic, 2);
    topic_reader reader{services().kafka, topic};
    write_topic(
        services().kafka, topic, {{.partition = 1, .timestamp = 1'700'000'000'000, .key = "k", .value = "v"}}
    );
    const auto first = reader.read();
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0].partition, 1);
    EXPECT_EQ(first[0].offset, 0);
    EXPECT_EQ(first[0].timestamp, 1'700'000'000'000);
    EXPECT_EQ(first[0].key, "k");
    EXPECT_EQ(first[0].value, "v");

    write_topic(
        services().kafka,
        topic,
        {{.partition = 0, .key = "", .headers = {{"a", "1"}, {"a", "2"}, {"n", std::nullopt}}},
         {.partition = 0, .value = "w"}}
    );
    const auto second = reader.read_at_least(2);
    ASSERT_EQ(second.size(), 2U);
    EXPECT_EQ(second[0].key, "");
    EXPECT_EQ(second[0].value, std::nullopt);
    EXPECT_EQ(second[0].header("a"), "1");
    EXPECT_EQ(second[0].headers.size(), 3U);
    EXPECT_EQ(second[0].headers[2].second, std::nullopt);
    EXPECT_EQ(second[1].key, std::nullopt);
    EXPECT_EQ(read_topic(services().kafka, topic).size(), 3U);
}

TEST(KafkaServers, ATopicCanBeLimitedDeniedAndAllowedAgain) {
    kafka_admin admin{services().kafka};
    const auto topic = unique_name("services");
    admin.create_topic(topic, 1, {{"max.message.bytes", "1000"}});
    auto write = [&](std::size_t size) {
        write_topic(services().kafka, topic, {{.partition = 0, .value = std::string(size, 'x')}});
    };
    EXPECT_THROW(write(2000), std::runtime_error);
    admin.configure_topic(topic, {});
    write(2000);
    admin.deny(topic, kafka_admin::operation::write);
    EXPECT_THROW(write(1), std::runtime_error);
    EXPECT_EQ(read_topic(services().kafka, topic).size(), 1U);
    admin.allow_all(topic);
    admin.add_partitions(topic, 3);
    write_topic(services().kafka, topic, {{.partition = 2, .value = "x"}});
    EXPECT_EQ(read_topic(services().kafka, topic).size(), 2U);
}

TEST(KafkaServers, KafkaTakesTlsAndSasl) {
    const auto& shared = services();
    const auto topic = unique_name("services");
    kafka_admin{shared.kafka}.create_topic(topic, 1);
    const kafka_settings tls{{"security.protocol", "ssl"}, {"ssl.ca.location", shared.tls / "ca.crt"}};
    EXPECT_TRUE(topic_reader(shared.kafka_ssl, topic, tls).read().empty());
    const kafka_settings plain{
        {"security.protocol", "sasl_plaintext"},
        {"sasl.mechanism", "PLAIN"},
        {"sasl.username", "alice"},
        {"sasl.password", "alice-secret"}};
    EXPECT_TRUE(topic_reader(shared.kafka_sasl, topic, plain).read().empty());
}

TEST(KafkaServers, APrivateKafkaStandsBehindAProxyAndEndsWhenItsDiskIsFull) {
    fault_proxy proxy;
    private_kafka server{{"message.max.bytes=2000"}, proxy.port()};
    proxy.lead_to(server.proxied_port());
    const auto behind = "127.0.0.1:" + std::to_string(proxy.port());
    kafka_admin{behind}.create_topic("t", 1);
    const auto before = proxy.accepted();
    write_topic(behind, "t", {{.partition = 0, .value = "a"}});
    EXPECT_GT(proxy.accepted(), before);
    EXPECT_THROW(
        write_topic(behind, "t", {{.partition = 0, .value = std::string(3000, 'x')}}), std::runtime_error
    );
    EXPECT_EQ(read_topic(server.bootstrap(), "t").size(), 1U);

    server.fill_disk();
    EXPECT_THROW(write_topic(behind, "t", {{.partition = 0, .value = "b"}}), std::runtime_error);
    EXPECT_TRUE(eventually(std::chrono::seconds{30}, [&] { return !server.running(); }));
    server.start();
    write_topic(behind, "t", {{.partition = 0, .value = "c"}});
    const auto records = read_topic(behind, "t");
    EXPECT_EQ(records.front().value, "a");
    EXPECT_EQ(records.back().value, "c");
}

}  // namespace
}  // namespace millrace::support
