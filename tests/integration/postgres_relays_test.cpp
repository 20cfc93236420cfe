// Relays on a real outbox whose surroundings change under them: pauses, rights, newer programs, other relays.
#include "postgres_relay.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::HasSubstr;

TEST(PostgresRelays, APauseHoldsBackRowsThatWereReadBeforeIt) {
    constexpr std::size_t rows = 400;  // of each topic; all are read at once
    outbox_place place;
    place.run(fmt::format(
        "INSERT INTO {{}} (topic, key) SELECT t, 'k' FROM generate_series(1, {}) n, "
        "unnest('{{{{orders,others}}}}'::text[]) t ORDER BY n",
        rows
    ));
    auto options = postgres_relay::quick();
    options.rows_per_second = 200;
    postgres_relay relay(place, options);
    const auto sent = [&](std::string_view topic) {
        const auto& log = relay.sink.log;
        return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), [&](const auto& row) {
            return row.topic == topic;
        }));
    };
    ASSERT_TRUE(relay.until([&] { return relay.driver().counters().read == 2 * rows; }));
    ASSERT_TRUE(relay.delivers(40));
    EXPECT_TRUE(sure(place.admin().pause("orders")));
    relay.home.run_for(milliseconds{200});
    const auto paused_at = sent("orders");
    EXPECT_LT(paused_at, rows) << "nothing was held back";
    ASSERT_TRUE(relay.until([&] { return sent("others") == rows; }));
    ASSERT_TRUE(relay.settles());
    EXPECT_EQ(sent("orders"), paused_at);

    EXPECT_TRUE(sure(place.admin().resume("orders")));
    ASSERT_TRUE(relay.delivers(2 * rows));
    ASSERT_TRUE(relay.settles());
    std::vector<std::int64_t> orders;
    for (const auto& row : relay.sink.log)
        if (row.topic == "orders") orders.push_back(row.id);
    EXPECT_EQ(orders.size(), rows);
    EXPECT_TRUE(std::is_sorted(orders.begin(), orders.end()));
}

