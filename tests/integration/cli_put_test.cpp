#include "cli_fixture.hpp"
#include "write_lock.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

struct CliPut : Cli {
    void SetUp() override { make_outbox(); }
    support::command_result put(const std::string& input, words more = {}) const {
        words command{"outbox", "put", "--outbox", outbox()};
        command.insert(command.end(), more.begin(), more.end());
        return millrace(std::move(command), input);
    }
    std::string backlog() const {
        const std::string json = ok({"outbox", "stats", "--outbox", outbox(), "--json"});
        return json.substr(0, json.find(','));
    }
    [[nodiscard]] bool has_open(const support::process& which, const std::string& file) const {
        std::error_code gone;
        const std::filesystem::directory_iterator open("/proc/" + std::to_string(which.pid()) + "/fd", gone);
        return std::any_of(begin(open), end(open), [&](const auto& one) {
            std::error_code closed;
            return std::filesystem::equivalent(one.path(), path(file), closed);
        });
    }
};

TEST_F(CliPut, OneEventFromFlags) {
    const auto done = put("", {"--topic", "orders", "--key", "1", "--value", "", "--header", "a=b=c"});
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_EQ(done.output, "wrote 1 event\n");
    EXPECT_EQ(backlog(), "{\"backlog\":1");
}

TEST_F(CliPut, ATopicOfAFlagHasTheLimitsOfALine) {
    const auto done = put("", {"--topic", std::string(1025, 't'), "--value", "x"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.errors, HasSubstr("--topic is longer than 1024 bytes"));
    ok({"outbox", "put", "--outbox", outbox(), "--topic", std::string(1024, 't'), "--value", "x"});
}

TEST_F(CliPut, AClosedInputCannotBeRead) {
    const auto done = shell("$M outbox put --outbox '" + outbox() + "' <&-");
    EXPECT_EQ(done.status, 1) << done.output;
    EXPECT_THAT(done.errors, HasSubstr("standard input cannot be read"));
    EXPECT_EQ(ok({"outbox", "put", "--outbox", outbox()}), "wrote 0 events\n") << "an empty one can";
}

TEST_F(CliPut, LinesOfEveryForm) {
    const auto done =
        put("\xEF\xBB\xBF{\"topic\":\"t\",\"key\":\"1\",\"value\":\"x\"}\r\n"
            "\n"
            "{\"topic\":\"t\",\"key_base64\":\"AA==\",\"value_base64\":\"/"
            "w==\",\"headers\":[[\"n\",{\"base64\":\"AA==\"}]]}\n"
            "{\"topic\":\"t\",\"value\":{\"a\":1}}");
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_EQ(done.output, "wrote 3 events\n");
}

TEST_F(CliPut, ABadLineIsNamedAndNothingOfItsBatchIsWritten) {
    const auto done =
        put("{\"topic\":\"t\",\"value\":\"x\"}\n\n{\"topic\":\"t\","
            "\"vale\":\"x\"}\n");
    EXPECT_EQ(done.status, 2);
    EXPECT_EQ(
        done.errors,
        "line 3: unknown field \"vale\"; did you mean "
        "\"value\"?; nothing was written\n"
    );
    EXPECT_EQ(backlog(), "{\"backlog\":0");
}

TEST_F(CliPut, BatchesBeforeABadLineAreWrittenAndCounted) {
    const auto done =
        put("{\"topic\":\"t\",\"value\":\"1\"}\n{\"topic\":\"t\",\"value\":\"2\"}"
            "\n{\"topic\":\"t\",\"value\":\"3\"}\noops\n",
            {"--batch-rows", "2"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(
        done.errors,
        AllOf(testing::StartsWith("line 4: not valid JSON at column 1"), HasSubstr("2 events before it were"))
    );
    EXPECT_EQ(backlog(), "{\"backlog\":2");
}

TEST_F(CliPut, NoInputWritesNothing) {
    EXPECT_EQ(put("").output, "wrote 0 events\n");
}

TEST_F(CliPut, FlagsThatContradictAreUsageFaults) {
    const auto done =
        put("", {"--key", "a", "--key-base64", "YQ==", "--value", "v", "--null-value", "--header", "x"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.errors, HasSubstr("--topic is missing"));
    EXPECT_THAT(done.errors, HasSubstr("--key and --key-base64 exclude each other"));
    EXPECT_THAT(done.errors, HasSubstr("--value, --value-base64 and --null-value exclude each other"));
    EXPECT_THAT(done.errors, HasSubstr("--header: expected NAME=VALUE"));
}

TEST_F(CliPut, AStreamTakesOneEventFromFlags) {
    make_stream();
    EXPECT_EQ(
        ok({"stream", "put", "--stream", stream(), "--key", "1", "--value", "v", "--header", "a=b"}),
        "wrote 1 event\n"
    );
    EXPECT_THAT(ok(consume()), AllOf(HasSubstr(R"("key":"1","data":"v","headers":[["a","b"]])")));
}

TEST_F(CliPut, AStreamTakesTheSameLines) {
    make_stream("2");
    const std::string input =
        "{\"topic\":\"orders\",\"key\":\"1\",\"value\":"
        "\"x\"}\n{\"key\":\"2\",\"value\":null}\n";
    EXPECT_EQ(ok({"stream", "put", "--stream", stream()}, input), "wrote 2 events\n");
    const auto done =
        millrace({"stream", "put", "--stream", stream()}, "{\"topic\":\"other\",\"value\":\"x\"}\n");
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.errors, testing::StartsWith("line 1: the topic \"other\" is not the stream \"orders\""));
}

TEST_F(CliPut, AnEventThatTheStreamRefusesIsNamedByItsLine) {
    make_stream();
    std::string lines = "\n";
    for (int i = 2; i < 18; ++i)
        lines += "{\"key\":\"" + std::string(i == 12 ? 70'000 : 3, 'k') + "\",\"value\":\"v\"}\n";
    const auto refused = millrace({"stream", "put", "--stream", stream()}, lines);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(
        refused.errors,
        AllOf(testing::StartsWith("line 12: the key has 70000 bytes"), HasSubstr("; nothing was written"))
    );
    const auto alone =
        millrace({"stream", "put", "--stream", stream(), "--value", "v", "--key", std::string(70'000, 'k')});
    EXPECT_EQ(alone.status, 2);
    EXPECT_THAT(alone.errors, HasSubstr("the key has 70000 bytes"));
}

TEST_F(CliPut, ASignalWritesWhatWasReadAndSaysHowFarThatIs) {
    make_stream();
    ASSERT_EQ(::mkfifo(path("lines").c_str(), 0600), 0);
    const int pipe = ::open(path("lines").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(pipe, 0);
    support::spawn_options options;
    options.output = path("put.out");
    options.errors = path("put.err");
    support::process put(
        {"/bin/bash",
         "-c",
         "exec '" MILLRACE_PROGRAM "' stream put --batch-delay 1m --stream '" + stream() + "' < '" +
             path("lines") + "'"},
        options
    );
    const std::string lines = "{\"value\":\"1\"}\n{\"value\":\"2\"}\n{\"val";
    ASSERT_EQ(::write(pipe, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    EXPECT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        int unread = 1;
        return ::ioctl(pipe, FIONREAD, &unread) == 0 && unread == 0;
    }));
    put.ask_to_end();
    const auto ended = put.wait(std::chrono::seconds{15});
    ::close(pipe);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0) << said("put");
    EXPECT_EQ(printed("put"), "wrote 2 events\n");
    EXPECT_THAT(said("put"), HasSubstr("stopped by a signal; all up to line 2 was written"));
    EXPECT_THAT(ok({"stream", "describe", "--stream", stream(), "--json"}), HasSubstr("\"records\":2,"));
}

TEST_F(CliPut, ALockedOutboxIsWaitedForAsLongAsAsked) {
    auto lock = std::make_unique<write_lock>(path("shop.db"));
    auto patient = start(
        {"outbox", "put", "--outbox", outbox(), "--topic", "t", "--value", "1", "--wait", "1m"}, "patient"
    );
    const auto hasty = put("", {"--topic", "t", "--value", "2", "--wait", "20ms"});
    EXPECT_EQ(hasty.status, 1);
    EXPECT_THAT(hasty.errors, AllOf(HasSubstr(outbox()), HasSubstr("database is locked")));
    EXPECT_TRUE(support::eventually(std::chrono::seconds{15}, [&] { return has_open(patient, "shop.db"); }));
    EXPECT_TRUE(patient.running()) << said("patient");
    lock.reset();
    const auto ended = patient.wait(std::chrono::seconds{15});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->status, 0) << said("patient");
    EXPECT_EQ(backlog(), "{\"backlog\":1");
}

}  // namespace
}  // namespace millrace::cli
