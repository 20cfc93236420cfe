#include "cli_fixture.hpp"
#include "write_lock.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

struct CliFiles : Cli {
    /// For everybody who has no more rights than a mode gives.
    void make_read_only() const { (void)shell("chmod 444 *; chmod 777 ."); }
    /// The command fails at run time and its message has all these parts.
    static void expect_failure(const support::command_result& done, const std::vector<std::string>& parts) {
        EXPECT_EQ(done.status, 1) << done.errors;
        for (const std::string& part : parts)
            EXPECT_THAT(done.errors, HasSubstr(part));
    }
};

TEST_F(CliFiles, AMissingOutboxIsNamedAsGivenAndNotMade) {
    expect_failure(millrace({"outbox", "stats", "--outbox", outbox()}), {outbox()});
    expect_failure(
        millrace({"outbox", "put", "--outbox", outbox(), "--topic", "t", "--value", "v"}), {outbox()}
    );
    EXPECT_NE(::access(path("shop.db").c_str(), F_OK), 0);
}

TEST_F(CliFiles, AMissingStreamFileOrStreamIsNamed) {
    expect_failure(millrace({"stream", "describe", "--stream", stream()}), {path("streams.db")});
    make_stream();
    expect_failure(millrace({"stream", "describe", "--stream", stream("bills")}), {"bills"});
    expect_failure(millrace({"stream", "put", "--stream", stream("bills")}, "not json\n"), {"bills"});
    expect_failure(
        millrace({"stream", "split", "--stream", stream(), "--shard", "shardId-000000000099"}),
        {"shardId-000000000099"}
    );
}

TEST_F(CliFiles, AFileThatIsNoDatabaseIsSaidToBeNone) {
    write("shop.db", std::string(5000, 'x'));
    expect_failure(millrace({"outbox", "stats", "--outbox", outbox()}), {outbox()});
    write("streams.db", std::string(5000, 'x'));
    expect_failure(millrace({"stream", "describe", "--stream", stream()}), {path("streams.db")});
}

TEST_F(CliFiles, ACorruptDatabaseIsSaidToBeCorrupt) {
    make_outbox();
    ok({"outbox", "put", "--outbox", outbox(), "--topic", "t", "--value", "v"});
    (void)shell(
        "for i in $(seq 1 20); do head -c 400 /dev/urandom | dd "
        "of=shop.db bs=1 seek=$((i * 4096 + 20)) conv=notrunc "
        "status=none; done; rm -f shop.db-*"
    );
    (void)shell(
        "head -c 3000 /dev/zero | dd of=shop.db bs=1 seek=100 "
        "conv=notrunc status=none"
    );
    expect_failure(millrace({"outbox", "stats", "--outbox", outbox()}), {outbox()});
}

TEST_F(CliFiles, AnotherTableOfTheSameNameIsRefused) {
    ASSERT_EQ(shell("sqlite3 shop.db 'CREATE TABLE outbox (a, b)'").status, 0);
    expect_failure(millrace({"outbox", "stats", "--outbox", outbox()}), {outbox(), "outbox"});
    EXPECT_NE(millrace({"outbox", "init", "--outbox", outbox()}).status, 0);
}

TEST_F(CliFiles, AReadOnlyFileIsSaidToBeReadOnly) {
    make_outbox();
    make_stream();
    ok(consume());
    make_read_only();
    const std::string advice = "is read-only for this process; check mode and owner of the file";
    const auto read_only = [&](const words& command, const std::string& file) {
        expect_failure(millrace_unprivileged(command), {file, advice});
    };
    read_only({"outbox", "put", "--outbox", outbox(), "--topic", "t", "--value", "v"}, outbox());
    read_only({"outbox", "dead", "retry", "--outbox", outbox(), "--all"}, outbox());
    read_only(relay_once(), outbox());
    read_only(relay_once(), sink());
    read_only({"stream", "put", "--stream", stream(), "--value", "v"}, sink());
    read_only({"stream", "split", "--stream", stream(), "--shard", "shardId-000000000000"}, sink());
    read_only(consume(), state());
    read_only({"group", "reset", "--stream", stream(), "--group", "g", "--state", state()}, state());
}

