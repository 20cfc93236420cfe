// How the relay goes on from PostgreSQL to Kafka after a leader is killed, stopped or paused: by what rule,
// seen from outside.

#include "postgres_kafka_shop.hpp"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// As in takeover_test.cpp: so that a test tells one rule from another, not a fast machine from a slow one.
constexpr auto well_before_the_lease = 2500ms;
constexpr auto a_rebalance = 4s;  // of a group, beyond what it waits for
constexpr auto patience = 30s;

struct PostgresKafkaTakeover : testing::Test {
    /// The first one leads, the second waits.
    void start(const std::vector<std::string>& options) {
        leader.emplace(shop.start_relay(options));
        ASSERT_NO_FATAL_FAILURE(deliver(patience));
        waiting.emplace(shop.start_relay(options));
    }
    void start_by_lease(const std::string& lease) {
        ASSERT_NO_FATAL_FAILURE(start({"--lease", lease}));
        ASSERT_TRUE(support::eventually(patience, [&] {
            return shop.sql().number("SELECT count(*) FROM millrace_worker") == 2;
        }));
    }
    void start_by_group() {
        ASSERT_NO_FATAL_FAILURE(
            start({"--leader", "kafka", "--leader-group", topic, "--leader-heartbeat-timeout", "2s"})
        );
        ASSERT_TRUE(support::eventually(patience, [&] {
            return shop.log().find("first=no") != std::string::npos;
        }));
        ASSERT_NO_FATAL_FAILURE(deliver(patience)) << "after the rebalance";
    }
    void deliver(std::chrono::milliseconds limit) {
        shop.put(topic, "k", std::to_string(++written));
        ASSERT_TRUE(support::eventually(limit, [&] { return shop.waiting() == 0; })) << shop.log();
    }
    std::chrono::milliseconds time_to_deliver() {
        const auto begin = clock::now();
        deliver(patience);
        return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
    }
    [[nodiscard]] long long epoch() { return shop.sql().number("SELECT max(epoch) FROM millrace_shard"); }

    /// The numbers of the key, in order; a repeat is allowed.
    void expect_order() {
        int last = 0;
        for (const auto& value : shop.values(topic, "k")) {
            EXPECT_LE(std::stoi(value), last + 1);
            last = std::max(last, std::stoi(value));
        }
        EXPECT_EQ(last, written);
    }

    postgres_kafka_shop shop;
    const std::string topic = shop.topic();
    std::optional<support::process> leader;
    std::optional<support::process> waiting;
    int written{0};
};

TEST_F(PostgresKafkaTakeover, AKilledLeaderIsReplacedAtOnceOnTheSameMachine) {
    ASSERT_NO_FATAL_FAILURE(start_by_lease("10s"));
    const auto before = epoch();
    leader->signal(SIGKILL);
    EXPECT_LT(time_to_deliver(), well_before_the_lease);
    EXPECT_GT(epoch(), before);
    expect_order();
}

TEST_F(PostgresKafkaTakeover, ALeaderThatIsToldToStopHandsOverAtOnceAndEndsWell) {
    ASSERT_NO_FATAL_FAILURE(start_by_lease("10s"));
    leader->ask_to_end();
    const auto ended = leader->wait(10s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0);
    EXPECT_LT(time_to_deliver(), well_before_the_lease);
    expect_order();
}

TEST_F(PostgresKafkaTakeover, APausedLeaderIsReplacedAfterItsLeaseAndStopsAtOnceWhenItWakes) {
    ASSERT_NO_FATAL_FAILURE(start_by_lease("2s"));
    leader->signal(SIGSTOP);
    EXPECT_LT(time_to_deliver(), 2s + well_before_the_lease);
    leader->signal(SIGCONT);
    EXPECT_TRUE(support::eventually(5s, [&] {
        const auto log = shop.log();
        return log.find("relay.suspended") != std::string::npos ||
               log.find("relay.lost") != std::string::npos;
    })) << shop.log();
    for (int i = 0; i < 10; ++i)
        ASSERT_NO_FATAL_FAILURE(deliver(patience));
    EXPECT_TRUE(leader->running()) << "it waits for its turn";
    expect_order();
}

