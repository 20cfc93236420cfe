// Damaged files under commands that end by themselves, and a relay that has to wait: each ends, with a status
// and a message that say what is left.
#include "cli_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include <fmt/format.h>
#include <signal.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;

struct CliDamage : Cli {
    void SetUp() override {
        make_outbox();
        make_stream();
    }
    void put(int rows, const std::string& topic = "orders") const {
        std::string lines;
        for (int i = 0; i < rows; ++i)
            lines += fmt::format("{{\"topic\":\"{}\",\"key\":\"k\",\"value\":\"{}\"}}\n", topic, i);
        ok({"outbox", "put", "--outbox", outbox()}, lines);
    }
    /// Random bytes in place of the pages from `from` on, of 4 KiB; counted from the end when negative.
    void damage(const std::string& file, int from) const {
        const auto done = shell(fmt::format(
            "sqlite3 {0} 'pragma wal_checkpoint(truncate)' >/dev/null; rm -f {0}-wal {0}-shm; "
            "n=$(($(stat -c %s {0}) / 4096)); from={1}; [ $from -lt 0 ] && from=$((n + from)); "
            "dd if=/dev/urandom of={0} bs=4096 seek=$from count=$((n - from)) conv=notrunc status=none",
            file,
            from
        ));
        ASSERT_EQ(done.status, 0) << done.errors;
    }
    [[nodiscard]] static std::int64_t lines(const std::string& text) {
        return std::count(text.begin(), text.end(), '\n');
    }
    [[nodiscard]] words once() const {
        return {"relay", "--outbox", outbox(), "--sink", sink(), "--once", "--lease", "1s"};
    }
};

TEST_F(CliDamage, ARelayOnceOnADamagedOutboxEndsAtOnceWithOneAndSaysSo) {
    put(3000);
    damage("shop.db", 8);
    const auto began = std::chrono::steady_clock::now();
    const auto done = millrace(once());
    EXPECT_LT(std::chrono::steady_clock::now() - began, 15s) << "it waited for yield_after, 30s";
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("cannot read " + outbox()));
    EXPECT_THAT(done.errors, HasSubstr("the file is damaged; restore it from a backup"));
}

TEST_F(CliDamage, AnIdleExitOnADamagedStreamEndsWithOneAndTheDamage) {
    put(3000);
    ok(relay_once());
    damage("streams.db", 12);
    const auto done = millrace(consume({"--idle-exit", "0.3"}));
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("shard.read_failing"));
    EXPECT_THAT(done.errors, HasSubstr("\nmillrace: "));
    EXPECT_THAT(
        done.errors.substr(done.errors.rfind("\nmillrace: ")),
        AllOf(HasSubstr(sink()), HasSubstr("the file is damaged"))
    );
}

TEST_F(CliDamage, AMissingTableOfAStreamFinishesNoShard) {
    put(20);
    ok(relay_once());
    ASSERT_EQ(shell("sqlite3 streams.db 'alter table millrace_stream_record rename to away'").status, 0);
    const auto refused = millrace(consume({"--idle-exit", "0.3"}));
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("no such table"), HasSubstr("restore it from a backup")));
    ASSERT_EQ(shell("sqlite3 streams.db 'alter table away rename to millrace_stream_record'").status, 0);

    auto live = start(consume({"--print"}), "live");
    ASSERT_TRUE(support::eventually(15s, [&] { return lines(printed("live")) == 20; })) << said("live");
    ASSERT_EQ(shell("sqlite3 streams.db 'alter table millrace_stream_record rename to away'").status, 0);
    EXPECT_TRUE(says("live", "shard.read_failing"));
    ASSERT_EQ(shell("sqlite3 streams.db 'alter table away rename to millrace_stream_record'").status, 0);
    put(20);
    ok(relay_once());
    EXPECT_TRUE(support::eventually(30s, [&] { return lines(printed("live")) == 40; })) << said("live");
    EXPECT_THAT(said("live"), testing::Not(HasSubstr("shard.gone")));
    live.ask_to_end();
    EXPECT_TRUE(live.wait(15s));
}