/// What five million delivered rows leave behind while a snapshot is held: entries of an index that no vacuum
/// may remove. Most of them are deleted here as a relay would, which takes the test half the time.
TEST(PostgresRelays, TakesOverWithinASecondAboveFiveMillionDeadEntries) {
    constexpr std::int64_t by_the_relay = 200'000;
    constexpr std::int64_t all = 5'000'000;
    constexpr std::int64_t at_once = 200'000;
    outbox_place place;
    place.run("ALTER TABLE {} SET UNLOGGED");  // its log and vacuums are no part of this
    place.run("ALTER TABLE {} SET (autovacuum_enabled = off)");
    auto holder = place.session();
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    place.sql.execute("SET enable_seqscan = off");  // it would walk all that is dead
    const auto insert = [&](std::int64_t rows) {
        place.run(fmt::format(
            "INSERT INTO {{}} (topic, key) SELECT 'orders', 'k' FROM generate_series(1, {})", rows
        ));
    };
    auto options = postgres_relay::quick();
    options.sweep_every = std::chrono::minutes{10};
    std::int64_t last = 0;
    {
        postgres_relay first(place, options);
        first.sink.keeps_log = false;
        std::uint64_t delivered = by_the_relay;
        const auto delivers = [&] {
            return first.until([&] { return first.sink.count >= delivered; }, milliseconds{90'000});
        };
        insert(by_the_relay);
        ASSERT_TRUE(delivers());
        for (auto dead = by_the_relay; dead < all; dead += at_once) {
            place.run("BEGIN");
            insert(at_once);
            last = place.sql.number(fmt::format(
                "SELECT last_value FROM pg_sequences WHERE schemaname = '{}' AND sequencename = "
                "'outbox_id_seq'",
                place.schema
            ));
            place.run(fmt::format("DELETE FROM {{}} WHERE id > {} AND id <= {}", last - at_once, last));
            place.run("COMMIT");
            last = place.put("k");
            ++delivered;
            ASSERT_TRUE(delivers());
        }
        ASSERT_TRUE(first.settles());
        first.home.run_for(milliseconds{1'100});  // the hint is written once a second
        last = place.put("k");
        ++delivered;
        ASSERT_TRUE(delivers());
        ASSERT_TRUE(first.settles());
    }
    EXPECT_GT(last, all);
    EXPECT_GE(place.sql.number(fmt::format("SELECT id FROM {}.millrace_low_water", place.schema)), last - 1)
        << "the hint says where the head is";
    place.put("k", "next");
    postgres_relay second(place, options);
    const auto began = std::chrono::steady_clock::now();
    ASSERT_TRUE(second.delivers(1));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{1});
    EXPECT_EQ(second.sink.log[0].value, "next");
}

TEST(PostgresRelays, OfTwoWithAStaleViewTheOneWithoutTheLeaseDecidesNothingAndNothingIsLost) {
    outbox_place place;
    postgres_relay stale(place);
    stale.sink.refuses_value = "bad";
    place.put("first");
    ASSERT_TRUE(stale.delivers(1));
    ASSERT_TRUE(stale.settles());
    postgres_relay owner(place);  // with a higher epoch, of which the other is not told
    std::set<std::int64_t> written;
    for (int i = 0; i < 300; ++i) {
        written.insert(place.put("k" + std::to_string(i % 7), i == 150 ? "bad" : "v"));
        if (i % 10 != 0) continue;
        stale.home.run_for(milliseconds{2});
        owner.home.run_for(milliseconds{2});
    }
    EXPECT_TRUE(stale.until([&] { return stale.stopped.has_value(); })) << "it met the bad row";
    ASSERT_TRUE(owner.until([&] { return sure(place.admin().stats()).backlog == 0; }));
    EXPECT_EQ(stale.stopped->code, errc::not_owner);
    EXPECT_EQ(sure(place.admin().stats()).dead, 0U) << "only the owner may park a row";
    const auto ids = owner.sink.ids();
    EXPECT_EQ(std::set<std::int64_t>(ids.begin(), ids.end()), written) << "the other's deletes were refused";
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

TEST(PostgresRelays, GoesOnWhenARightThatWasTakenAwayComesBack) {
    outbox_place place;
    const auto role = place.schema + "_relay";
    place.sql.execute("CREATE ROLE " + role + " LOGIN");
    auto url = support::services().postgres;
    url.replace(url.find("postgres@"), 8, role);
    place.sql.execute(sure(postgres_outbox_admin::script(place.server(), "postgres", role)));
    postgres_relay relay(place, postgres_relay::quick(), place.server_at(url));
    place.put("k");
    ASSERT_TRUE(relay.delivers(1));
    ASSERT_TRUE(relay.settles());
    const auto says = [&](const std::string& what) {
        return relay.until([&] {
            const auto trouble = relay.driver().last_error();
            return trouble && trouble->detail.find(what) != std::string::npos;
        });
    };
    for (const auto* const right : {"SELECT", "DELETE"}) {
        place.run(fmt::format("REVOKE {} ON {{}} FROM {}", right, role));
        const auto before = relay.sink.log.size();
        place.put("k");
        EXPECT_TRUE(says("permission denied")) << right;
        place.run(fmt::format("GRANT {} ON {{}} TO {}", right, role));
        EXPECT_TRUE(relay.delivers(before + 1)) << right;
        EXPECT_TRUE(relay.settles()) << right;
    }
    EXPECT_EQ(place.sql.number(place.on("SELECT count(*) FROM {}")), 0);
    relay.halt();
    place.sql.execute(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role));
}

TEST(PostgresRelays, ShareAnOutboxWithANewerProgramUntilItSaysThatTheyCannot) {
    outbox_place place;
    const auto layout = [&](const std::string& set) {
        place.sql.execute(fmt::format("UPDATE {}.millrace_outbox SET {}", place.schema, set));
    };
    // What a newer program may do: its version, and columns of its own.
    layout("schema_version = 99");
    place.sql.execute(fmt::format(
        "ALTER TABLE {0}.millrace_outbox ADD later text; ALTER TABLE {0}.millrace_dead ADD later text; ALTER "
        "TABLE {0}.outbox ADD later text",
        place.schema
    ));
    postgres_relay relay(place);
    place.put("k");
    ASSERT_TRUE(relay.delivers(1));
    ASSERT_TRUE(relay.settles());
    EXPECT_EQ(
        place.sql.number(fmt::format("SELECT schema_version FROM {}.millrace_outbox", place.schema)), 99
    ) << "an older program takes nothing back";

    layout("readable_by = 99");
    const auto refused = postgres_outbox_admin::open(place.server());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::wrong_version);
    EXPECT_THAT(refused.error().detail, HasSubstr("use a newer program"));
    layout("readable_by = 1");
    EXPECT_EQ(sure(place.admin().stats()).backlog, 0U);
}

}  // namespace
}  // namespace millrace::test