TEST_F(PostgresKafkaTakeover, OfAKafkaGroupAKilledLeaderIsReplacedWithinTheSessionTimeOut) {
    ASSERT_NO_FATAL_FAILURE(start_by_group());
    const auto before = epoch();
    leader->signal(SIGKILL);
    const auto took = time_to_deliver();
    EXPECT_LT(took, 6s + a_rebalance);
    EXPECT_GT(epoch(), before) << "raised in the outbox's database";
    expect_order();
}

TEST_F(PostgresKafkaTakeover, OfAKafkaGroupALeaderThatIsToldToStopHandsOverWithoutATimeOut) {
    ASSERT_NO_FATAL_FAILURE(start_by_group());
    leader->ask_to_end();
    const auto ended = leader->wait(10s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0);
    EXPECT_LT(time_to_deliver(), a_rebalance);
    expect_order();
}

TEST_F(PostgresKafkaTakeover, OfAKafkaGroupAPausedLeaderIsReplacedAndStopsAtOnceWhenItWakes) {
    ASSERT_NO_FATAL_FAILURE(start_by_group());
    leader->signal(SIGSTOP);
    EXPECT_LT(time_to_deliver(), 6s + a_rebalance);
    leader->signal(SIGCONT);
    for (int i = 0; i < 10; ++i)
        ASSERT_NO_FATAL_FAILURE(deliver(patience));
    EXPECT_TRUE(support::eventually(5s, [&] { return shop.log().find("relay.lost") != std::string::npos; }))
        << shop.log();
    EXPECT_TRUE(leader->running());
    expect_order();
}

TEST_F(PostgresKafkaTakeover, OneRelayServesSeveralOutboxesAndOneThatIsDroppedAndMadeAgain) {
    shop.sql().execute("CREATE SCHEMA second");
    const auto second = shop.url() + "?table=second.outbox";
    ASSERT_EQ(support::run({MILLRACE_PROGRAM, "outbox", "init", "--outbox", second}).status, 0);
    leader.emplace(shop.start_relay({"--outbox", second, "--lease", "2s"}));
    const auto deliver_second = [&] {
        shop.sql().query("INSERT INTO second.outbox (topic, value) VALUES ($1, 'second')", {topic});
        return support::eventually(patience, [&] {
            return shop.sql().number("SELECT count(*) FROM second.outbox") == 0;
        });
    };
    ASSERT_NO_FATAL_FAILURE(deliver(patience));
    ASSERT_TRUE(deliver_second()) << shop.log();
    shop.sql().execute("DROP SCHEMA second CASCADE");
    for (int i = 0; i < 3; ++i)
        ASSERT_NO_FATAL_FAILURE(deliver(patience));
    shop.sql().execute("CREATE SCHEMA second");
    ASSERT_EQ(support::run({MILLRACE_PROGRAM, "outbox", "init", "--outbox", second}).status, 0);
    EXPECT_TRUE(deliver_second()) << shop.log();
    EXPECT_TRUE(leader->running());
}

TEST_F(PostgresKafkaTakeover, ARelayStartsBeforeItsOutboxAndItsTopicAreThere) {
    const std::string late = support::unique_name("late");
    shop.sql().execute("ALTER TABLE outbox RENAME TO away");
    leader.emplace(shop.start_relay({"--lease", "2s"}));
    ASSERT_TRUE(support::eventually(patience, [&] {
        return shop.log().find("relay.waits") != std::string::npos;
    })) << shop.log();
    EXPECT_TRUE(leader->running());
    shop.sql().execute("ALTER TABLE away RENAME TO outbox");
    shop.put(late, "k", "1");
    ASSERT_NO_FATAL_FAILURE(shop.put(topic, "k", std::to_string(++written)));
    ASSERT_TRUE(support::eventually(patience, [&] { return shop.waiting() == 1; })) << shop.log();
    shop.admin().create_topic(late, 1);
    EXPECT_TRUE(support::eventually(60s, [&] { return shop.waiting() == 0; })) << shop.log();
    EXPECT_TRUE(leader->running());
}

}  // namespace
}  // namespace millrace::e2e
