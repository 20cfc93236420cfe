#include "cli_fixture.hpp"

#include <algorithm>
#include <chrono>

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;

struct CliPipeline : Cli {
    void SetUp() override {
        make_outbox();
        make_stream("2");
    }
    void put(const std::string& key, const std::string& value) const {
        ok({"outbox", "put", "--outbox", outbox(), "--topic", "orders", "--key", key, "--value", value});
    }
    static words with_info(words command) {
        std::replace(command.begin(), command.end(), std::string("warning"), std::string("info"));
        return command;
    }
    static std::size_t lines(const std::string& text) {
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }
};

TEST_F(CliPipeline, AnIdleExitAwaitsWhetherAllShardsMayBeTaken) {
    auto worker = start(with_info(consume({"--worker", "w1"})), "w1");
    ASSERT_TRUE(says("w1", "lease.taken"));
    const auto refused = millrace(consume({"--all-shards", "--idle-exit", "0.1"}));
    EXPECT_EQ(refused.status, 1) << refused.errors;
    EXPECT_THAT(refused.errors, HasSubstr("worker \"w1\" (process " + std::to_string(worker.pid())));
    worker.ask_to_end();
    ASSERT_TRUE(worker.wait(15s));
    EXPECT_EQ(millrace(consume({"--all-shards", "--idle-exit", "0.1"})).status, 0);
}

TEST_F(CliPipeline, AnIdleExitAwaitsWhetherTheWorkerIdIsFree) {
    const auto as_w1 = [&](words more) {
        const words name{"--worker", "w1", "--lease", "3s"};
        more.insert(more.end(), name.begin(), name.end());
        return consume(std::move(more));
    };
    auto worker = start(with_info(as_w1({})), "w1");
    ASSERT_TRUE(says("w1", "lease.taken"));
    const auto refused = millrace(as_w1({"--idle-exit", "0.1"}));
    EXPECT_EQ(refused.status, 1) << refused.errors;
    EXPECT_THAT(
        refused.errors,
        AllOf(
            HasSubstr("worker id \"w1\" is in use by process " + std::to_string(worker.pid())),
            HasSubstr("so process ")
        )
    );
    worker.signal(SIGKILL);
    ASSERT_TRUE(worker.wait(15s));
    EXPECT_EQ(millrace(as_w1({"--idle-exit", "0.1"})).status, 0) << "a killed one leaves its id";
}

TEST_F(CliPipeline, AnEventGoesFromTheOutboxToStandardOutput) {
    ok({"outbox",
        "put",
        "--outbox",
        outbox(),
        "--topic",
        "orders",
        "--key",
        "42",
        "--value",
        "paid",
        "--header",
        "a=b"});
    ok({"outbox", "put", "--outbox", outbox(), "--topic", "orders", "--key", "42", "--null-value"});
    ok(relay_once());
    EXPECT_THAT(
        ok({"outbox", "stats", "--outbox", outbox(), "--json"}),
        testing::StartsWith("{\"backlog\":0,\"oldest_age_s\":null,\"dead\":0")
    );
    const std::string out = ok(consume({"--print", "--worker", "w1", "--idle-exit", "0.2"}));
    EXPECT_EQ(lines(out), 2U);
    EXPECT_THAT(
        out,
        testing::ContainsRegex("\\{\"stream\":\"orders\",\"shard\":\"shardId-00000000000[01]\","
                               "\"sequence\":\"[0-9]+\",\"sub_sequence\":0,\"key\":\"42\",\"data\":"
                               "\"paid\",\"headers\":\\[\\[\"a\",\"b\"\\]\\],\"arrival\":\"[-0-9T:.]"
                               "+Z\",\"worker\":\"w1\",\"epoch\":[0-9]+\\}")
    );
    EXPECT_THAT(out, HasSubstr("\"key\":\"42\",\"data\":null,\"headers\":[]"));
    EXPECT_EQ(ok(consume()), "") << "a record was printed twice";
}

TEST_F(CliPipeline, AClosedOutputAcknowledgesNothingMoreAndExitsOne) {
    std::string input;
    for (int i = 0; i < 5000; ++i)
        input += "{\"key\":\"" + std::to_string(i) + "\",\"value\":\"" + std::string(200, 'x') + "\"}\n";
    ok({"stream", "put", "--stream", stream()}, input);
    const auto done = shell(
        "set -o pipefail; $M consume --stream local:streams.db/orders "
        "--group g --state sqlite:state.db --print --log-level off 2>err | "
        "head -n 1 >/dev/null; echo ${PIPESTATUS[0]}"
    );
    EXPECT_EQ(done.output, "1\n");
    EXPECT_THAT(support::read_file(path("err")), HasSubstr("standard output cannot be written"));
    EXPECT_GT(lines(ok(consume())), 4000U - 1000U) << "records were acknowledged that nobody can have read";
}