TEST_F(CliDamage, AnOlderCopyOfAStreamInItsPlaceForAWhileLosesNothing) {
    put(10);
    ok(relay_once());
    ASSERT_EQ(shell("sqlite3 streams.db \".backup older.db\"").status, 0);
    ok({"stream", "split", "--stream", stream(), "--shard", "shardId-000000000000"});
    put(10);
    ok(relay_once());
    auto live = start(consume({"--print"}), "live");
    ASSERT_TRUE(support::eventually(15s, [&] { return lines(printed("live")) == 20; })) << said("live");
    ASSERT_EQ(
        shell("mv streams.db now.db; for f in wal shm; do [ ! -e streams.db-$f ] || mv streams.db-$f "
              "now.db-$f; "
              "done; mv older.db streams.db; sleep 3; rm -f streams.db*; "
              "for f in -wal -shm ''; do [ ! -e now.db$f ] || mv now.db$f streams.db$f; done")
            .status,
        0
    );
    put(40);
    ok(relay_once());
    const auto back = std::chrono::steady_clock::now();
    EXPECT_TRUE(support::eventually(60s, [&] { return lines(printed("live")) == 60; })) << said("live");
    EXPECT_LT(std::chrono::steady_clock::now() - back, 20s) << "the shards are looked for before the next "
                                                               "ordinary listing";
    live.ask_to_end();
    EXPECT_TRUE(live.wait(15s));
}

TEST_F(CliDamage, AStreamRestoredFromBeforeASplitIsReportedAndNoIdleExitLooksLikeSuccess) {
    put(10);
    ok(relay_once());
    ASSERT_EQ(shell("sqlite3 streams.db \".backup older.db\"").status, 0);
    ok({"stream", "split", "--stream", stream(), "--shard", "shardId-000000000000"});
    put(10);
    ok(relay_once());
    EXPECT_EQ(lines(ok(consume({"--print", "--idle-exit", "0.3"}))), 20);
    ASSERT_EQ(shell("rm -f streams.db*; mv older.db streams.db").status, 0);
    put(5);
    ok(relay_once());
    for (const char* idle : {"0", "0.3"}) {
        const auto done = millrace(consume({"--idle-exit", idle}));
        EXPECT_EQ(done.status, 1);
        EXPECT_THAT(
            done.errors, AllOf(HasSubstr("stream.restored"), HasSubstr("\nmillrace: shard shardId-"))
        );
        EXPECT_THAT(done.errors, HasSubstr("millrace group reset"));
    }
    const words status{"group", "status", "--stream", stream(), "--group", "g", "--state", state(), "--json"};
    const auto seen = millrace(status);
    EXPECT_EQ(seen.status, 0);
    EXPECT_THAT(seen.errors, HasSubstr("restored from a copy older than"));
    EXPECT_THAT(seen.output, AllOf(HasSubstr(R"("state":"finished")"), HasSubstr(R"("state":"gone")")));
    ok({"group", "reset", "--stream", stream(), "--group", "g", "--state", state()});
    EXPECT_EQ(lines(ok(consume({"--print", "--idle-exit", "0.3"}))), 15);
    EXPECT_EQ(millrace(status).errors, "");
}

