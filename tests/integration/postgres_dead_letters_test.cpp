// Dead letters of an outbox in PostgreSQL: what puts them back, shows them and upgrades them.

#include "integration/postgres_relay.hpp"

#include <atomic>
#include <string>
#include <thread>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PostgresOutbox, KeepsTheOrderOfAKeyThatIsRetriedWhileItsWriterRuns) {
    outbox_place place;
    postgres_relay relay(place);
    relay.sink.refuses_value = "0";
    std::atomic<bool> stop{false};
    std::atomic<int> written{0};
    std::thread writer([&] {
        auto session = place.session();
        for (int i = 0; !stop; ++i, ++written) {
            session.query(
                place.on("INSERT INTO {} (topic, key, value) VALUES ('orders', 'k', $1)"), {std::to_string(i)}
            );
        }
    });
    EXPECT_TRUE(relay.until([&] { return sure(place.admin().stats()).dead > 50; })) << "the key is parked";
    EXPECT_THAT(relay.sink.log, IsEmpty()) << "nothing passes the refused row";
    relay.sink.refuses_value.reset();
    EXPECT_GT(sure(place.admin().retry_dead({.ids = {row_id{1}}, .topic = {}, .key = {}})), 50u);
    EXPECT_TRUE(relay.until([&] { return relay.sink.log.size() > 200; }));
    stop = true;
    writer.join();
    EXPECT_TRUE(relay.until([&] { return relay.sink.log.size() >= static_cast<std::size_t>(written); }));
    const auto ids = relay.sink.ids();
    EXPECT_EQ(ids.front(), 1);
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end()) << "and nothing twice";
}

TEST(PostgresOutbox, PutsBackWhatFitsAndNamesTheRestWhenIdsCameAgain) {
    outbox_place place;
    postgres_relay relay(place);
    relay.sink.refuses_value = "bad";
    place.run(
        "INSERT INTO {} (topic, key, value) VALUES ('t', 'a', 'bad'), ('t', 'b', 'bad'), ('t', 'c', "
        "'bad')"
    );
    const auto dead = [&] { return sure(place.admin().list_dead({})).size(); };
    ASSERT_TRUE(relay.until([&] { return dead() == 3; }));
    place.run("TRUNCATE {} RESTART IDENTITY");
    place.run("INSERT INTO {} (topic, key, value) VALUES ('t', 'x', 'bad'), ('t', 'b', 'v')");
    ASSERT_TRUE(relay.until([&] { return dead() == 5; }));

    relay.sink.refuses_value.reset();
    const auto some = place.admin().retry_dead({.ids = {}, .topic = {}, .key = {}});
    ASSERT_FALSE(some);
    EXPECT_EQ(some.error().code, errc::conflict);
    EXPECT_THAT(some.error().detail, HasSubstr("2 were put back and 3 stay"));
    EXPECT_THAT(some.error().detail, HasSubstr("(ids 1, 2, 2)"));
    EXPECT_TRUE(relay.delivers(2)) << "1 of key a and 3";
    EXPECT_EQ(sure(place.admin().drop_dead({.ids = {row_id{2}}, .topic = {}, .key = {}})), 1u)
        << "the oldest of that id";
    ASSERT_TRUE(relay.settles());
    EXPECT_EQ(sure(place.admin().retry_dead({.ids = {}, .topic = {}, .key = {}})), 2u);
    EXPECT_TRUE(relay.delivers(4));
    EXPECT_EQ(dead(), 0u);
}

