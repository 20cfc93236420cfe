// What is gone for a while: the relay waits, keeps the rows, and goes on by itself when it is back.

#include "postgres_kafka_faults.hpp"
#include "postgres_kafka_shop.hpp"
#include "support/keyed_check.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;

constexpr int keys = 20;
constexpr int rows_of_a_key = 10;  // of each call of `put`

/// The numbers of each key go on where the last call ended.
void put(support::sql_connection& sql, const std::string& topic, int call) {
    sql.query(
        "INSERT INTO outbox (topic, key, value) SELECT $1, convert_to('key-' || k, 'UTF8'), "
        "convert_to(($2::int * $3::int + n)::text, 'UTF8') FROM generate_series(1, $3::int) n, "
        "generate_series(1, $4::int) k",
        {topic, std::to_string(call), std::to_string(rows_of_a_key), std::to_string(keys)}
    );
}

support::keyed_report judged(
    const std::vector<support::topic_record>& records, const std::string& topic, int calls, int missing = 0
) {
    support::keyed_check check;
    for (int key = 1; key <= keys; ++key)  // what is known to be gone with an earlier topic
        for (int n = 1; n <= missing * rows_of_a_key; ++n)
            check.seen(topic, "key-" + std::to_string(key), std::to_string(n));
    for (const auto& record : records)
        check.seen(topic, record.key.value_or(""), record.value.value_or(""));
    for (int key = 1; key <= keys; ++key)
        check.committed(
            topic, "key-" + std::to_string(key), static_cast<std::uint64_t>(calls) * rows_of_a_key
        );
    return check.report();
}

TEST(PostgresKafkaOutage, FullDiskOfTheBrokerLosesAndInvertsNothing) {
    proving_ground ground;
    relay_fleet relays{{.outbox = ground.outbox(), .sink = ground.sink(), .relays = 1}};
    support::sql_connection sql{ground.direct()};
    const auto waiting = [&] { return sql.number("SELECT count(*) FROM outbox"); };
    put(sql, "orders", 0);
    ASSERT_TRUE(support::eventually(30s, [&] { return waiting() == 0; })) << relays.log();

    ground.kafka.fill_disk();
    put(sql, "orders", 1);
    EXPECT_FALSE(support::eventually(5s, [&] { return waiting() < keys * rows_of_a_key; }))
        << "what the broker cannot write is not acknowledged";
    EXPECT_EQ(sql.number("SELECT count(*) FROM millrace_dead"), 0);
    EXPECT_EQ(relays.ended_by_itself(), std::nullopt) << relays.log();

    ground.kafka.kill();  // where it has not ended by itself
    ground.kafka.start();
    put(sql, "orders", 2);
    EXPECT_TRUE(support::eventually(60s, [&] { return waiting() == 0; })) << relays.log();
    EXPECT_EQ(sql.number("SELECT count(*) FROM millrace_dead"), 0);
    const auto report = judged(support::read_topic(ground.kafka.bootstrap(), "orders"), "orders", 3);
    EXPECT_TRUE(report.clean()) << report.first_fault;
    EXPECT_TRUE(relays.stop());
}

TEST(PostgresKafkaOutage, TopicThatIsDeletedAndMadeAgainGetsWhatWasWrittenSince) {
    postgres_kafka_shop shop;
    const auto topic = shop.topic();
    const auto other = shop.topic();
    auto relay = shop.start_relay();
    put(shop.sql(), topic, 0);
    ASSERT_TRUE(shop.empties(30s)) << shop.log();

    shop.admin().delete_topic(topic);
    put(shop.sql(), topic, 1);
    put(shop.sql(), other, 0);
    EXPECT_TRUE(support::eventually(30s, [&] { return shop.waiting() == keys * rows_of_a_key; }))
        << "the other topic goes on\n"
        << shop.log();
    EXPECT_EQ(shop.dead(), 0) << "a topic that is missing may come back";
    shop.admin().create_topic(topic, 4);
    put(shop.sql(), topic, 2);
    EXPECT_TRUE(shop.empties(90s)) << shop.waiting() << " rows are left\n" << shop.log();
    EXPECT_EQ(shop.dead(), 0);
    const auto report = judged(shop.records(topic), topic, 3, 1);
    EXPECT_TRUE(report.clean()) << report.first_fault;
    EXPECT_TRUE(judged(shop.records(other), other, 1).clean());
}

}  // namespace
}  // namespace millrace::e2e
