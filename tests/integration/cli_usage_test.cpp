#include "cli_fixture.hpp"

#include <chrono>

namespace millrace::cli {
namespace {

struct CliUsage : Cli {};

TEST_F(CliUsage, HelpGoesToStandardOutputAndEndsInAnExample) {
    for (const words& command : std::vector<words>{
             {"--help"},
             {"help"},
             {"relay", "--help"},
             {"outbox", "--help"},
             {"outbox", "dead", "list", "-h"},
             {"help", "stream", "put"}}) {
        const auto done = millrace(command);
        EXPECT_EQ(done.status, 0);
        EXPECT_THAT(done.output, HasSubstr("\nExample:\n  millrace "));
        EXPECT_EQ(done.errors, "");
    }
}

TEST_F(CliUsage, TheVersionIsPrinted) {
    EXPECT_THAT(ok({"version"}), testing::StartsWith("millrace "));
    EXPECT_EQ(ok({"--version"}), ok({"version"}));
}

TEST_F(CliUsage, AllFaultsOfTheStartAreReportedTogether) {
    const auto done =
        millrace({"relay", "--outbox", "kafka:x", "--lease", "-3s", "--leese", "3s", "--fetch-rows", "0"});
    EXPECT_EQ(done.status, 2);
    EXPECT_EQ(done.output, "");
    EXPECT_THAT(done.errors, HasSubstr("unknown option \"--leese\" of relay; did you mean \"--lease\"?"));
    EXPECT_THAT(done.errors, HasSubstr("--lease: \"-3s\" is negative"));
    EXPECT_THAT(done.errors, HasSubstr("--fetch-rows: \"0\" is too small; give 1 to 100000"));
    EXPECT_THAT(done.errors, HasSubstr("--sink is missing; give --sink URL"));
    EXPECT_THAT(done.errors, AllOf(HasSubstr("--outbox: "), HasSubstr("kafka:x"), HasSubstr("sqlite:")));
}

TEST_F(CliUsage, AnOutboxThatIsNamedTwiceIsAUsageFault) {
    const auto done = millrace(
        {"relay", "--outbox", "sqlite:x", "--outbox", "sqlite:y", "--outbox", "sqlite:x", "--sink", "local:s"}
    );
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.errors, HasSubstr("millrace: --outbox: \"sqlite:x\" is named twice; name it once\n"));
}

TEST_F(CliUsage, AnUnknownSchemeSaysWhichExist) {
    const auto done = millrace({"consume", "--stream", "loacl:a/b", "--group", "g", "--state", "dynamo:x"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.errors, AllOf(HasSubstr("--stream: "), HasSubstr("loacl:a/b"), HasSubstr("local:")));
    EXPECT_THAT(done.errors, AllOf(HasSubstr("--state: "), HasSubstr("dynamo:x"), HasSubstr("sqlite:")));
}

TEST_F(CliUsage, NumbersOutOfRangeAreUsageFaults) {
    for (const char* shards : {"0", "-1", "10001", "99999999999999999999", "four", ""}) {
        const auto done = millrace({"stream", "create", "--stream", stream(), "--shards", shards});
        EXPECT_EQ(done.status, 2) << shards;
        EXPECT_THAT(done.errors, HasSubstr("--shards: ")) << shards;
    }
}

TEST_F(CliUsage, AStartThatIsNoStartIsAUsageFault) {
    const auto done = millrace(consume({"--start", "yesterday"}));
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(
        done.errors,
        HasSubstr("--start: \"yesterday\" is neither "
                  "trim_horizon nor latest nor a time")
    );
}

TEST_F(CliUsage, ValuesThatCannotWorkAreUsageFaults) {
    const std::vector<std::pair<words, std::string>> cases{
        {{"--worker", ""}, "--worker: the value is empty"},
        {{"--threads", "257"}, "--threads: \"257\" is too large; give at most 256"},
        {{"--on-failure", "dead-letter"}, "did you mean \"dead-letter=URL\"?"},
        {{"--on-failure", "dead-leter=sqlite:x"}, "did you mean \"dead-letter=URL\"?"},
        {{"--on-failure", "dead-letter=foo:x"}, "foo:x"},
        {{"--retry-min", "2s", "--retry-max", "1s"}, "retry_max"},
        {{"--idle-exit", "-1"}, "--idle-exit: \"-1\" is negative"},
        {{"--print", "--json"}, "--print and --json exclude each other"}};
    for (const auto& [more, part] : cases) {
        const auto done = millrace(consume(more));
        EXPECT_EQ(done.status, 2) << part;
        EXPECT_THAT(done.errors, HasSubstr(part));
    }
}

TEST_F(CliUsage, TheProgramStartsQuickly) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i)
        ok({"version"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{3});
}

struct CliConfig : Cli {};

TEST_F(CliConfig, CheckNamesEveryFaultByItsPlace) {
    write(
        "m.yaml",
        "relay:\n  leese: 3s\n  drain_limit: 5\n  sink: "
        "${ENV:MILLRACE_NOT_SET}\nconsume:\n  stream: foo:x\n"
    );
    const auto done = millrace({"config", "check", path("m.yaml")});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(
        done.errors,
        testing::StartsWith(
            path("m.yaml") + ":2:3: unknown key \"leese\" in relay; did you mean \"lease\"?\n"
        )
    );
    EXPECT_THAT(
        done.errors,
        HasSubstr("m.yaml:3:16: drain_limit: \"5\" has no "
                  "unit; write 5s for seconds\n")
    );
    EXPECT_THAT(
        done.errors,
        HasSubstr("m.yaml:4:9: sink needs the environment variable "
                  "\"MILLRACE_NOT_SET\", which is not set\n")
    );
    EXPECT_THAT(done.errors, HasSubstr("m.yaml:6:11: stream: stream URL \"foo:x\""));
}

TEST_F(CliConfig, FaultsOfEveryKindComeInTheOrderOfTheFile) {
    write(
        "m.yaml",
        "relay:\n  outbox: kafka:x\n  lease: 3x\n  sink:\n  retry_min: 2ms\n  retry_max: 1ms\n  leese: 1s\n"
        "consume:\n  start: yesterday\n"
    );
    const auto done = millrace({"config", "check", path("m.yaml")});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(
        done.errors,
        testing::ContainsRegex(
            "^[^\n]*:2:11: outbox: [^\n]*\n[^\n]*:3:10: lease: [^\n]*\n[^\n]*:4:3: sink must "
            "have[^\n]*\n[^\n]*:5:14: [^\n]*retry_max[^\n]*\n[^\n]*:7:3: unknown key[^\n]*\n"
            "[^\n]*:9:10: start: [^\n]*\n$"
        )
    );
}

TEST_F(CliConfig, ExplainShowsValuesWithTheirOrigin) {
    write("m.yaml", "relay:\n  lease: 3s\n  outbox: sqlite:a.db\n");
    const std::string out = ok({"config", "explain", path("m.yaml"), "relay", "--drain-limit", "2s"});
    EXPECT_THAT(out, testing::ContainsRegex("relay\\.lease +3s +[^\n]*m\\.yaml:2\n"));
    EXPECT_THAT(out, testing::ContainsRegex("relay\\.drain_limit +2s +flag\n"));
    EXPECT_THAT(out, testing::ContainsRegex("relay\\.poll_max +50ms +default\n"));
    EXPECT_THAT(
        ok({"config", "explain", "--json", path("m.yaml")}),
        HasSubstr(R"({"section":"relay","key":"lease","value":"3s","origin":)")
    );
}

TEST_F(CliConfig, ExplainLaysFlagsWithoutACommandOverTheOnlySection) {
    write("m.yaml", "relay:\n  lease: 3s\n");
    EXPECT_THAT(
        ok({"config", "explain", path("m.yaml"), "--lease", "4s"}),
        testing::ContainsRegex("relay\\.lease +4s +flag\n")
    );
    write("both.yaml", "relay:\n  lease: 3s\nconsume:\n  threads: 2\n");
    const auto done = millrace({"config", "explain", path("both.yaml"), "--lease", "4s"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(
        done.errors, HasSubstr("--lease needs its command: write millrace config explain FILE relay")
    );
}

TEST_F(CliConfig, WhatIsNotSetIsNullInJson) {
    write("m.yaml", "relay:\n  lease: 3s\n");
    EXPECT_THAT(
        ok({"config", "explain", "--json", path("m.yaml")}),
        HasSubstr(R"({"section":"relay","key":"sink","value":null,"origin":"not set"})")
    );
}

TEST_F(CliConfig, AFaultInTheSectionOfAnotherCommandIsOneOfTheFile) {
    make_outbox();
    make_stream();
    write("m.yaml", "relay:\n  sink: " + sink() + "\nconsume:\n  lease: 1ms\n");
    const auto done = millrace({"relay", "--config", path("m.yaml"), "--outbox", outbox(), "--once"});
    EXPECT_EQ(done.status, 2) << done.output;
    EXPECT_THAT(done.errors, HasSubstr("m.yaml:4:10: lease: "));
}

TEST_F(CliConfig, ExplainHidesWhatComesFromTheEnvironment) {
    write("m.yaml", "relay:\n  outbox: sqlite:${ENV:HOME}/x.db\n");
    const std::string out = ok({"config", "explain", path("m.yaml")});
    EXPECT_THAT(out, HasSubstr("sqlite:${ENV:HOME}/x.db"));
}

TEST_F(CliConfig, AFileThatIsNotGivenIsAskedForAsItStands) {
    const auto done = millrace({"config", "check"});
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.errors, HasSubstr("FILE is missing; give FILE\n"));
    EXPECT_THAT(done.errors, testing::Not(HasSubstr("--file")));
}

TEST_F(CliConfig, AMissingFileIsSaidToBeMissing) {
    const auto done = millrace({"config", "check", path("none.yaml")});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(
        done.errors,
        HasSubstr("none.yaml: the configuration file cannot "
                  "be read: No such file or directory")
    );
}

TEST_F(CliConfig, AFileMayListSeveralOutboxes) {
    make_outbox();
    const std::string second = "sqlite:" + path("second.db");
    ok({"outbox", "init", "--outbox", second});
    make_stream("1");
    for (const std::string& to : {outbox(), second})
        ok({"outbox", "put", "--outbox", to, "--topic", "orders", "--key", "k", "--value", "v"});
    write(
        "flow.yaml", "relay: {outbox: [\"" + outbox() + "\", \"" + second + "\"], sink: \"" + sink() + "\"}\n"
    );
    write(
        "block.yaml",
        "relay:\n  outbox:\n    - " + outbox() + "\n    - " + second + "\n  sink: " + sink() + "\n"
    );
    for (const std::string file : {"flow.yaml", "block.yaml"}) {
        ok({"config", "check", path(file)});
        EXPECT_THAT(ok({"config", "explain", path(file)}), HasSubstr(outbox() + ", " + second));
    }
    EXPECT_THAT(ok({"relay", "--config", path("flow.yaml"), "--once"}), HasSubstr("delivered 2 events"));
    EXPECT_THAT(ok({"relay", "--config", path("block.yaml"), "--once"}), HasSubstr("delivered 0 events"));
}

TEST_F(CliConfig, AnOpenQuoteIsTheOnlyFaultWhereItHidesTheKeysBehindIt) {
    for (const std::string end : {"", "\""}) {
        write("m.yaml", "relay:\n  worker: \"w\n  outbox: sqlite:a\n  sink: local:b" + end + "\n");
        const auto done = millrace({"relay", "--config", path("m.yaml")});
        EXPECT_EQ(done.status, 2);
        EXPECT_THAT(done.errors, HasSubstr("m.yaml:"));
        EXPECT_THAT(done.errors, testing::Not(HasSubstr("is missing"))) << end;
    }
}

TEST_F(CliConfig, AFileForBothCommandsNeedsTheVariablesOfTheOneThatRunsAlone) {
    make_outbox();
    make_stream();
    write(
        "m.yaml",
        "relay: {outbox: \"" + outbox() + "\", sink: \"" + sink() +
            "\"}\nconsume: {state: \"${ENV:NOWHERE}\"}\n"
    );
    ok({"relay", "--config", path("m.yaml"), "--once"});
    const auto all = millrace({"config", "check", path("m.yaml")});
    EXPECT_EQ(all.status, 2);
    EXPECT_THAT(all.errors, HasSubstr("needs the environment variable \"NOWHERE\""));
}

TEST_F(CliConfig, FlagsWinOverTheFile) {
    write("m.yaml", "relay:\n  outbox: sqlite:" + path("none.db") + "\n  sink: " + sink() + "\n");
    make_outbox();
    make_stream();
    ok({"relay", "--config", path("m.yaml"), "--outbox", outbox(), "--once"});
}

}  // namespace
}  // namespace millrace::cli