TEST_F(CliFiles, WhatOnlyReadsNeedsNoRightToWrite) {
    make_outbox();
    make_stream();
    ok({"outbox", "put", "--outbox", outbox(), "--topic", "no stream", "--value", "v"});
    EXPECT_EQ(millrace(relay_once()).status, 1) << "it is parked";
    ok(consume());
    make_read_only();
    for (const words& command : std::vector<words>{
             {"outbox", "stats", "--outbox", outbox()},
             {"outbox", "dead", "list", "--outbox", outbox()},
             {"outbox", "dead", "show", "--outbox", outbox(), "1"},
             {"stream", "describe", "--stream", stream()},
             {"group", "status", "--stream", stream(), "--group", "g", "--state", state()}}) {
        const auto done = millrace_unprivileged(command);
        EXPECT_EQ(done.status, 0) << command[0] << ' ' << command[1] << ": " << done.errors;
        EXPECT_NE(done.output, "");
    }
}

TEST_F(CliFiles, WhatOnlyReadsInAFolderThatTakesNoFilesIsToldWhyAndWhatToDo) {
    make_outbox();
    make_stream();
    ok(consume());
    (void)shell("rm -f *-wal *-shm; chmod 444 *; chmod 755 .");
    for (const auto& [command, file] : std::vector<std::pair<words, std::string>>{
             {{"outbox", "stats", "--outbox", outbox()}, outbox()},
             {{"outbox", "dead", "list", "--outbox", outbox()}, outbox()},
             {{"stream", "describe", "--stream", stream()}, sink()},
             {{"group", "status", "--stream", stream(), "--group", "g", "--state", state()}, state()}})
        expect_failure(
            millrace_unprivileged(command),
            {"cannot read " + file + ": no process has it open", "let it write to the directory"}
        );
}

TEST_F(CliFiles, AFileThatMayNotBeOpenedEndsTheStartOfARelayAndOfAConsumer) {
    make_outbox();
    make_stream();
    ok(consume());
    (void)shell("chmod 777 .");
    words relay_for_ever = relay_once();
    std::erase(relay_for_ever, "--once");
    const auto shut = [&](const std::string& file, const std::vector<words>& commands, const std::string& name
                      ) {
        (void)shell("chmod 666 *; chmod 000 " + file);
        for (const words& command : commands)
            expect_failure(millrace_unprivileged(command), {name, "mode and owner of the file"});
    };
    shut("shop.db", {relay_once(), relay_for_ever}, outbox());
    shut("streams.db", {relay_once(), relay_for_ever, consume(), consume({})}, sink());
    shut("state.db", {consume(), consume({})}, state());
}

TEST_F(CliFiles, ADamagedSinkOrStateEndsTheStartOfARelayAndOfAConsumer) {
    make_outbox();
    make_stream();
    write("broken.db", std::string(5000, 'x'));
    words relay_for_ever{
        "relay", "--outbox", outbox(), "--sink", "local:" + path("broken.db"), "--log-level", "warning"};
    expect_failure(millrace(relay_for_ever), {path("broken.db"), "not a SQLite database"});
    relay_for_ever.push_back("--once");
    expect_failure(millrace(relay_for_ever), {path("broken.db"), "not a SQLite database"});
    expect_failure(
        millrace({"consume", "--stream", stream(), "--group", "g", "--state", "sqlite:" + path("broken.db")}),
        {path("broken.db"), "not a SQLite database"}
    );
}

TEST_F(CliFiles, AConsumerReadsAStreamThatItMayNotWrite) {
    make_stream();
    ok({"stream", "put", "--stream", stream(), "--value", "v"});
    (void)shell("chmod 444 streams.db; chmod 777 .");
    words command = consume();
    const auto done = millrace_unprivileged(command);
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_THAT(done.output, HasSubstr("\"data\":\"v\""));
}

TEST_F(CliFiles, AFolderThatTakesNoFileIsNamed) {
    make_outbox();
    (void)shell("mkdir shut; chmod 755 . shut; chmod 644 shop.db");
    expect_failure(
        millrace_unprivileged({"outbox", "init", "--outbox", "sqlite:" + path("shut/new.db")}),
        {path("shut/new.db"), "check"}
    );
    expect_failure(
        millrace_unprivileged(
            {"stream", "create", "--stream", "local:" + path("shut/s.db") + "/o", "--shards", "1"}
        ),
        {path("shut/s.db"), "check"}
    );
    // The file is nobody's, yet the files that SQLite keeps beside it can be made by nobody else.
    (void)shell("cp shop.db shut/; chmod 666 shut/shop.db");
    expect_failure(
        millrace_unprivileged(
            {"outbox", "put", "--outbox", "sqlite:" + path("shut/shop.db"), "--topic", "t", "--value", "v"}
        ),
        {path("shut/shop.db"), "directory"}
    );
}

