// What a relay must find in an outbox that many transactions write to at once.

#include "integration/postgres_relay.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

struct PostgresWindow : testing::Test {
    outbox_place place;

    /// An open transaction that has written one row.
    support::sql_connection open_writer(std::int64_t& id, const std::string& begin = "BEGIN") {
        auto writer = place.session();
        writer.execute(begin);
        id = writer.number(place.on("INSERT INTO {} (topic, key) VALUES ('orders', 'open') RETURNING id"));
        return writer;
    }
};

TEST_F(PostgresWindow, DeliversALowerIdThatIsCommittedLater) {
    for (const auto* const begin : {"BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"}) {
        postgres_relay relay(place);
        std::int64_t low = 0;
        auto writer = open_writer(low, begin);
        const auto high = place.put("other");
        ASSERT_TRUE(relay.delivers(1)) << "an open transaction stalls nothing";
        writer.execute("COMMIT");
        ASSERT_TRUE(relay.delivers(2));
        EXPECT_THAT(relay.sink.ids(), ElementsAre(high, low));
        EXPECT_TRUE(relay.settles());
        EXPECT_EQ(place.sql.number(place.on("SELECT count(*) FROM {}")), 0);
    }
}

TEST_F(PostgresWindow, ForgetsARolledBackIdAndWaitsForNothing) {
    postgres_relay relay(place);
    std::int64_t low = 0;
    auto writer = open_writer(low);
    const auto high = place.put("other");
    ASSERT_TRUE(relay.delivers(1));
    relay.home.run_for(milliseconds{700});
    EXPECT_GE(relay.driver().counters().gaps, 1u)
        << "while its writer lives, the gap is kept, also by sweeps";
    writer.execute("ROLLBACK");
    EXPECT_TRUE(relay.settles());
    EXPECT_EQ(relay.driver().counters().gaps, 0u);
    EXPECT_THAT(relay.sink.ids(), ElementsAre(high));
}

TEST_F(PostgresWindow, DeliversAndDeletesTheHighestIdThatThereIs) {
    postgres_relay relay(place);
    const auto highest = std::numeric_limits<std::int64_t>::max();
    for (int life = 0; life < 2; ++life) {
        place.run(fmt::format(
            "INSERT INTO {{}} (id, topic, key) OVERRIDING SYSTEM VALUE VALUES ({}, 'orders', 'max')", highest
        ));
        ASSERT_TRUE(relay.settles());
        EXPECT_EQ(place.sql.number(place.on("SELECT count(*) FROM {}")), 0);
        EXPECT_EQ(relay.sink.ids().back(), highest);
        const auto low = place.put("low");
        ASSERT_TRUE(relay.until([&] { return relay.sink.ids().back() == low; }));
        ASSERT_TRUE(relay.settles());
        relay.restart();
    }
}