TEST_F(CliPipeline, ASignalStopsCleanlyAndAtOnce) {
    for (const int signal : {SIGTERM, SIGINT}) {
        support::process relay = start({"relay", "--outbox", outbox(), "--sink", sink()}, "relay");
        support::process consumer = start(consume({"--print"}), "consumer");
        const std::size_t before = lines(support::read_file(path("consumer.out")));
        put("1", "v");
        ASSERT_TRUE(support::eventually(10s, [&] {
            return lines(support::read_file(path("consumer.out"))) > before;
        }));
        const auto begin = std::chrono::steady_clock::now();
        relay.signal(signal);
        consumer.signal(signal);
        const auto relay_end = relay.wait(8s);
        const auto consumer_end = consumer.wait(8s);
        ASSERT_TRUE(relay_end && consumer_end);
        EXPECT_EQ(relay_end->status, 0) << support::read_file(path("relay.err"));
        EXPECT_EQ(consumer_end->status, 0) << support::read_file(path("consumer.err"));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
    }
}

TEST_F(CliPipeline, AClosedOutputPutsNothingAmongTheDeadLetters) {
    ok({"stream", "put", "--stream", stream(), "--key", "1", "--value", "v"});
    ok({"stream", "create", "--stream", stream("dead"), "--shards", "1"});
    for (const std::string to : {"local:streams.db/dead", "sqlite:shop.db"}) {
        // One record a call, given up at its first failure: the worst case.
        const auto done = shell(
            "exec 2>err; $M consume --stream local:streams.db/orders --group g --state sqlite:state.db "
            "--print "
            "--log-level off --batch-records 1 --dead-letter-after 1 --on-failure dead-letter=" +
            to + " >&-"
        );
        EXPECT_EQ(done.status, 1);
        EXPECT_THAT(support::read_file(path("err")), HasSubstr("standard output cannot be written"));
    }
    EXPECT_THAT(ok({"stream", "describe", "--stream", stream("dead"), "--json"}), HasSubstr("\"records\":0"));
    EXPECT_THAT(ok({"outbox", "stats", "--outbox", outbox(), "--json"}), HasSubstr("\"backlog\":0"));
    EXPECT_EQ(lines(ok(consume())), 1U);
}

TEST_F(CliPipeline, ASecondSignalEndsAtOnce) {
    std::string input;
    for (int i = 0; i < 2000; ++i)
        input += "{\"key\":\"1\",\"value\":\"" + std::string(200, 'x') + "\"}\n";
    ok({"stream", "put", "--stream", stream()}, input);
    // Nobody reads the pipe, so the handler cannot return before its patience ends.
    ASSERT_EQ(shell("mkfifo pipe").status, 0);
    const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    words command = consume({"--print", "--drain-limit", "60s"});
    command.insert(command.begin(), MILLRACE_PROGRAM);
    support::process consumer(
        command, {.input = {}, .output = path("pipe"), .errors = path("err"), .environment = {}}
    );
    int full = 0;
    ASSERT_TRUE(support::eventually(10s, [&] {
        return ::ioctl(reader, FIONREAD, &full) == 0 && full >= 60'000;
    }));
    consumer.ask_to_end();
    EXPECT_FALSE(consumer.wait(300ms)) << support::read_file(path("err"));
    consumer.signal(SIGTERM);
    const auto end = consumer.wait(2s);
    ::close(reader);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, 128 + SIGTERM);
}

TEST_F(CliPipeline, ADoubledWorkerIdNamesBoth) {
    support::process first = start(consume({"--worker", "twin"}), "first");
    ASSERT_TRUE(support::eventually(10s, [&] {
        const auto status =
            millrace({"group", "status", "--stream", stream(), "--group", "g", "--state", state(), "--json"});
        return status.output.find("\"owner\":\"twin\"") != std::string::npos;
    }));
    support::process second = start(consume({"--worker", "twin"}), "second");
    const auto end = second.wait(20s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, 1);
    const std::string said = support::read_file(path("second.err"));
    EXPECT_THAT(said, HasSubstr("twin"));
    EXPECT_THAT(said, HasSubstr(std::to_string(first.pid())));
    EXPECT_THAT(said, HasSubstr(std::to_string(second.pid())));
    EXPECT_TRUE(first.running());
}

