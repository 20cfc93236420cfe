// What one read of an outbox in PostgreSQL may take in memory.

#include "integration/goharvest_tables.hpp"
#include "integration/postgres_relay.hpp"

#include <cstdint>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

TEST(PostgresOutbox, LargeRowsStayWithinTheByteBudget) {
    outbox_place place;
    place.run(
        "INSERT INTO {} (topic, key, value) SELECT 'orders', convert_to('k' || g, 'UTF8'), "
        "convert_to(string_agg(md5((g * 1000 + i)::text), ''), 'UTF8') FROM generate_series(1, 1000) g, "
        "generate_series(1, 576) i GROUP BY g"
    );
    loop_host home;
    postgres_outbox source(home, {.server = place.server()});
    row_id after;
    std::size_t rows = 0;
    for (bool more = true; more;) {
        const auto reply = sure(home.await<fetch_reply>([&](auto done) {
            source.fetch({.after = after, .rows_max = 2'000, .bytes_max = 1 << 20}, done);
        }));
        EXPECT_LE(reply.ahead->bytes(), (1u << 20) + (128u << 10));
        ASSERT_FALSE(reply.ahead->rows().empty());
        rows += reply.ahead->rows().size();
        after = reply.ahead->rows().back().id;
        more = reply.more;
    }
    EXPECT_EQ(rows, 1'000u);
}

/// A line of /proc/self/status in bytes.
std::int64_t memory(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
    return 0;
}

/// What the process needed at most, beyond what it has, while something was done.
template <class F>
std::int64_t peak_of(F what) {
    std::ofstream("/proc/self/clear_refs") << "5";
    const auto before = memory("VmRSS");
    what();
    return memory("VmHWM") - before;
}

TEST(PostgresOutbox, AReadStaysWithinItsBytesWhenRowsGrowAllAtOnce) {
    outbox_place place;
    place.run(
        "INSERT INTO {} (topic, key, value) SELECT 't', 'k', repeat('v', CASE WHEN g <= 9000 THEN 20 ELSE "
        "4000 "
        "END)::bytea FROM generate_series(1, 18000) g"
    );
    loop_host home;
    postgres_outbox source(home, {.server = place.server()});
    const auto fetch = [&](std::int64_t after) {
        return sure(home.await<fetch_reply>([&](auto done) {
            source.fetch({.after = row_id{after}, .rows_max = 8'000, .bytes_max = 3 << 20}, done);
        }));
    };
    EXPECT_LT(fetch(0).ahead->rows().size(), 1'000u) << "how large rows are is not known yet";
    ASSERT_EQ(fetch(0).ahead->rows().size(), 8'000u);
    std::size_t rows = 0;
    EXPECT_LT(peak_of([&] { rows = fetch(9'000).ahead->rows().size(); }), 20 << 20);
    EXPECT_GT(rows, 500u);
}

TEST(PostgresOutbox, AReadStaysWithinItsBytesWhenHeadersAreCompressedInTheTable) {
    outbox_place place(support::services().postgres, goharvest_table);
    place.run(
        "INSERT INTO {} (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys, "
        "kafka_header_values) SELECT now(), 't', 'k', 'v', '{{a}}', ARRAY[repeat('h', 1000000)] FROM "
        "generate_series(1, 60)"
    );
    loop_host home;
    postgres_outbox source(home, {.server = place.server()});
    std::size_t rows = 0;
    const auto peak = peak_of([&] {
        rows = sure(home.await<fetch_reply>([&](auto done) {
                   source.fetch({.rows_max = 8'000, .bytes_max = 3 << 20}, done);
               }))
                   .ahead->rows()
                   .size();
    });
    EXPECT_LT(peak, 20 << 20);
    EXPECT_GE(rows, 1u);
    EXPECT_LE(rows, 4u);
}

}  // namespace
}  // namespace millrace::test
