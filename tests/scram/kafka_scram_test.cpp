// SCRAM against a real broker: the librdkafka of Debian 12 fails it, so these tests are built with a newer
// one.

#include "support/kafka_topics.hpp"
#include "support/services.hpp"

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

kafka_settings login(const std::string& mechanism, const std::string& password) {
    return {
        {"security.protocol", "sasl_plaintext"},
        {"sasl.mechanism", mechanism},
        {"sasl.username", "bob"},
        {"sasl.password", password}};
}

TEST(KafkaScram, TheBrokerTakesTheRightPasswordByBothMechanisms) {
    const auto topic = unique_name("scram");
    kafka_admin{services().kafka}.create_topic(topic, 1);
    for (const auto* mechanism : {"SCRAM-SHA-256", "SCRAM-SHA-512"}) {
        topic_reader reader{services().kafka_sasl, topic, login(mechanism, "bob-secret")};
        EXPECT_TRUE(reader.read().empty()) << mechanism;
    }
}

}  // namespace
}  // namespace millrace::support