TEST_F(CliDamage, ADamagedRowOfTheStateEndsAnIdleExitWithItsReasonAndItsAdviceWorks) {
    put(3);
    ok(relay_once());
    EXPECT_EQ(lines(ok(consume())), 3);
    ASSERT_EQ(shell("sqlite3 state.db \"update millrace_shard set parents='xx', sequence='abc'\"").status, 0);
    for (const words& more : {words{"--idle-exit", "1"}, words{"--all-shards", "--idle-exit", "1"}}) {
        const auto refused = millrace(consume(more));
        EXPECT_EQ(refused.status, 1);
        EXPECT_THAT(
            refused.errors, AllOf(HasSubstr("shard \"shardId-000000000000\""), HasSubstr("or delete the row"))
        );
    }
    const words reset{"group", "reset", "--stream", stream(), "--group", "g", "--state", state()};
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(millrace(reset).status, 1);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 3s) << "another attempt mends nothing";
    ASSERT_EQ(shell("sqlite3 state.db \"delete from millrace_shard\"").status, 0);
    EXPECT_EQ(lines(ok(consume())), 3);
}

TEST_F(CliDamage, ARowOfAWorkerThatCannotBeReadIsToldAndStopsNoOther) {
    put(3);
    ok(relay_once());
    EXPECT_EQ(lines(ok(consume())), 3);
    ASSERT_EQ(
        shell("sqlite3 state.db \"insert into millrace_worker select stream, group_name, 'wild', 'ghost', "
              "'x', 1, 10000000000, 0, 'h', 'b', 'p', 1, 1, 0 from millrace_group\"")
            .status,
        0
    );
    put(3);
    ok(relay_once());
    const auto worker = start(
        {"consume",
         "--stream",
         stream(),
         "--group",
         "g",
         "--state",
         state(),
         "--print",
         "--admin",
         "127.0.0.1:0"},
        "worker"
    );
    EXPECT_TRUE(support::eventually(15s, [&] { return lines(printed("worker")) == 3; })) << said("worker");
    EXPECT_TRUE(says("worker", "worker.unreadable"));
    const auto port = admin_port("worker");
    EXPECT_TRUE(support::eventually(15s, [&] {
        return get(port, "/readyz").find("column counter of worker \"ghost\"") != std::string::npos;
    }));
    const auto shown =
        millrace({"group", "status", "--stream", stream(), "--group", "g", "--state", state()});
    EXPECT_EQ(shown.status, 0);
    EXPECT_THAT(shown.errors, HasSubstr("column counter of worker \"ghost\""));
    EXPECT_THAT(shown.output, AllOf(HasSubstr("ghost"), HasSubstr("processing")));
    ASSERT_EQ(shell("sqlite3 state.db \"delete from millrace_worker where incarnation='wild'\"").status, 0);
    EXPECT_TRUE(support::eventually(15s, [&] {
        return get(port, "/readyz").find("200 OK") != std::string::npos;
    }));
}

TEST_F(CliDamage, ADamagedLeaseEndsARelayAtOnce) {
    ok(relay_once());
    put(3);
    ASSERT_EQ(shell("sqlite3 shop.db \"update millrace_shard set parents='xx'\"").status, 0);
    words for_ever = once();
    std::erase(for_ever, "--once");
    for (const words& command : {once(), for_ever}) {
        const auto done = millrace(command);
        EXPECT_EQ(done.status, 1);
        EXPECT_THAT(done.errors, HasSubstr("\nmillrace: cannot read the leases in " + outbox()));
    }
}

TEST_F(CliDamage, ARelayOnceSaysWhatItPublishedAndCouldNotDelete) {
    put(3);
    const std::string rule =
        "CREATE TRIGGER kept BEFORE DELETE ON outbox BEGIN SELECT RAISE(ABORT, 'kept'); END";
    ASSERT_EQ(shell("sqlite3 shop.db \"" + rule + "\"").status, 0);
    words command = once();
    command.insert(command.end(), {"--yield-after", "1s"});
    const auto done = millrace(command);
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(
        done.errors, HasSubstr("3 of them published and not deleted, so they will be repeated: cannot ")
    );
    EXPECT_THAT(done.errors, HasSubstr("kept"));
}

