// Promise 7 with whole relays: what is configured bounds the memory, not the backlog, the size of its rows or
// that of a transaction.

#include "postgres_kafka_shop.hpp"
#include "support/keyed_check.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::int64_t kib_of_a_mb = 1'000'000 / 1024;
constexpr auto delivery_limit = 240s;

struct PostgresKafkaMemory : testing::Test {
    /// One transaction; the number within its key stands at the beginning of each value. `before` rows were
    /// put before.
    void put(int rows, int keys, int bytes, int before = 0) {
        shop.sql().query(
            "INSERT INTO outbox (topic, key, value) SELECT $1, convert_to('key-' || n % $2::int, 'UTF8'), "
            "convert_to(rpad((n / $2::int + 1) || ' ', $3::int, md5(n::text)), 'UTF8') FROM "
            "generate_series($4::int, $5::int - 1) n",
            {topic,
             std::to_string(keys),
             std::to_string(bytes),
             std::to_string(before),
             std::to_string(before + rows)}
        );
    }

    /// The peak of a relay that delivers it all.
    std::int64_t deliver() {
        const auto begin = clock::now();
        auto relay = shop.start_relay({"--once"});
        const auto ended = relay.wait(delivery_limit);
        if (!ended || ended->status != 0) {
            ADD_FAILURE() << shop.log();
            return INT64_MAX;
        }
        std::printf(
            "%ld KiB at its peak, %.1f s, %.1f CPU-s\n",
            static_cast<long>(ended->peak_memory_kib),
            std::chrono::duration<double>(clock::now() - begin).count(),
            std::chrono::duration<double>(ended->cpu).count()
        );
        return ended->peak_memory_kib;
    }

    void expect_all(std::uint64_t rows, int keys) {
        support::keyed_check check;
        support::topic_reader reader{support::services().kafka, topic};
        while (check.distinct() < rows) {
            const auto records = reader.next(10s);
            if (records.empty()) break;
            for (const auto& record : records)
                check.seen(topic, record.key.value_or(""), record.value.value_or(""));
        }
        for (int key = 0; key < keys; ++key)
            check.committed(topic, "key-" + std::to_string(key), rows / static_cast<std::uint64_t>(keys));
        const auto report = check.report();
        EXPECT_TRUE(report.clean()) << report.lost << " lost; " << report.first_fault;
        EXPECT_EQ(report.twice, 0U);
        EXPECT_EQ(shop.waiting(), 0);
        shop.admin().delete_topic(topic);  // it is large
    }

    postgres_kafka_shop shop;
    std::string topic = shop.topic({}, 8);
};

TEST_F(PostgresKafkaMemory, TwentyThousandRowsOf18KbAreDeliveredWithin96Mb) {
    put(20'000, 1'000, 18'000);
    EXPECT_LE(deliver(), 96 * kib_of_a_mb);
    expect_all(20'000, 1'000);
}

TEST_F(PostgresKafkaMemory, AMillionRowsAreDeliveredWithin64Mb) {
    for (int before = 0; before < 1'000'000; before += 50'000)
        put(50'000, 10'000, 200, before);
    EXPECT_LE(deliver(), 64 * kib_of_a_mb);
    expect_all(1'000'000, 10'000);
}

TEST_F(PostgresKafkaMemory, OneTransactionOf500000RowsIsDeliveredWithin64Mb) {
    put(500'000, 10'000, 100);
    EXPECT_LE(deliver(), 64 * kib_of_a_mb);
    expect_all(500'000, 10'000);
}

// The planner takes the table for empty, as after any quiet time, and each second row stays: the worst
// ranges.
TEST(PostgresKafkaBacklog, IsDeletedByIndexWhileTheStatisticsSayThatTheTableIsEmpty) {
    constexpr int rows = 60'000;
    postgres_kafka_shop shop;
    const auto topic = shop.topic();
    const auto paused = shop.topic();
    shop.sql().execute("ALTER TABLE outbox SET (autovacuum_enabled = false)");
    shop.put_each(topic, "key-", 1, rows, 300);
    shop.sql().execute("DELETE FROM outbox WHERE id < 59900");
    shop.sql().execute("VACUUM ANALYZE outbox");
    shop.sql().query(
        "INSERT INTO outbox (topic, key, value) SELECT CASE WHEN n % 2 = 0 THEN $1 ELSE $2 END, "
        "convert_to('key-' || n, 'UTF8'), convert_to(rpad('', 300, 'x'), 'UTF8') FROM generate_series(1, "
        "$3::int) n",
        {topic, paused, std::to_string(rows)}
    );
    shop.outbox({"pause", "--topic", paused});
    auto relay = shop.start_relay({"--log-level", "warning"});
    EXPECT_TRUE(support::eventually(40s, [&] { return shop.waiting() == rows / 2; }))
        << shop.waiting() << " rows are left\n"
        << shop.log();
}

}  // namespace
}  // namespace millrace::e2e
