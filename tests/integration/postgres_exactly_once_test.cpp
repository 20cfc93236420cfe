// Orders counted into a table by processes that are killed, paused and cut off: each exactly once.
#include "lease_layout.hpp"
#include "pipeline.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/process.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <millrace/consumer.hpp>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::sql_connection;
using clock = std::chrono::steady_clock;

constexpr std::uint64_t products = 40;

struct ExactlyOnce : testing::Test {
    ExactlyOnce() {
        sql_connection(support::services().postgres).execute("CREATE DATABASE " + database);
        sql.emplace(url());
        sql->execute("CREATE SCHEMA millrace");
        for (const auto& statement : postgres::lease_layout("millrace"))
            sql->execute(statement);
        sql->execute(
            "CREATE TABLE order_counts (product text PRIMARY KEY, orders bigint NOT NULL);"
            "CREATE TABLE rewinds (shard text, was text, became text);"
            "CREATE TABLE slow (marker int);"
            "CREATE FUNCTION note_rewind() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "  IF OLD.sequence IS NOT NULL AND (NEW.sequence IS NULL OR NEW.sequence::numeric < "
            "      OLD.sequence::numeric) THEN "
            "    INSERT INTO public.rewinds VALUES (OLD.shard, OLD.sequence, NEW.sequence); "
            "  END IF; "
            "  IF EXISTS (SELECT FROM public.slow) THEN PERFORM pg_sleep(0.5); END IF; "
            "  RETURN NULL; END $$;"
            "CREATE TRIGGER note_rewind AFTER UPDATE ON millrace.millrace_shard FOR EACH ROW EXECUTE "
            "FUNCTION "
            "note_rewind()"
        );
    }
    ~ExactlyOnce() override {
        workers.clear();
        sql.reset();
        sql_connection(support::services().postgres).execute("DROP DATABASE " + database + " WITH (FORCE)");
    }

    [[nodiscard]] std::string url() const {
        const auto& shared = support::services().postgres;
        return shared.substr(0, shared.rfind('/') + 1) + database;
    }
    [[nodiscard]] support::process worker(const std::string& at, const std::string& lease_seconds) const {
        return support::process(
            {MILLRACE_EXAMPLE_EXACTLY_ONCE, files.stream, "billing", at, lease_seconds},
            {.output = {}, .errors = files.folder.path() / "errors"}
        );
    }
    void put(std::uint64_t count) {
        std::vector<event> events;
        for (std::uint64_t i = 0; i < count; ++i)
            events.push_back(numbered(written++, products));
        files.put(events);
    }
    long long counted() { return sql->number("SELECT coalesce(sum(orders), 0) FROM order_counts"); }
    void expect_all_counted(std::chrono::milliseconds limit) {
        ASSERT_TRUE(eventually(limit, [&] { return counted() >= static_cast<long long>(written); }))
            << counted() << " of " << written << "; " << support::read_file(files.folder.path() / "errors");
        for (std::uint64_t product = 0; product < products; ++product) {
            const auto expected = written / products + (product < written % products ? 1 : 0);
            EXPECT_EQ(
                sql->value(
                    "SELECT coalesce(sum(orders), 0) FROM order_counts WHERE product = $1",
                    {"key-" + std::to_string(product)}
                ),
                std::to_string(expected)
            );
        }
        EXPECT_EQ(sql->value("SELECT count(*) FROM rewinds"), "0");
    }
    std::string owner() { return sql->value("SELECT owner FROM millrace.millrace_shard"); }

    const std::string database = support::unique_name("once");
    pipeline_files files;
    std::optional<sql_connection> sql;
    std::vector<support::process> workers;
    std::uint64_t written{0};
};

TEST_F(ExactlyOnce, EffectsAreExactlyThoseOfTheRecordsWhileWorkersAreKilledAndPaused) {
    files.make_stream("orders", 6);
    for (int i = 0; i < 3; ++i)
        workers.push_back(worker(url(), "1"));
    for (std::size_t round = 0; round < 6; ++round) {
        put(1'500);
        std::this_thread::sleep_for(100ms + 70ms * round);  // at another moment of the work each time
        auto& killed = workers[round % 3];
        killed.signal(SIGKILL);
        ASSERT_TRUE(killed.wait(5s));
        auto& paused = workers[(round + 1) % 3];
        paused.signal(SIGSTOP);
        put(500);
        std::this_thread::sleep_for(1'700ms);  // its lease has ended
        paused.signal(SIGCONT);
        killed = worker(url(), "1");
    }
    expect_all_counted(60s);
    for (auto& one : workers) {
        one.ask_to_end();
        const auto ended = one.wait(15s);
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->status, 0) << support::read_file(files.folder.path() / "errors");
    }
    EXPECT_EQ(sql->value("SELECT count(*) FROM millrace.millrace_shard WHERE owner <> ''"), "0");
    auto admin = local_admin::open(files.folder.file("streams.db"));
    ASSERT_TRUE(admin);
    const auto about = admin->describe("orders");
    ASSERT_TRUE(about);
    for (const auto& shard : about->shards) {
        EXPECT_EQ(
            sql->value(
                "SELECT sequence FROM millrace.millrace_shard WHERE shard = $1", {shard.shard.value()}
            ),
            std::to_string(shard.last_sequence.value_or(0))
        ) << "giving back keeps what the handlers committed";
    }
}

TEST_F(ExactlyOnce, AnOwnerThatIsStoppedBetweenItsUpdateAndCommitIsReplacedWithinTheLeaseAndASecond) {
    files.make_stream("orders", 1);
    workers.push_back(worker(url(), "4"));
    put(10);
    ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));
    workers.push_back(worker(url(), "4"));
    ASSERT_TRUE(eventually(10s, [&] {
        return sql->value("SELECT count(*) FROM millrace.millrace_worker") == "2";
    }));
    std::this_thread::sleep_for(500ms);  // it knows the other by now

