#include "topic_facts.hpp"

#include "kafka_error.hpp"
#include "partitioner.hpp"
#include "record_size.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using kafka::suspicion;
using kafka::topic_facts;
using testing::HasSubstr;

constexpr std::size_t client_max = 1'000'000;

outbox_row row_of(std::string_view value) {
    outbox_row row;
    row.topic = "t";
    row.key = "k";
    row.value = value;
    return row;
}

TEST(KafkaPlace, OfARowWithoutAKeyPassesPartitionsThatAreUnwell) {
    const auto by = kafka::partitioner::named("murmur2_random").value();
    topic_facts facts;
    facts.partitions = 3;
    facts.unwell = {1, 2};
    auto free = row_of("v");
    free.key.reset();
    for (std::uint32_t seed = 0; seed < 6; ++seed)
        EXPECT_EQ(kafka::place_of(free, facts, by, seed), 0);
    free.partition = 2;
    EXPECT_EQ(kafka::place_of(free, facts, by, 0), 2) << "its writer chose it";
    const auto keyed = row_of("v");
    EXPECT_EQ(kafka::place_of(keyed, facts, by, 0), by.partition_of(keyed, 3, 0)) << "its order is there";
    facts.unwell = {0, 1, 2};
    free.partition.reset();
    EXPECT_TRUE(facts.is_unwell(kafka::place_of(free, facts, by, 0)));
}

TEST(KafkaPlace, APartitionLacksReplicasOnlyWhereItHasSome) {
    EXPECT_TRUE(kafka::lacks_replicas(1, 3, 2));
    EXPECT_FALSE(kafka::lacks_replicas(2, 3, 2));
    EXPECT_FALSE(kafka::lacks_replicas(1, 1, 2)) << "a broker takes the one for enough";
    EXPECT_FALSE(kafka::lacks_replicas(3, 3, 1));
}

TEST(KafkaPlace, APartitionIsUnwellWhenTwoLooksInARowSaySo) {
    topic_facts facts;
    topic_facts seen;
    seen.partitions = 3;
    seen.seen_unwell = {1, 2};
    facts.renew(seen);
    EXPECT_FALSE(facts.is_unwell(1)) << "its leader may just be changing";
    seen.seen_unwell = {0, 2};
    facts.renew(seen);
    EXPECT_EQ(facts.unwell, std::vector<std::int32_t>{2});
    seen.seen_unwell.clear();
    facts.renew(seen);
    EXPECT_TRUE(facts.unwell.empty());
}

TEST(KafkaRecordSize, IsThatOfTheWireFormat) {
    // Length, attributes, two deltas, key, value, count of headers.
    EXPECT_EQ(kafka::record_bytes(row_of("v")), 1U + 3 + 2 + 2 + 1);
    EXPECT_EQ(kafka::record_bytes(row_of(std::string(63, 'v'))), 2U + 3 + 2 + 64 + 1);
    EXPECT_EQ(kafka::record_bytes(row_of(std::string(64, 'v'))), 2U + 3 + 2 + 66 + 1);
    auto bare = row_of("");
    bare.key.reset();
    bare.value.reset();
    EXPECT_EQ(kafka::record_bytes(bare), 1U + 3 + 1 + 1 + 1);
    const record_header headers[] = {{"h", "value"}, {"none", std::nullopt}};
    bare.headers = headers;
    EXPECT_EQ(kafka::record_bytes(bare), 7U + (2 + 6) + (5 + 1));
}

TEST(KafkaTopicFacts, SuspectARowAboveTheTopicsLimitAndNoneAtIt) {
    topic_facts facts;
    facts.partitions = 1;
    const std::string value(500, 'v');
    facts.row_bytes_max = kafka::batch_header_bytes + kafka::record_bytes(row_of(value));
    EXPECT_EQ(suspicion(facts, row_of(value), client_max), std::nullopt);
    const auto why = suspicion(facts, row_of(value + "v"), client_max);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::refused_record);
    EXPECT_THAT(why->detail, HasSubstr("max.message.bytes"));
    EXPECT_TRUE(suspicion(facts, row_of(value), client_max, 10)) << "a header that the sink adds counts";
}

TEST(KafkaTopicFacts, SuspectARowWithoutKeyOnlyWhereTheTopicIsCompacted) {
    auto row = row_of("v");
    row.key.reset();
    topic_facts facts;
    EXPECT_EQ(suspicion(facts, row, client_max), std::nullopt);
    facts.compacted = true;
    EXPECT_EQ(suspicion(facts, row, client_max)->code, errc::refused_record);
    row.key = "";
    EXPECT_EQ(suspicion(facts, row, client_max), std::nullopt);
}