TEST(PostgresOutbox, PutsBackAlsoWhatARelayParksMeanwhile) {
    outbox_place place;
    postgres_relay relay(place);
    relay.sink.refuses_value = "bad";
    place.run("INSERT INTO {} (topic, key, value) VALUES ('t', 'a', 'bad'), ('t', 'b', 'bad')");
    ASSERT_TRUE(relay.until([&] { return sure(place.admin().list_dead({})).size() == 2; }));
    relay.sink.refuses_value.reset();
    // As a relay does that moves a row of key a, while another parks b anew.
    auto session = place.session();
    session.query("SET search_path TO " + place.schema);
    session.query("CREATE TABLE hidden AS SELECT * FROM millrace_parked WHERE key = 'b'");
    session.query("CREATE TABLE hidden_dead AS SELECT * FROM millrace_dead WHERE key = 'b'");
    session.query("DELETE FROM millrace_parked WHERE key = 'b'");
    session.query("DELETE FROM millrace_dead WHERE key = 'b'");
    session.query("BEGIN");
    session.query("SELECT 1 FROM millrace_parked WHERE key = 'a' FOR SHARE");
    session.query("INSERT INTO millrace_parked SELECT * FROM hidden");
    session.query("INSERT INTO millrace_dead SELECT * FROM hidden_dead");
    const auto blocked_by_it = "SELECT count(*) FROM pg_stat_activity WHERE " +
                               std::to_string(session.number("SELECT pg_backend_pid()")) +
                               " = ANY (pg_blocking_pids(pid))";
    std::thread committing([&] {
        auto watch = place.session();
        while (watch.number(blocked_by_it) == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        session.query("COMMIT");
    });
    const auto moved = place.admin().retry_dead({});
    committing.join();
    EXPECT_EQ(sure(moved), 2u) << "the key that was parked after the first look, too";
    EXPECT_TRUE(relay.delivers(2));
}

TEST(PostgresOutbox, ParksAndUnparksTheKeyOfAPartitionThatNoSinkHas) {
    outbox_place place;
    place.run("ALTER TABLE {} DROP CONSTRAINT outbox_partition_check, ALTER COLUMN partition TYPE bigint");
    postgres_relay relay(place);
    place.run(
        "INSERT INTO {} (topic, key, partition) VALUES ('t', 'wide', 3000000000), ('t', 'below', -5), ('t', "
        "'wide', NULL), ('t', 'below', NULL), ('t', 'well', 3)"
    );
    const auto dead = [&] { return sure(place.admin().list_dead({})); };
    ASSERT_TRUE(relay.until([&] { return dead().size() == 4; }));
    EXPECT_THAT(dead().front().error, HasSubstr("3000000000"));
    EXPECT_THAT(relay.sink.ids(), ElementsAre(5));
    EXPECT_EQ(sure(place.admin().drop_dead({.ids = {row_id{1}, row_id{2}}, .topic = {}, .key = {}})), 2u);
    EXPECT_EQ(sure(place.admin().retry_dead({.ids = {}, .topic = "t", .key = {}})), 2u);
    EXPECT_TRUE(relay.delivers(3));
    EXPECT_EQ(sure(place.admin().stats()).parked_lanes, 0u);
}

TEST(PostgresOutbox, ListsDeadLettersWithoutTheirPayloads) {
    outbox_place place;
    postgres_relay relay(place);
    relay.sink.refuses_value = "bad";
    place.run(
        "INSERT INTO {} (topic, key, value, header_names, header_values) VALUES ('t', 'k', 'bad', "
        "'{{h}}', '{{x}}')"
    );
    ASSERT_TRUE(relay.until([&] { return !sure(place.admin().list_dead({})).empty(); }));
    const auto whole = sure(place.admin().list_dead({})).front();
    EXPECT_EQ(whole.event.value, "bad");
    EXPECT_EQ(whole.event.headers.size(), 1u);
    const auto listed = sure(place.admin().list_dead({}, 10, dead_part::without_payload)).front();
    EXPECT_EQ(listed.event.key, "k");
    EXPECT_EQ(listed.event.value, std::nullopt);
    EXPECT_TRUE(listed.event.headers.empty());
    EXPECT_EQ(listed.broken_headers, "");
}

TEST(PostgresOutbox, UpgradesDeadLettersWhoseIdsCouldNotComeAgain) {
    outbox_place place;
    const auto in = [&](const std::string& sql) {
        place.sql.execute(fmt::format(fmt::runtime(sql), place.schema));
    };
    in("ALTER TABLE {0}.millrace_dead DROP COLUMN entry, ADD PRIMARY KEY (outbox, id); UPDATE "
       "{0}.millrace_outbox SET schema_version = 1");
    (void)place.admin();
    const std::string bury =
        "INSERT INTO {0}.millrace_dead (outbox, id, topic, reason, error, attempts, first_at, last_at) "
        "VALUES "
        "('outbox', 7, 't', 'r', 'e', 1, now(), now())";
    in(bury);
    in(bury);
    EXPECT_EQ(sure(place.admin().list_dead({})).size(), 2u);
}

}  // namespace
}  // namespace millrace::test