    const auto first = owner();
    sql->execute("INSERT INTO slow VALUES (1)");
    put(5);
    std::string backend;
    ASSERT_TRUE(eventually(10s, [&] {
        const auto found = sql->query(
            "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event = "
            "'PgSleep'"
        );
        if (!found.empty()) backend = found[0][0].value();
        return !backend.empty();
    }));
    workers[0].signal(SIGSTOP);
    const auto stopped = clock::now();
    sql->execute("DELETE FROM slow");
    ASSERT_TRUE(eventually(2s, [&] {
        return sql->value(
                   "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND pid = $1",
                   {backend}
               ) == "1";
    })) << "the UPDATE is done and its COMMIT never sent";
    EXPECT_TRUE(eventually(30s, [&] { return !owner().empty() && owner() != first; }));
    EXPECT_LT(clock::now() - stopped, 4s + 1s);
    ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));

    workers[0].signal(SIGCONT);
    put(5);
    ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));
    std::this_thread::sleep_for(500ms);  // what the one that woke may still do
    ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));
}

TEST_F(ExactlyOnce, CommitsWhoseRepliesAreLostNeitherRepeatNorLoseAnEffect) {
    files.make_stream("orders", 2);
    support::fault_proxy proxy(support::port_of(support::services().postgres));
    auto through = url();
    const auto port = std::to_string(support::port_of(url()));
    through.replace(through.rfind(port), port.size(), std::to_string(proxy.port()));
    workers.push_back(worker(through, "5"));
    for (int i = 0; i < 5; ++i) {
        proxy.lose_reply("COMMIT");
        put(300);
        EXPECT_TRUE(proxy.lost_reply(20s));
        ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));
    }
}

TEST_F(ExactlyOnce, AFinishedShardKeepsTheHandlersCheckpoint) {
    files.make_stream("orders", 1);
    workers.push_back(worker(url(), "5"));
    put(25);
    ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));
    auto admin = local_admin::open(files.folder.file("streams.db"));
    ASSERT_TRUE(admin);
    const auto parent = sql->value("SELECT shard FROM millrace.millrace_shard");
    const auto split = admin->split("orders", shard_id(parent));
    ASSERT_TRUE(split) << split.error().detail;
    put(40);
    ASSERT_NO_FATAL_FAILURE(expect_all_counted(20s));
    EXPECT_EQ(
        sql->value(
            "SELECT sequence FROM millrace.millrace_shard WHERE shard = $1 AND finished_at IS NOT NULL",
            {parent}
        ),
        "25"
    );
}

consumer_settings handler_mode(const pipeline_files& files, const std::string& state) {
    auto settings = files.consumer("w");
    settings.state = state;
    settings.reading.checkpoints = checkpoint_writer::handler;
    settings.idle_exit = 300ms;
    return settings;
}

TEST_F(ExactlyOnce, TheRuntimeWritesNoCheckpointOfItsOwn) {
    files.make_stream("orders", 1);
    put(50);
    for (int run = 1; run <= 2; ++run) {
        receipts received;
        noting_handler handler(received);  // acknowledges, and commits nothing
        consumer one(handler_mode(files, url()), handler);
        const auto outcome = one.run();
        ASSERT_TRUE(outcome) << outcome.error().detail;
        EXPECT_EQ(outcome->records_acknowledged, 50U);
        EXPECT_EQ(outcome->records_at_risk, 0U);
        EXPECT_EQ(received.received(), 50U) << "in run " << run;
        EXPECT_EQ(owner(), "");
        EXPECT_EQ(sql->value("SELECT count(*) FROM millrace.millrace_shard WHERE sequence IS NULL"), "1");
    }
}

TEST_F(ExactlyOnce, IsRefusedWhereNothingFencesTheHandler) {
    files.make_stream("orders", 1);
    receipts received;
    noting_handler handler(received);
    const auto on_sqlite = consumer(handler_mode(files, files.state), handler).run();
    ASSERT_FALSE(on_sqlite);
    EXPECT_EQ(on_sqlite.error().code, errc::invalid_config);
    EXPECT_NE(on_sqlite.error().detail.find("state.db"), std::string::npos) << on_sqlite.error().detail;
    auto alone = handler_mode(files, url());
    alone.sharing.all_shards = true;
    const auto of_all = consumer(std::move(alone), handler).run();
    ASSERT_FALSE(of_all);
    EXPECT_EQ(of_all.error().code, errc::invalid_config);
}

}  // namespace
}  // namespace millrace::test