TEST_F(CliFiles, AFolderOrADeviceInPlaceOfAFileIsNamed) {
    make_outbox();
    make_stream();
    (void)shell("mkdir folder");
    for (const auto& [file, what] :
         {std::pair{path("folder"), "it is a directory; name a file"},
          std::pair{std::string("/dev/null"), "it is a device, a pipe or a socket; name a file"}}) {
        const std::string sqlite = "sqlite:" + file;
        const std::string local = "local:" + file;
        for (const words& command : std::vector<words>{
                 {"outbox", "init", "--outbox", sqlite},
                 {"outbox", "stats", "--outbox", sqlite},
                 {"relay", "--outbox", sqlite, "--sink", sink(), "--once"},
                 {"relay", "--outbox", outbox(), "--sink", local, "--once"},
                 {"stream", "create", "--stream", local + "/o", "--shards", "1"},
                 {"stream", "describe", "--stream", local + "/o"},
                 {"consume", "--stream", local + "/o", "--group", "g", "--state", state()},
                 {"consume", "--stream", stream(), "--group", "g", "--state", sqlite},
                 {"group", "status", "--stream", stream(), "--group", "g", "--state", sqlite}})
            expect_failure(millrace(command), {file, what});
    }
}

TEST_F(CliFiles, ALockedFileIsSaidToBeLocked) {
    make_outbox();
    const write_lock lock(path("shop.db"));
    expect_failure(
        millrace({"outbox", "put", "--outbox", outbox(), "--topic", "t", "--value", "v", "--wait", "100ms"}),
        {outbox() + ": database is locked", "end or shorten that transaction"}
    );
}

TEST_F(CliFiles, AResetOfALockedStateWaitsAsLongAsAskedAndSaysForWhat) {
    make_stream();
    ok(consume());
    const write_lock lock(path("state.db"));
    const auto begun = std::chrono::steady_clock::now();
    expect_failure(
        millrace(
            {"group", "reset", "--stream", stream(), "--group", "g", "--state", state(), "--wait", "500ms"}
        ),
        {"waiting: cannot write " + state() + ": database is locked",
         "\nmillrace: cannot write " + state() + ": database is locked"}
    );
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{5});
}

TEST_F(CliFiles, AReleaseAndAResetOfALockedStateEndSoonAfterTheirWait) {
    make_stream();
    ok(consume());
    auto live = start(consume({"--worker", "the-first"}), "live");
    ASSERT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        return ok({"group", "status", "--stream", stream(), "--group", "g", "--state", state()})
                   .find("the-first") != std::string::npos;
    }));
    const write_lock lock(path("state.db"));
    const words of_group{"--stream", stream(), "--group", "g", "--state", state(), "--wait", "1s"};
    for (words command :
         {words{"group", "release", "--worker", "the-first"}, words{"group", "reset", "--force"}}) {
        command.insert(command.end(), of_group.begin(), of_group.end());
        const auto begun = std::chrono::steady_clock::now();
        expect_failure(millrace(command), {"cannot write " + state() + ": database is locked"});
        EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds{1'900}) << command[1];
    }
}

TEST_F(CliFiles, InitObeysItsWaitWhileAReaderKeepsTheFileFromItsLog) {
    ASSERT_EQ(shell("sqlite3 shop.db 'CREATE TABLE a (b); INSERT INTO a VALUES (1)'").status, 0);
    sqlite3* reader = nullptr;
    ASSERT_EQ(sqlite3_open(path("shop.db").c_str(), &reader), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT * FROM a", nullptr, nullptr, nullptr), SQLITE_OK);
    const auto begun = std::chrono::steady_clock::now();
    expect_failure(
        millrace({"outbox", "init", "--outbox", outbox(), "--wait", "300ms"}),
        {outbox() + ": database is locked"}
    );
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{3});
    sqlite3_close(reader);
}

TEST_F(CliFiles, ATopicWithoutAStreamIsNamed) {
    make_outbox();
    make_stream();
    ok({"outbox", "put", "--outbox", outbox(), "--topic", "bills", "--key", "1", "--value", "v"});
    words command = relay_once();
    command.insert(command.end(), {"--yield-after", "1s"});
    const auto done = millrace(command);
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("bills"));
}