TEST_F(CliDamage, AGroupOfANewerProgramIsShownByNobody) {
    put(1);
    ok(relay_once());
    ok(consume());
    ASSERT_EQ(shell("sqlite3 state.db 'update millrace_group set format=2'").status, 0);
    const auto seen = millrace({"group", "status", "--stream", stream(), "--group", "g", "--state", state()});
    EXPECT_EQ(seen.status, 1);
    EXPECT_EQ(seen.output, "");
    EXPECT_THAT(seen.errors, HasSubstr("format 2"));
}

TEST_F(CliDamage, ARelayOnceBesideALiveOneSaysSoAndEndsWhenTheOutboxIsEmpty) {
    auto live = start(
        {"relay", "--outbox", outbox(), "--sink", sink(), "--lease", "1s", "--worker", "the-first"}, "live"
    );
    ASSERT_TRUE(says("live", "lease.taken"));
    const auto done = millrace(once());
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_EQ(done.output, "delivered 0 events\n");
    EXPECT_THAT(done.errors, HasSubstr("relay.behind_another outbox=" + outbox() + " leader=the-first"));
    live.ask_to_end();
    EXPECT_TRUE(live.wait(15s));
}

TEST_F(CliDamage, ARelayOnceBesideALiveOneWaitsWhileRowsAreThere) {
    ok({"outbox", "pause", "--outbox", outbox()});
    put(1);
    auto live = start({"relay", "--outbox", outbox(), "--sink", sink(), "--lease", "1s"}, "live");
    ASSERT_TRUE(says("live", "lease.taken"));
    auto second = start(once(), "second");
    ASSERT_TRUE(says("second", "relay.behind_another"));
    EXPECT_FALSE(second.wait(2500ms)) << said("second");
    ok({"outbox", "resume", "--outbox", outbox()});
    const auto ended = second.wait(15s);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0) << said("second");
    EXPECT_EQ(printed("second"), "delivered 0 events\n");
    live.ask_to_end();
    EXPECT_TRUE(live.wait(15s));
}

TEST_F(CliDamage, ARelayOnceSaysHowManyRowsWaitBecauseOfAPause) {
    put(2);
    ok({"outbox", "pause", "--outbox", outbox()});
    const auto all = millrace(relay_once());
    EXPECT_EQ(all.status, 1);
    EXPECT_EQ(all.output, "delivered 0 events\n");
    EXPECT_THAT(
        all.errors, HasSubstr("2 rows of " + outbox() + " wait, because it is paused; see millrace ")
    );

    ok({"outbox", "resume", "--outbox", outbox()});
    ok({"outbox", "pause", "--outbox", outbox(), "--topic", "bills"});
    put(1, "bills");
    const auto some = millrace(relay_once());
    EXPECT_EQ(some.status, 1);
    EXPECT_THAT(some.output, HasSubstr("delivered 2 events"));
    EXPECT_THAT(
        some.errors, HasSubstr("1 row of " + outbox() + " waits, because topic bills is paused; see")
    );
    const auto hint = "millrace outbox resume --outbox '" + outbox() + "' --topic 'bills'";
    EXPECT_THAT(some.errors, HasSubstr(hint));
    const words resume{"outbox", "resume", "--outbox", outbox()};
    EXPECT_THAT(ok(resume), HasSubstr("was not paused\nstill paused: topic bills; resume each with --topic"));
    ok({"outbox", "resume", "--outbox", outbox(), "--topic", "bills"});
    EXPECT_THAT(ok(resume), testing::EndsWith(" was not paused\n"));
}

TEST_F(CliDamage, AParkedRowIsOneRow) {
    put(1, "bills 1");
    const auto done = millrace(relay_once());
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("1 row of " + outbox() + " was parked (id 1); see"));
}

TEST_F(CliDamage, AConsumerOfAMissingStreamMakesNoState) {
    const auto done = millrace(
        {"consume", "--stream", "local:" + path("none.db") + "/orders", "--group", "g", "--state", state()}
    );
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr(path("none.db")));
    EXPECT_FALSE(std::filesystem::exists(path("state.db")));
}

}  // namespace
}  // namespace millrace::cli