TEST_F(PostgresWindow, AfterAnExplicitHighIdWhatTheSequenceGivesComesAtOnceAlsoUnderEachLaterRelay) {
    auto options = postgres_relay::quick();
    options.sweep_every = std::chrono::minutes{10};
    postgres_relay relay(place, options);
    for (const auto high : {std::int64_t{1'000'000'000'000}, std::numeric_limits<std::int64_t>::max()}) {
        place.put("first");
        place.run(fmt::format(
            "INSERT INTO {{}} (id, topic, key) OVERRIDING SYSTEM VALUE VALUES ({}, 'orders', 'high')", high
        ));
        for (int life = 0; life < 3; ++life) {
            ASSERT_TRUE(relay.settles());
            relay.home.run_for(milliseconds{1'500});  // also beyond the sweep behind a hint
            const auto before = relay.sink.log.size();
            std::int64_t open = 0;
            auto writer = open_writer(open);
            const auto next = place.put("next");
            EXPECT_TRUE(relay.until([&] { return relay.sink.log.size() > before; }, milliseconds{5'000}));
            writer.execute("COMMIT");
            EXPECT_TRUE(relay.until([&] { return relay.sink.log.size() > before + 1; }, milliseconds{5'000}));
            EXPECT_THAT(relay.sink.ids(), testing::IsSupersetOf({open, next}));
            relay.restart();
        }
    }
    relay.halt();
    place.put("waits");
    std::optional<outbox_look> seen;
    relay.source().look([&](result<outbox_look> look) { seen = sure(std::move(look)); });
    ASSERT_TRUE(relay.until([&] { return seen.has_value(); }));
    EXPECT_TRUE(seen->oldest_age) << "what waits is seen, too";
}

TEST_F(PostgresWindow, AnUnrelatedOpenTransactionHoldsNoGap) {
    postgres_relay relay(place);
    auto other = place.session();
    other.execute(
        "BEGIN; SELECT pg_advisory_lock(4711); CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1)"
    );
    std::int64_t low = 0;
    auto writer = open_writer(low);
    place.put("other");
    ASSERT_TRUE(relay.delivers(1));
    writer.execute("ROLLBACK");
    EXPECT_TRUE(relay.settles());
}

TEST_F(PostgresWindow, DeliversARowThatIsCommittedBetweenTheReadAheadAndTheLookForWriters) {
    // The status of the outbox is read between the two: whoever locks it stops a round there.
    for (int i = 0; i < 5; ++i) {
        postgres_relay relay(place);
        std::int64_t low = 0;
        auto writer = open_writer(low);
        ASSERT_TRUE(relay.settles());
        auto blocker = place.session();
        blocker.execute(fmt::format("BEGIN; LOCK {}.millrace_paused IN ACCESS EXCLUSIVE MODE", place.schema));
        const auto high = place.put("other");
        relay.home.run_for(milliseconds{100});
        writer.execute("COMMIT");
        blocker.execute("COMMIT");
        ASSERT_TRUE(relay.delivers(2)) << "the writer was gone before anybody looked for it";
        EXPECT_THAT(relay.sink.ids(), UnorderedElementsAre(low, high));
        ASSERT_TRUE(relay.settles());
    }
}

TEST_F(PostgresWindow, KeepsCommitOrderOfAKeyWhoseWritersSerialise) {
    // A probe before the read-ahead would miss the first row of a pair and send the second.
    postgres_relay relay(place);
    std::atomic<bool> failed{false};
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w) {
        writers.emplace_back([&, w] {
            try {
                auto session = place.session();
                for (int i = 0; i < 150; ++i) {
                    session.execute("BEGIN");
                    if (i % 3 == 0)
                        session.execute(place.on("INSERT INTO {} (topic, key) VALUES ('noise', 'n')"));
                    session.execute(place.on(
                        "SELECT {}_put('orders', 'k', '" + std::to_string(w) + "', serialise => true)"
                    ));
                    session.execute(i % 5 == 4 ? "ROLLBACK" : "COMMIT");
                }
            } catch (const std::exception&) {
                failed = true;
            }
        });
    }
    EXPECT_TRUE(relay.until(
        [&] {
            return std::count_if(relay.sink.log.begin(), relay.sink.log.end(), [](const auto& t) {
                       return t.topic == "orders";
                   }) == 480;
        },
        milliseconds{60'000}
    ));
    for (auto& writer : writers)
        writer.join();
    EXPECT_FALSE(failed);
    std::vector<std::int64_t> of_key;
    for (const auto& t : relay.sink.log) {
        if (t.topic == "orders") of_key.push_back(t.id);
    }
    EXPECT_TRUE(std::is_sorted(of_key.begin(), of_key.end()));
}

TEST_F(PostgresWindow, LosesNothingOfSixteenWritersThatPauseAndRollBack) {
    postgres_relay relay(place);
    std::mutex mutex;
    std::set<std::int64_t> committed;
    std::atomic<int> running{16};
    std::vector<std::thread> writers;
    for (unsigned w = 0; w < 16; ++w) {
        writers.emplace_back([&, w] {
            auto session = place.session();
            std::minstd_rand random(w + 1);
            for (int i = 0; i < 20; ++i) {
                session.execute("BEGIN");
                const auto id =
                    session.number(place.on("INSERT INTO {} (topic, key) VALUES ('orders', 'k') RETURNING id")
                    );
                std::this_thread::sleep_for(milliseconds{random() % 20});
                const bool keep = random() % 5 != 0;
                session.execute(keep ? "COMMIT" : "ROLLBACK");
                const std::lock_guard lock(mutex);
                if (keep) committed.insert(id);
            }
            --running;
        });
    }
    relay.until([&] { return running == 0; }, milliseconds{60'000});
    for (auto& writer : writers)
        writer.join();
    EXPECT_TRUE(relay.until([&] { return relay.sink.log.size() >= committed.size(); }));
    EXPECT_TRUE(relay.settles());
    const auto ids = relay.sink.ids();
    EXPECT_EQ(std::set<std::int64_t>(ids.begin(), ids.end()), committed);
    EXPECT_EQ(ids.size(), committed.size()) << "and nothing twice";
}

TEST_F(PostgresWindow, TheSweepFindsIdsThatASequenceWithACacheGivesOutLate) {
    place.run("ALTER TABLE {} ALTER COLUMN id SET CACHE 20");
    auto early = place.session();
    const auto insert = place.on("INSERT INTO {} (topic, key) VALUES ('orders', 'k') RETURNING id");
    const auto first = early.number(insert);
    postgres_relay relay(place);
    const auto other = place.put("other");
    ASSERT_GT(other, first + 1);
    ASSERT_TRUE(relay.settles());
    const auto late = early.number(insert);
    ASSERT_LT(late, other);
    EXPECT_TRUE(relay.delivers(3));
    EXPECT_THAT(relay.sink.ids(), ElementsAre(first, other, late));
}

TEST_F(PostgresWindow, TheSweepFindsAnIdThatWasDrawnAheadOfItsInsert) {
    postgres_relay relay(place);
    const auto drawn = place.sql.number(place.on("SELECT nextval('{}_id_seq')"));
    place.put("other");
    ASSERT_TRUE(relay.delivers(1));
    ASSERT_TRUE(relay.settles());
    place.run(fmt::format("INSERT INTO {{}} (id, topic) VALUES ({}, 'orders')", drawn));
    EXPECT_TRUE(relay.delivers(2));
    EXPECT_EQ(relay.sink.log.back().id, drawn);
}

TEST_F(PostgresWindow, TheSweepFindsAnExplicitLowId) {
    place.run("ALTER TABLE {} ALTER COLUMN id RESTART WITH 1000");
    postgres_relay relay(place);
    place.put("other");
    ASSERT_TRUE(relay.delivers(1));
    ASSERT_TRUE(relay.settles());
    place.run("INSERT INTO {} (id, topic) VALUES (7, 'orders')");
    EXPECT_TRUE(relay.delivers(2));
    EXPECT_EQ(relay.sink.log.back().id, 7);
}

TEST_F(PostgresWindow, BeginsAnewAfterTruncateRestartIdentity) {
    postgres_relay relay(place);
    for (int i = 0; i < 3; ++i)
        place.put("k");
    ASSERT_TRUE(relay.delivers(3));
    place.run("TRUNCATE {} RESTART IDENTITY");
    place.put("k", "again");
    EXPECT_TRUE(relay.delivers(4));
    EXPECT_EQ(relay.sink.log.back().id, 1);
    EXPECT_EQ(relay.sink.log.back().value, "again");
    EXPECT_TRUE(relay.settles());
}

TEST_F(PostgresWindow, BeginsAnewWhenTheTableIsDroppedAndMadeAgain) {
    postgres_relay relay(place);
    for (int i = 0; i < 3; ++i)
        place.put("k");
    ASSERT_TRUE(relay.delivers(3));
    place.run("DROP TABLE {}");
    EXPECT_TRUE(relay.until([&] {
        const auto trouble = relay.driver().last_error();
        return trouble && trouble->detail.find("outbox init") != std::string::npos;
    })) << "whoever looks must see what to do";
    sure(postgres_outbox_admin::init(place.server()));
    place.put("k", "again");
    EXPECT_TRUE(relay.delivers(4));
    EXPECT_EQ(relay.sink.log.back().value, "again");
}

TEST_F(PostgresWindow, PassesWideStepsAndJumpsOfIds) {
    place.run("ALTER TABLE {} ALTER COLUMN id SET INCREMENT BY 1000");
    postgres_relay relay(place);
    std::vector<std::int64_t> all;
    for (int i = 0; i < 20; ++i)
        all.push_back(place.put("k"));
    place.run("ALTER TABLE {} ALTER COLUMN id RESTART WITH 1000000000000");
    all.push_back(place.put("k"));
    ASSERT_TRUE(relay.delivers(all.size()));
    EXPECT_EQ(relay.sink.ids(), all);
    EXPECT_TRUE(relay.settles());
    std::optional<outbox_look> seen;
    place.put("k");
    relay.halt();
    relay.source().look([&](result<outbox_look> look) { seen = sure(std::move(look)); });
    ASSERT_TRUE(relay.until([&] { return seen.has_value(); }));
    EXPECT_LT(seen->backlog, 10'000u) << "the span of ids is no number of rows";
    EXPECT_GE(seen->backlog, 1u);
}

TEST_F(PostgresWindow, KeepsMemoryFlatWhileAWriterIdlesDuringAHundredThousandRollbacks) {
    auto options = postgres_relay::quick();
    options.sweep_every = std::chrono::minutes{10};
    postgres_relay relay(place, options);
    relay.sink.keeps_log = false;
    std::int64_t low = 0;
    auto writer = open_writer(low);
    // Each row draws one id more, as a transaction that rolls back does.
    for (int i = 0; i < 10; ++i) {
        place.run(
            "INSERT INTO {0} (topic, key) SELECT 'orders', convert_to('k' || g, 'UTF8') FROM "
            "generate_series(1, 10000) g WHERE "
            "nextval('{0}_id_seq') > 0"
        );
        relay.home.run_for(milliseconds{20});
    }
    ASSERT_TRUE(relay.until([&] { return relay.sink.count == 100'000; }, milliseconds{60'000}));
    const auto counters = relay.driver().counters();
    EXPECT_LE(counters.gaps, options.gaps_max);
    EXPECT_LE(counters.bytes_in_memory, 2 * options.window_bytes);
    writer.execute("COMMIT");
    EXPECT_TRUE(relay.until([&] { return relay.sink.count == 100'001; })) << "the idle writer's row";
    EXPECT_TRUE(relay.settles());
}

TEST_F(PostgresWindow, ReadsRowsOfAPartitionedTable) {
    outbox_place there(
        support::services().postgres,
        "CREATE TABLE {0} (id bigint GENERATED BY DEFAULT AS IDENTITY, topic text NOT NULL, key bytea, value "
        "bytea, "
        "PRIMARY KEY (id)) PARTITION BY RANGE (id); CREATE TABLE {0}_a PARTITION OF {0} FOR VALUES FROM (1) "
        "TO (4); "
        "CREATE TABLE {0}_b PARTITION OF {0} FOR VALUES FROM (4) TO (100)"
    );
    postgres_relay relay(there);
    auto writer = there.session();
    writer.execute("BEGIN");
    // Into the partition itself: the parent is not locked by this writer.
    const auto low = writer.number(
        there.on("INSERT INTO {0}_a (id, topic) VALUES (nextval('{0}_id_seq'), 'orders') RETURNING id")
    );
    for (int i = 0; i < 5; ++i)
        there.put("k");
    ASSERT_TRUE(relay.delivers(5));
    relay.home.run_for(milliseconds{50});
    EXPECT_GE(relay.driver().counters().gaps, 1u);
    writer.execute("COMMIT");
    ASSERT_TRUE(relay.delivers(6));
    EXPECT_EQ(relay.sink.log.back().id, low);
    EXPECT_TRUE(relay.settles());
    EXPECT_EQ(there.sql.number(there.on("SELECT count(*) FROM {}")), 0);
}

}  // namespace
}  // namespace millrace::test
