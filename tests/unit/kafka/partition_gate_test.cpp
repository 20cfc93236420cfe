#include "partition_gate.hpp"

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using kafka::partition_gate;

// Times are offsets from the start of the test.
struct KafkaPartitionGate : testing::Test {
    static mono_time at(nanoseconds t) { return mono_time{} + 1h + t; }
    bool passes(nanoseconds t, std::size_t bytes = 100) {
        if (!gate.lets_pass(at(t), bytes, limits)) return false;
        gate.sent(bytes);
        return true;
    }
    partition_gate gate;
    partition_gate::limits limits{60s, 0};
};

TEST_F(KafkaPartitionGate, SendsOneRowFirstToAPartitionThatNeverAcknowledged) {
    EXPECT_TRUE(passes(0s));
    EXPECT_FALSE(passes(0s));
    gate.settled(100, at(0s));
    EXPECT_TRUE(passes(1s));
    EXPECT_TRUE(passes(1s));
}

TEST_F(KafkaPartitionGate, SendsOneRowFirstAgainAfterAnIdleTime) {
    EXPECT_TRUE(passes(0s));
    gate.settled(100, at(0s));
    EXPECT_TRUE(passes(60s));
    EXPECT_TRUE(passes(60s));
    EXPECT_FALSE(passes(61s)) << "two are under way and the last acknowledgement is old";
    gate.settled(100, at(60s));
    EXPECT_TRUE(passes(61s));
    gate.settled(100, at(61s));
    gate.settled(100, at(61s));
    EXPECT_TRUE(passes(122s));
    EXPECT_FALSE(passes(122s));
}

TEST_F(KafkaPartitionGate, TakesNoRefusalForAnAcknowledgement) {
    EXPECT_TRUE(passes(0s));
    gate.settled(100, std::nullopt);
    EXPECT_TRUE(passes(1s));
    EXPECT_FALSE(passes(1s));
}

TEST_F(KafkaPartitionGate, CountsAnAcknowledgementFromTheTimeOfSending) {
    EXPECT_TRUE(passes(0s));
    gate.settled(100, at(0s));  // came at 50 s
    EXPECT_TRUE(passes(61s));
    EXPECT_FALSE(passes(61s));
}

TEST_F(KafkaPartitionGate, HasNoMoreUnderWayThanFitsIntoASmallBatch) {
    limits.batch_bytes_max = 250;
    EXPECT_TRUE(passes(0s));
    gate.settled(100, at(0s));
    EXPECT_TRUE(passes(0s));
    EXPECT_TRUE(passes(0s));
    EXPECT_FALSE(passes(0s));
    gate.settled(100, at(0s));
    EXPECT_TRUE(passes(0s));
    EXPECT_FALSE(passes(0s, 300));
    gate.settled(100, at(0s));
    gate.settled(100, at(0s));
    EXPECT_TRUE(passes(0s, 300)) << "alone, whatever its size";
}

TEST_F(KafkaPartitionGate, LetsWaitingRowsPassInOrder) {
    EXPECT_TRUE(passes(0s));
    gate.wait({7, 1, 100});
    gate.wait({7, 2, 100});
    EXPECT_FALSE(gate.next(at(0s), limits));
    gate.settled(100, at(0s));
    EXPECT_FALSE(passes(0s)) << "others wait already";
    EXPECT_EQ(gate.next(at(0s), limits)->place, 1U);
    gate.sent(100);
    EXPECT_EQ(gate.next(at(0s), limits)->place, 2U);
    EXPECT_FALSE(gate.next(at(0s), limits));
}

}  // namespace
}  // namespace millrace::test
