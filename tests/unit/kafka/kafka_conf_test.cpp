#include "kafka_conf.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using kafka::client_kind;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string fault(const std::string& query) {
    const auto done = kafka::check_properties(parse_kafka_url("kafka://a:1?" + query).value());
    EXPECT_FALSE(done) << query;
    if (done) return {};
    EXPECT_EQ(done.error().code, errc::invalid_config);
    return done.error().detail;
}

std::string value_of(const rd_kafka_conf_t& conf, const char* name) {
    std::array<char, 512> value{};
    auto size = value.size();
    EXPECT_EQ(rd_kafka_conf_get(&conf, name, value.data(), &size), RD_KAFKA_CONF_OK) << name;
    return value.data();
}

TEST(KafkaConf, PassesPropertiesOfClientAndTopicThrough) {
    const auto address =
        parse_kafka_url("kafka://a:1,b:2?compression.type=lz4&request.timeout.ms=7000&client.id=mine")
            .value();
    const std::array own{kafka_property{"linger.ms", "3"}};
    const auto conf = kafka::make_conf(address, client_kind::producer, own).value();
    EXPECT_EQ(value_of(*conf, "bootstrap.servers"), "a:1,b:2");
    EXPECT_EQ(value_of(*conf, "compression.codec"), "lz4");
    EXPECT_EQ(value_of(*conf, "request.timeout.ms"), "7000");
    EXPECT_EQ(value_of(*conf, "client.id"), "mine");
    EXPECT_EQ(value_of(*conf, "linger.ms"), "3");
}

TEST(KafkaConf, RefusesWhatTheGuaranteeRestsOnAndSaysWhy) {
    EXPECT_THAT(
        fault("enable.idempotence=true"),
        AllOf(HasSubstr("enable.idempotence"), HasSubstr("order and safety"))
    );
    for (const std::string name :
         {"acks",
          "request.required.acks",
          "enable.gapless.guarantee",
          "max.in.flight",
          "retries",
          "max.in.flight.requests.per.connection",
          "transactional.id",
          "queue.buffering.max.messages",
          "dr_cb",
          "dr_msg_cb",
          "group.id",
          "auto.offset.reset",
          "bootstrap.servers",
          "opaque",
          "log_cb",
          "test.mock.num.brokers"})
        EXPECT_THAT(fault(name + "=1"), AllOf(HasSubstr(name), HasSubstr("can not be set: "))) << name;
    EXPECT_THAT(fault("message.timeout.ms=1"), HasSubstr("the relay owns the time-outs"));
    EXPECT_THAT(fault("delivery.timeout.ms=1"), HasSubstr("the relay owns the time-outs"));
    EXPECT_THAT(fault("partitioner=random"), HasSubstr("lose their order"));
}

TEST(KafkaConf, NamesTheNearestOfAnUnknownProperty) {
    EXPECT_THAT(
        fault("liger.ms=1"), AllOf(HasSubstr("\"liger.ms\""), HasSubstr("did you mean \"linger.ms\"?"))
    );
    EXPECT_THAT(fault("partitoner=murmur2"), HasSubstr("did you mean \"partitioner\"?"));
    EXPECT_THAT(fault("wholly-unlike-anything=1"), Not(HasSubstr("did you mean")));
}

TEST(KafkaConf, NamesAnUnusableValue) {
    EXPECT_THAT(fault("linger.ms=soon"), AllOf(HasSubstr("linger.ms"), HasSubstr("soon")));
}

TEST(KafkaConf, SaysOfAValueOutOfItsRangeOneLine) {
    EXPECT_THAT(fault("batch.size=-1"), AllOf(HasSubstr("batch.size"), Not(HasSubstr("\n"))));
}

TEST(KafkaConf, SaysWhatStandsForAPropertyOfTheJavaClient) {
    const auto why = fault("sasl.jaas.config=org.apache.PlainLoginModule+password%3Dhunter2");
    EXPECT_THAT(why, AllOf(HasSubstr("sasl.username and sasl.password"), Not(HasSubstr("hunter2"))));
}

TEST(KafkaConf, LeavesPropertiesOfProducersOutOfAConsumerButChecksThem) {
    const auto good = parse_kafka_url("kafka://a:1?compression.codec=gzip&socket.timeout.ms=7000").value();
    const auto conf = kafka::make_conf(good, client_kind::consumer).value();
    EXPECT_EQ(value_of(*conf, "compression.codec"), "none");
    EXPECT_EQ(value_of(*conf, "socket.timeout.ms"), "7000");
    EXPECT_FALSE(kafka::make_conf(parse_kafka_url("kafka://a:1?linger.ms=x").value(), client_kind::consumer));
}

TEST(KafkaConf, RefusesScramWithALibraryThatBrokersRefuse) {
    for (const std::string name : {"sasl.mechanism", "sasl.mechanisms"}) {
        const auto address = parse_kafka_url("kafka://a:1?" + name + "=SCRAM-SHA-256").value();
        const auto old = kafka::check_scram(address, 0x020002ff);
        ASSERT_FALSE(old);
        EXPECT_EQ(old.error().code, errc::invalid_config);
        EXPECT_THAT(
            old.error().detail, AllOf(HasSubstr("2.0.2"), HasSubstr("./dev librdkafka"), HasSubstr("SCRAM"))
        );
        EXPECT_TRUE(kafka::check_scram(address, 0x020601ff));
        EXPECT_TRUE(kafka::check_scram(address, 0x020c01ff));
    }
    EXPECT_TRUE(kafka::check_scram(parse_kafka_url("kafka://a:1?sasl.mechanism=PLAIN").value(), 0x020002ff));
}

}  // namespace
}  // namespace millrace::test