TEST(KafkaTopicFacts, KeepWhatWasLearnedUntilTheTopicIsDescribed) {
    topic_facts facts;
    facts.refused(10'000, false);
    EXPECT_EQ(facts.batch_bytes_max, 5'000U);
    EXPECT_EQ(facts.row_bytes_max, 9'999U);
    facts.refused(4'000, true);
    EXPECT_EQ(facts.row_bytes_max, 3'999U);
    EXPECT_EQ(facts.batch_bytes_max, 3'999U);
    facts.accepted(3'000);
    EXPECT_EQ(facts.row_bytes_max, 3'999U);

    topic_facts seen;
    seen.partitions = 3;
    facts.renew(seen);
    EXPECT_EQ(facts.partitions, 3);
    EXPECT_EQ(facts.row_bytes_max, 3'999U);
    seen.described = true;
    facts.renew(seen);
    EXPECT_EQ(facts.row_bytes_max, topic_facts::default_batch_bytes);
}

TEST(KafkaTopicFacts, ForgetADenialOnlyWhenARecordIsTaken) {
    topic_facts facts;
    facts.denied = kafka::record_error(
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, "t"
    );
    facts.renew(topic_facts{});
    const auto why = suspicion(facts, row_of("v"), client_max);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::refused_topic);
    EXPECT_EQ(why->retry, retry_advice::after_delay);
}

TEST(KafkaError, IsAVerdictOnlyWhenABrokerJudged) {
    const auto code = [](rd_kafka_resp_err_t c, rd_kafka_msg_status_t s = RD_KAFKA_MSG_STATUS_NOT_PERSISTED) {
        return kafka::record_error(c, s, "t");
    };
    EXPECT_EQ(code(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE).code, errc::refused_record);
    EXPECT_EQ(code(RD_KAFKA_RESP_ERR_INVALID_RECORD).code, errc::refused_record);
    EXPECT_EQ(code(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART).code, errc::refused_topic);
    for (const auto c :
         {RD_KAFKA_RESP_ERR__TRANSPORT,
          RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
          RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
          RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
          RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
          RD_KAFKA_RESP_ERR_UNKNOWN})
        EXPECT_EQ(code(c).code, errc::unavailable) << rd_kafka_err2name(c);
    EXPECT_EQ(code(RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED).code, errc::throttled);
    EXPECT_EQ(code(RD_KAFKA_RESP_ERR__PURGE_QUEUE).code, errc::purged);
    const auto sent = code(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED);
    EXPECT_TRUE(sent.in_doubt);
    EXPECT_EQ(sent.code, errc::unavailable);
}

TEST(KafkaPartitioner, HashesAsJavaDoes) {
    // murmur2 of the key, the sign bit cleared, modulo the partitions.
    const std::pair<const char*, std::int32_t> vectors[] = {
        {"21", -973932308},
        {"foobar", -790332482},
        {"abc", 479470107},
        {"a-little-bit-long-string", -985981536},
        {"a-little-bit-longer-string", -1486304829}};
    for (const auto& [key, hash] : vectors) {
        auto row = row_of("v");
        row.key = key;
        for (const std::int32_t partitions : {1, 7, 8, 1000})
            EXPECT_EQ(
                kafka::partitioner{}.partition_of(row, partitions, 5), (hash & 0x7fffffff) % partitions
            );
    }
}

TEST(KafkaPartitioner, HonoursTheRowsPartitionAndSpreadsRowsWithoutKey) {
    auto row = row_of("v");
    row.partition = 3;
    EXPECT_EQ(kafka::partitioner{}.partition_of(row, 8, 0), 3);
    row.partition.reset();
    row.key.reset();
    EXPECT_EQ(kafka::partitioner{}.partition_of(row, 8, 13), 5);
    const auto fixed = kafka::partitioner::named("murmur2").value();
    EXPECT_EQ(fixed.partition_of(row, 8, 1), fixed.partition_of(row, 8, 2));
    EXPECT_FALSE(kafka::partitioner::named("murmur"));
    for (const auto* const name :
         {"murmur2_random", "consistent", "consistent_random", "fnv1a", "fnv1a_random"})
        EXPECT_TRUE(kafka::partitioner::named(name)) << name;
}

}  // namespace
}  // namespace millrace::test
