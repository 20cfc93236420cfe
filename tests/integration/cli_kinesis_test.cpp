// The commands on a stream of Kinesis, which a stand-in in this process serves.
#include "cli_fixture.hpp"
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

TEST_F(CliKinesis, AConsumerThatRunsOnWaitsForItsStreamAndReadyzSaysSo) {
    const auto consumer = start(
        on("orders", {"consume", "--group", "g", "--state", state(), "--print", "--admin", "127.0.0.1:0"}),
        "consumer"
    );
    ASSERT_TRUE(says("consumer", "stream.list_failed"));
    const auto port = admin_port("consumer");
    const auto ready = [&] { return get(port, "/readyz"); };
    EXPECT_THAT(ready(), AllOf(HasSubstr("503"), HasSubstr("orders"), HasSubstr("create it")));
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

}  // namespace
}  // namespace millrace::cli
