// What the programs beside `millrace` say when they are called wrongly.
#include "cli_fixture.hpp"
#include "support/services.hpp"

namespace millrace::cli {
namespace {

struct Programs : Cli {
    [[nodiscard]] support::command_result demo(const words& more) const {
        words command{MILLRACE_DEMO, "--millrace", MILLRACE_PROGRAM};
        command.insert(command.end(), more.begin(), more.end());
        return support::run(command);
    }
};

TEST_F(Programs, AVariableThatATestGivesAProcessTakesThePlaceOfItsOwn) {
    ::setenv("MILLRACE_GIVEN", "own", 1);
    support::spawn_options options;
    options.environment = {"MILLRACE_GIVEN=given"};
    EXPECT_EQ(support::run({"/usr/bin/printenv", "MILLRACE_GIVEN"}, std::move(options)).output, "given\n");
    ::unsetenv("MILLRACE_GIVEN");
}

TEST_F(Programs, TheDemonstrationNamesABadEventByItsPlaceBeforeAnythingIsWritten) {
    const std::string good = R"({"topic":"orders","key":"1","value":"x"})";
    for (const auto& [line, why] :
         {std::pair{R"({"topic":"orders","vale":"x"})", "unknown field \"vale\"; did you mean \"value\"?"},
          std::pair{R"({"value":"x"})", "\"topic\" is missing"},
          std::pair{R"({"topic":"a/b","value":"x"})", "stream name \"a/b\" is not usable"}}) {
        write("bad.ndjson", good + "\n\n" + line + "\n");
        const auto done = demo({path("bad.ndjson")});
        EXPECT_EQ(done.status, 2);
        EXPECT_EQ(done.output, "");
        EXPECT_THAT(done.errors, testing::StartsWith(path("bad.ndjson") + ":3: " + why));
    }
}

TEST_F(Programs, TheDemonstrationRefusesACallThatItDoesNotUnderstand) {
    EXPECT_EQ(demo({"--orders", "many"}).status, 2);
    EXPECT_EQ(demo({"--orders"}).status, 2);
    EXPECT_EQ(demo({"--faster"}).status, 2);
    EXPECT_EQ(demo({path("missing.ndjson")}).status, 1) << "a file that cannot be used";
    const auto directory = demo({folder.path().string()});
    EXPECT_EQ(directory.status, 1);
    EXPECT_THAT(directory.errors, HasSubstr(": is a directory; give a file"));
}

TEST_F(Programs, TheDemonstrationOnServersNeedsNoOtherServersThanItsOwn) {
    const auto& servers = support::services();
    const words needed{
        "/usr/bin/env",
        "--ignore-environment",
        MILLRACE_DEMO_POSTGRES_KAFKA,
        "--millrace",
        MILLRACE_PROGRAM,
        "--postgres",
        servers.postgres,
        "--kafka",
        servers.kafka,
        "--orders"};
    auto command = needed;
    command.emplace_back("500");
    const auto done = support::run(command);
    EXPECT_EQ(done.status, 0) << done.errors << done.output;
    EXPECT_THAT(done.output, HasSubstr("500"));
    command = needed;
    command.emplace_back("many");
    EXPECT_EQ(support::run(command).status, 2);
}

TEST_F(Programs, TheSimulationShowsItsUsageAndRunsAtLeastOneSeed) {
    const auto help = support::run({MILLRACE_SIM, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.output, HasSubstr("usage: millrace-sim"));
    EXPECT_EQ(support::run({MILLRACE_SIM, "--seeds", "0"}).status, 2);
}

}  // namespace
}  // namespace millrace::cli
