// The commands on a stream of Kinesis, which a stand-in in this process serves.
#include "cli_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/kinesis_fake/server.hpp"

#include <cstdlib>

namespace millrace::cli {
namespace {

struct CliKinesis : Cli {
    CliKinesis() {
        ::setenv("AWS_ACCESS_KEY_ID", "AKIDFAKE", 1);
        ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    }

    [[nodiscard]] words on(const std::string& stream, words command, const words& more = {}) const {
        command.insert(command.end(), {"--stream", fake.url(stream)});
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }

    kinesis_fake::server fake;
};

TEST_F(CliKinesis, WhatEndsByItselfNamesAStreamThatIsMissingAndWhatToDo) {
    const words place{"--group", "g", "--state", state()};
    fake.with([](auto in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    ok(on("orders", {"consume", "--group", "g", "--state", state(), "--idle-exit", "0"}));
    for (const auto& command : {
             on("ordres", {"consume", "--idle-exit", "1h", "--log-level", "off"}, place),
             on("ordres", {"group", "status"}, place),
             on("ordres", {"group", "reset"}, place),
             on("ordres", {"stream", "describe"}),
             on("ordres", {"stream", "put", "--key", "k", "--value", "v"}),
             on("ordres", {"stream", "split", "--shard", "shardId-000000000000"}),
         }) {
        const auto done = millrace(command);
        EXPECT_EQ(done.status, 1) << command[0] << ' ' << command[1];
        EXPECT_THAT(
            done.errors, AllOf(HasSubstr("ordres"), HasSubstr("create it, or check name, region and account"))
        ) << command[0]
          << ' ' << command[1];
    }
}

TEST_F(CliKinesis, WhileTheStreamDoesNotAnswerStatusShowsTheStateAndAnIdleExitWaitsHalfAMinuteAtMost) {
    const words place{"--group", "g", "--state", state()};
    fake.with([](auto in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    ok(on("orders", {"stream", "put", "--key", "k", "--value", "v"}));
    ok(on("orders", {"consume", "--idle-exit", "0"}, place));
    const auto whole = fake.url("orders");
    const auto away = whole.substr(0, whole.find("endpoint=")) + "endpoint=http://127.0.0.1:1";
    const words group{"--stream", away, "--group", "g", "--state", state()};

    words command{"group", "status"};
    command.insert(command.end(), group.begin(), group.end());
    const auto shown = millrace(command);
    EXPECT_EQ(shown.status, 0) << shown.errors;
    EXPECT_THAT(shown.errors, AllOf(HasSubstr("the stream does not answer"), HasSubstr("127.0.0.1:1")));
    EXPECT_THAT(shown.output, AllOf(HasSubstr("shardId-000000000000"), HasSubstr("free")));

    command = {"consume", "--idle-exit", "1"};
    command.insert(command.end(), group.begin(), group.end());
    const auto began = std::chrono::steady_clock::now();
    auto job = start(command, "job");
    const auto ended = job.wait(std::chrono::seconds{90});
    ASSERT_TRUE(ended);
    EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds{30});
    EXPECT_EQ(ended->status, 1);
    EXPECT_THAT(said("job"), AllOf(HasSubstr("nothing could be done for 30 s"), HasSubstr("127.0.0.1:1")));
}

TEST_F(CliKinesis, AStreamThatHangsIsSaidWithinSecondsAndIdleExitKeepsItsTime) {
    const words place{"--group", "g", "--state", state()};
    fake.with([](auto in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    ok(on("orders", {"consume", "--idle-exit", "0"}, place));
    support::fault_proxy hanging;
    hanging.hold();
    const auto host = "127.0.0.1:" + std::to_string(hanging.port());
    const auto whole = fake.url("orders");
    const auto away = whole.substr(0, whole.find("endpoint=")) + "endpoint=http://" + host;
    const auto at = [&](words command, const words& more = {}) {
        for (const auto* part : {&place, &more})
            command.insert(command.end(), part->begin(), part->end());
        command.insert(command.end(), {"--stream", away});
        return command;
    };

    using clock = std::chrono::steady_clock;
    const auto began = clock::now();
    auto job = start(at({"consume"}, {"--idle-exit", "1", "--admin", "127.0.0.1:0"}), "job");
    const auto shown = millrace(at({"group", "status"}));
    EXPECT_LT(clock::now() - began, std::chrono::seconds{12});
    EXPECT_EQ(shown.status, 0) << shown.errors;
    EXPECT_THAT(shown.errors, AllOf(HasSubstr("the stream does not answer"), HasSubstr(host)));
    ASSERT_TRUE(says("job", "stream.list_failed"));
    EXPECT_THAT(said("job"), HasSubstr(host));
    EXPECT_LT(clock::now() - began, std::chrono::seconds{12});
    const auto port = admin_port("job");
    EXPECT_TRUE(support::eventually(std::chrono::seconds{5}, [&] {
        return get(port, "/readyz").find(host) != std::string::npos;
    })) << get(port, "/readyz");

    const auto ended = job.wait(std::chrono::seconds{60});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 1);
    EXPECT_GE(clock::now() - began, std::chrono::seconds{30});
    EXPECT_LT(clock::now() - began, std::chrono::seconds{40});
    EXPECT_THAT(said("job"), HasSubstr("nothing could be done for 30 s"));
}

TEST_F(CliKinesis, OfABatchThatWasStoredInPartItIsSaidHowMuchOfIt) {
    fake.with([](auto in) {
        ASSERT_TRUE(in.model.create("orders", 1));
        in.faults.add(
            {.what = kinesis_fake::fault::access_denied, .operation = "PutRecords", .per_mille = 200}
        );
    });
    // A call takes a key once, so that these are calls of their own, and one of them is refused.
    std::string lines;
    for (int i = 0; i < 100; ++i)
        lines += "{\"key\":\"k\",\"value\":\"v\"}\n";
    auto command = on("orders", {"stream", "put"});
    command.insert(command.begin(), MILLRACE_PROGRAM);
    const auto done = support::run(command, lines);
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(
        done.errors,
        AllOf(
            HasSubstr("it is not known whether lines 1 to 100 were written; look before you send them again"),
            HasSubstr(" of the 100 events of this batch are stored")
        )
    );
}

TEST_F(CliKinesis, AConsumerThatRunsOnWaitsForItsStreamAndReadyzSaysSo) {
    const auto consumer = start(
        on("orders", {"consume", "--group", "g", "--state", state(), "--print", "--admin", "127.0.0.1:0"}),
        "consumer"
    );
    ASSERT_TRUE(says("consumer", "stream.list_failed"));
    const auto port = admin_port("consumer");
    const auto ready = [&] { return get(port, "/readyz"); };
    EXPECT_TRUE(support::eventually(std::chrono::seconds{5}, [&] {
        return ready().find("create it") != std::string::npos;
    }));
    EXPECT_THAT(ready(), AllOf(HasSubstr("503"), HasSubstr("orders")));
    fake.with([](auto in) {
        ASSERT_TRUE(in.model.create("orders", 1));
        in.model.append("orders", "k", "v");
    });
    EXPECT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        return printed("consumer").find("shardId-000000000000") != std::string::npos;
    }));
    EXPECT_TRUE(support::eventually(std::chrono::seconds{5}, [&] {
        return ready().find("200") != std::string::npos;
    }));
}

TEST_F(CliKinesis, WhatCanNeverWorkIsSaidAtTheStartInsteadOfAwaited) {
    fake.with([](auto in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    const words place{"--group", "g", "--state", state(), "--log-level", "off"};

    auto tls = fake.url("orders");
    tls.replace(tls.find("http"), 4, "https");
    ::setenv("AWS_CA_BUNDLE", path("missing.pem").c_str(), 1);
    const auto untrusted =
        millrace({"consume", "--stream", tls, "--group", "g", "--state", state(), "--log-level", "off"});
    ::unsetenv("AWS_CA_BUNDLE");
    EXPECT_EQ(untrusted.status, 1);
    EXPECT_THAT(untrusted.errors, HasSubstr("AWS_CA_BUNDLE"));

    write("config", "[default]\ncredential_process = " + path("missing") + "\n");
    ::unsetenv("AWS_ACCESS_KEY_ID");
    ::unsetenv("AWS_SECRET_ACCESS_KEY");
    ::setenv("AWS_CONFIG_FILE", path("config").c_str(), 1);
    const auto keyless = millrace(on("orders", {"consume"}, place));
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDFAKE", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    ::unsetenv("AWS_CONFIG_FILE");
    EXPECT_EQ(keyless.status, 1);
    EXPECT_THAT(keyless.errors, HasSubstr("credential_process"));
}

TEST_F(CliKinesis, WithoutShardsItEndsSoonAlsoWhenItsStateDoesNotAnswer) {
    fake.with([](auto in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    auto consumer = start(
        on("orders",
           {"consume", "--group", "g", "--state", "dynamodb://eu-west-1/leases?endpoint=http://127.0.0.1:1"}),
        "consumer"
    );
    ASSERT_TRUE(says("consumer", "session.heartbeat_failed"));
    const auto asked = std::chrono::steady_clock::now();
    consumer.ask_to_end();
    const auto ended = consumer.wait(std::chrono::seconds{20});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0) << said("consumer");
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds{5});
}

TEST_F(CliKinesis, TheAdminPortTellsOfReadsAndOfEachShard) {
    fake.with([](auto in) {
        ASSERT_TRUE(in.model.create("orders", 2));
        in.model.append("orders", "k", "v");
    });
    const auto consumer = start(
        on("orders", {"consume", "--group", "g", "--state", state(), "--print", "--admin", "127.0.0.1:0"}),
        "consumer"
    );
    const auto port = admin_port("consumer");
    std::string page;
    EXPECT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        page = get(port, "/metrics");
        return page.find("millrace_consumer_records_acknowledged_total 1") != std::string::npos &&
               page.find("millrace_shard_reads_total{shard=\"shardId-000000000001\"}") != std::string::npos;
    })) << page;
    for (const auto* name :
         {"millrace_consumer_reads_total ",
          "millrace_consumer_reads_throttled_total 0",
          "millrace_consumer_aggregates_total 0",
          "millrace_consumer_handler_seconds_total ",
          "millrace_consumer_leases_taken_total 2",
          "millrace_consumer_blocked_seconds 0",
          "millrace_consumer_retention_left_seconds ",
          "millrace_shard_retention_left_seconds{shard=\"shardId-000000000000\"} "})
        EXPECT_THAT(page, HasSubstr(name));
}

TEST_F(CliKinesis, AWorkerIsReleasedByItsName) {
    fake.with([](auto in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    const words place{"--group", "g", "--state", state()};
    const auto consumer =
        start(on("orders", {"consume", "--worker", "w1", "--lease", "5s", "--print"}, place), "consumer");
    ASSERT_TRUE(says("consumer", "lease.taken"));
    const auto unknown = millrace(on("orders", {"group", "release", "--worker", "w2"}, place));
    EXPECT_EQ(unknown.status, 1);
    EXPECT_THAT(unknown.errors, HasSubstr("w1"));
    EXPECT_EQ(
        ok(on("orders", {"group", "release", "--worker", "w1"}, place)),
        "ended 1 session of worker w1; free for others: shardId-000000000000\n"
    );
    EXPECT_TRUE(says("consumer", "shard.lost"));
    EXPECT_EQ(
        millrace(on("orders", {"group", "release", "--worker", "w1"}, {"--group", "h", "--state", state()}))
            .status,
        1
    );
}

TEST_F(CliKinesis, TakesTheEndpointFromTheEnvironmentAndSaysWhereItsKeysComeFrom) {
    fake.with([](auto in) {
        ASSERT_TRUE(in.model.create("orders", 1));
        in.model.append("orders", "k", "v");
    });
    const auto whole = fake.url("orders");
    const auto query = whole.find("?endpoint=");
    ASSERT_NE(query, std::string::npos);
    const words consume{
        "consume",
        "--stream",
        whole.substr(0, query),
        "--group",
        "g",
        "--state",
        state(),
        "--print",
        "--idle-exit",
        "0"};
    ::setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
    ::setenv("AWS_ENDPOINT_URL_KINESIS", whole.substr(query + 10).c_str(), 1);
    const auto done = millrace(consume);
    ::setenv("AWS_ENDPOINT_URL_KINESIS", "127.0.0.1", 1);
    const auto wrong = millrace(consume);
    ::unsetenv("AWS_ENDPOINT_URL");
    ::unsetenv("AWS_ENDPOINT_URL_KINESIS");
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_THAT(done.output, HasSubstr("v"));
    EXPECT_THAT(done.errors, AllOf(HasSubstr("credentials.found"), HasSubstr("the environment")));
    EXPECT_NE(wrong.status, 0);
    EXPECT_THAT(wrong.errors, HasSubstr("AWS_ENDPOINT_URL_KINESIS is no address"));
}

}  // namespace
}  // namespace millrace::cli