TEST_F(CliFiles, ASinkWithAStreamBehindItsFileIsToldTheFileAlone) {
    make_outbox();
    make_stream();
    expect_failure(
        millrace({"relay", "--outbox", outbox(), "--sink", stream(), "--once"}),
        {"\"" + path("streams.db") + "\" is a file",
         "a sink is the file alone, " + sink() + ", and the topic"}
    );
}

TEST_F(CliFiles, AFileThatMayNotGrowIsSaidToBeFull) {
    make_outbox();
    const std::string put =
        "trap '' XFSZ; ulimit -f {}; $M outbox put --outbox sqlite:shop.db --topic t --value v";
    const std::string advice = "the size limit of the database is full; make room";
    // The file -shm, then the log: SQLite calls both a failed disk.
    expect_failure(shell(fmt::format(fmt::runtime(put), 8)), {advice});
    expect_failure(
        shell(fmt::format(fmt::runtime(put), 64) + "$(head -c 100000 /dev/zero | tr '\\0' x)"), {advice}
    );
    EXPECT_THAT(ok({"outbox", "stats", "--outbox", outbox(), "--json"}), HasSubstr("\"backlog\":0"));
}

TEST_F(CliFiles, BothMissingFilesOfARelayAreReported) {
    const auto done = millrace(relay_once());
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, AllOf(HasSubstr(outbox()), HasSubstr(sink())));
}

TEST_F(CliFiles, AMissingStreamAndMissingDeadLettersAreReported) {
    for (const std::string& dead : {"sqlite:" + path("dead.db"), "local:" + path("dead.db") + "/letters"}) {
        const auto done = millrace(consume({"--on-failure", "dead-letter=" + dead}));
        EXPECT_EQ(done.status, 1);
        EXPECT_THAT(done.errors, AllOf(HasSubstr(sink()), HasSubstr(path("dead.db"))));
    }
}

TEST_F(CliFiles, DeadLettersWithoutAStreamAreReported) {
    make_stream();
    const auto done = millrace(consume({"--on-failure", "dead-letter=" + stream("letters")}));
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("letters"));
}

TEST_F(CliFiles, AnUnknownGroupIsAnsweredWithTheNearestOne) {
    make_stream();
    ok(consume());
    ok({"consume", "--stream", stream(), "--group", "billing", "--state", state(), "--idle-exit", "0.1"});
    for (const char* verb : {"status", "reset"}) {
        const auto look = [&](const std::string& group) {
            return millrace({"group", verb, "--stream", stream(), "--group", group, "--state", state()});
        };
        EXPECT_EQ(look("billing").status, 0) << verb;
        expect_failure(
            look("biling"), {state(), "knows no group \"biling\" of stream orders; did you mean \"billing\"?"}
        );
        expect_failure(look("other"), {"knows no group \"other\" of stream orders; it knows billing, g"});
    }
}

TEST_F(CliFiles, AForeignTableInPlaceOfAStreamOrAStateIsRefused) {
    make_stream();
    for (const char* table : {"millrace_meta", "millrace_group", "millrace_worker", "millrace_shard"}) {
        (void)shell("rm -f state.db*; sqlite3 state.db 'CREATE TABLE " + std::string(table) + " (a, b)'");
        expect_failure(
            millrace(consume()),
            {"the table " + std::string(table) + " in " + state(), "is not one of Millrace: it lacks"}
        );
    }
    for (const char* table :
         {"millrace_stream", "millrace_stream_format", "millrace_stream_shard", "millrace_stream_record"}) {
        (void)shell("rm -f s.db*; sqlite3 s.db 'CREATE TABLE " + std::string(table) + " (a, b)'");
        expect_failure(
            millrace({"stream", "create", "--stream", "local:" + path("s.db") + "/o", "--shards", "1"}),
            {"the table " + std::string(table) + " in local:" + path("s.db"), "is not one of Millrace"}
        );
    }
}

TEST_F(CliFiles, AMissingStateIsNotMadeByLookingAtIt) {
    make_stream();
    const auto done = millrace({"group", "status", "--stream", stream(), "--group", "g", "--state", state()});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr(state()));
    EXPECT_NE(::access(path("state.db").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace millrace::cli
