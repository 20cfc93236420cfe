// The sink with SCRAM, built with a librdkafka that can do it.

#include "support/kafka_published.hpp"
#include "support/services.hpp"

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

TEST(KafkaScram, TheSinkPublishes) {
    const auto url = "kafka://" + support::services().kafka_sasl +
                     "?security.protocol=sasl_plaintext&sasl.mechanism=SCRAM-SHA-256&sasl.username=bob"
                     "&sasl.password=bob-secret";
    expect_published(url);
}

}  // namespace
}  // namespace millrace::test
