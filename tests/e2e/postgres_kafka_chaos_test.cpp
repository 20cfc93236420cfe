// Promises 1, 2 and 6 from PostgreSQL to Kafka with real processes and servers: whatever happens to relays,
// servers and connections, everything arrives, in the order of commit for each key, and no more comes twice
// than the faults allow.

#include "postgres_kafka_faults.hpp"
#include "support/keyed_check.hpp"

#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;

constexpr auto quiet_limit = 90s;  // the longest time in which the backlog does not shrink

support::keyed_report read_back(const proving_ground& ground, const support::keyed_writers& writers) {
    support::keyed_check check;
    for (const auto& topic : ground.topics)
        for (const auto& record : support::read_topic(ground.kafka.bootstrap(), topic))
            check.seen(topic, record.key.value_or(""), record.value.value_or(""));
    writers.judge(check);
    return check.report();
}

TEST(PostgresKafkaChaos, NothingIsLostOrReorderedWhileRelaysServersAndConnectionsFail) {
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    proving_ground ground;
    relay_fleet relays{{.outbox = ground.outbox(), .sink = ground.sink()}};
    support::keyed_writers writers{
        ground.direct(), {.writers = 16, .keys = 200, .topics = ground.topics, .rows_per_second = 600}};

    faults all{ground, relays, seed};
    all.shuffle(faults::deck::everything);
    while (all.next()) {
        ASSERT_EQ(relays.ended_by_itself(), std::nullopt) << relays.log();
        std::this_thread::sleep_for(std::chrono::milliseconds{300 + all.pick(700)});
    }
    writers.stop();
    EXPECT_TRUE(drain(ground, all, quiet_limit)) << undelivered(ground) << " rows are left";
    ASSERT_EQ(relays.ended_by_itself(), std::nullopt) << relays.log();
    EXPECT_TRUE(relays.stop()) << "a relay did not end by status 0 after SIGTERM";

    const auto report = read_back(ground, writers);
    EXPECT_EQ(report.lost, 0U) << report.first_fault;
    EXPECT_EQ(report.inverted, 0U) << report.first_fault;
    EXPECT_EQ(report.unknown, 0U) << report.first_fault;
    EXPECT_LE(report.twice, all.repeating() * relays.options().repeats_of_a_fault());
    EXPECT_GT(report.delivered, 10'000U);
    std::printf(
        "%lu delivered, %lu lost, %lu inverted, %lu twice; %lu rolled back; %s\n",
        report.delivered,
        report.lost,
        report.inverted,
        report.twice,
        writers.rollbacks(),
        all.counts().c_str()
    );
    if (HasFailure()) std::printf("%s\n", relays.log().c_str());
}

}  // namespace
}  // namespace millrace::e2e