TEST_F(CliPipeline, CountsArePrintedAtTheEnd) {
    for (const std::string key : {"1", "2", "3"})
        put(key, "v");
    EXPECT_THAT(ok(relay_once()), testing::ContainsRegex("^delivered 3 events in [0-9.]+s, [0-9]+/s\n$"));
    EXPECT_EQ(ok(relay_once()), "delivered 0 events\n");
    EXPECT_THAT(
        ok(consume({"--idle-exit", "0.2"})), testing::ContainsRegex("^3 records in [0-9.]+s, [0-9]+/s\n$")
    );
    EXPECT_THAT(
        ok(consume({"--idle-exit", "0.2", "--json"})),
        testing::StartsWith(R"({"records":0,"bytes":0,"gaps":0,"seconds":0.000,"per_second":0.0})")
    );
    words json = relay_once();
    json.emplace_back("--json");
    EXPECT_THAT(ok(json), testing::StartsWith(R"({"delivered":0,"parked":0,"retried":0,"seconds":0.000,)"));
}

TEST_F(CliPipeline, GroupStatusShowsOwnersAndCheckpoints) {
    put("1", "v");
    ok(relay_once());
    ok(consume());
    const std::string json =
        ok({"group", "status", "--stream", stream(), "--group", "g", "--state", state(), "--json"});
    EXPECT_THAT(json, HasSubstr("\"workers\":[]"));
    EXPECT_THAT(
        json,
        testing::ContainsRegex("\"shard\":\"shardId-000000000000\",\"state\":\"free\","
                               "\"owner\":null,\"epoch\":1")
    );
    EXPECT_THAT(
        json, testing::ContainsRegex("\"checkpoint\":\\{\"sequence\":\"[0-9]+\",\"sub_sequence\":0\\}")
    );
    EXPECT_THAT(json, HasSubstr("\"checkpoint\":null"));
    EXPECT_THAT(
        ok({"group", "status", "--stream", stream(), "--group", "g", "--state", state()}), HasSubstr("free")
    );
}

TEST_F(CliPipeline, DescribeShowsShardsAndTheirParents) {
    ok({"stream", "split", "--stream", stream(), "--shard", "shardId-000000000000"});
    const std::string json = ok({"stream", "describe", "--stream", stream(), "--json"});
    EXPECT_THAT(json, testing::StartsWith("{\"stream\":\"orders\","));
    EXPECT_THAT(
        json,
        HasSubstr("{\"shard\":\"shardId-000000000000\",\"parents\":[],\"hash_"
                  "from\":\"0\",\"hash_to\":"
                  "\"170141183460469231731687303715884105727\",\"closed\":true")
    );
    EXPECT_THAT(
        json,
        HasSubstr("{\"shard\":\"shardId-000000000003\",\"parents\":"
                  "[\"shardId-000000000000\"],")
    );
}

TEST_F(CliPipeline, ParkedRowsAreListedAndPutBack) {
    ok({"outbox", "put", "--outbox", outbox(), "--topic", "bills 1", "--key", "7", "--value", "v"});
    const auto relayed = millrace(relay_once());
    EXPECT_EQ(relayed.status, 1);
    const std::string dead = ok({"outbox", "dead", "list", "--outbox", outbox(), "--json"});
    EXPECT_THAT(dead, testing::StartsWith("[{\"id\":1,\"topic\":\"bills 1\",\"key\":\"7\",\"reason\":\""));
    EXPECT_THAT(ok({"outbox", "dead", "show", "--outbox", outbox(), "1"}), HasSubstr("\"value\":\"v\""));
    EXPECT_EQ(ok({"outbox", "dead", "retry", "--outbox", outbox(), "--id", "1"}), "put back 1 event\n");
    EXPECT_EQ(millrace(relay_once()).status, 1) << "no stream can have that name, so it comes back";
    ok({"outbox", "dead", "drop", "--outbox", outbox(), "--id", "1"});
    const auto none = millrace({"outbox", "dead", "drop", "--outbox", outbox(), "--id", "1"});
    EXPECT_EQ(none.status, 1);
}

TEST_F(CliPipeline, TheAdminPortAnswers) {
    support::process relay =
        start({"relay", "--outbox", outbox(), "--sink", sink(), "--admin", "127.0.0.1:0"}, "relay");
    const auto port = admin_port("relay");
    const auto page = [&](const std::string& which) { return get(port, which); };
    EXPECT_THAT(page("/healthz"), HasSubstr("200 OK"));
    EXPECT_TRUE(support::eventually(5s, [&] { return page("/readyz").find("200 OK") != std::string::npos; }));
    EXPECT_THAT(page("/metrics"), HasSubstr("millrace_relay_published_total 0"));
    EXPECT_THAT(page("/status"), HasSubstr("\"relay_leading\":"));
    EXPECT_THAT(page("/statsu"), AllOf(HasSubstr("404"), HasSubstr("did you mean")));
}

}  // namespace
}  // namespace millrace::cli
