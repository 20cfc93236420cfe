#include "cli.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A row that does not fit its schema and one behind it, in an outbox in SQLite; the schema is in a file, so
/// no registry is asked.
struct OutboxCheck : testing::Test {
    void SetUp() override {
        write("order.avsc", R"({"type":"record","name":"O","fields":[{"name":"id","type":"int"}]})");
        ASSERT_EQ(run({"outbox", "init", "--outbox", outbox}), 0) << errors;
        for (const auto* value : {R"({"id":"x"})", R"({"id":2})"})
            ASSERT_EQ(
                run({"outbox", "put", "--outbox", outbox, "--topic", "t", "--key", "a", "--value", value}), 0
            ) << errors;
    }
    [[nodiscard]] std::string path(const std::string& name) const { return dir.file(name); }
    void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
    void configure(const std::string& relay) {
        write(
            "m.yaml",
            fmt::format(
                "relay:\n  sink: kafka://k:9092\n{}schemas:\n  registry: http://127.0.0.1:1\n  rules:\n"
                "  - {{topic: t, value: {{mode: avro, auto_register: true, schema_file: {}}}}}\n",
                relay,
                path("order.avsc")
            )
        );
    }
    int run(std::vector<std::string> words) {
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int status = run_program(std::move(words));
        output = testing::internal::GetCapturedStdout();
        errors = testing::internal::GetCapturedStderr();
        return status;
    }
    int check(const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{"outbox", "check", "--json", "--config", path("m.yaml")};
        words.insert(words.end(), more.begin(), more.end());
        return run(std::move(words));
    }

    support::temporary_folder dir;
    std::string outbox{"sqlite:" + dir.file("o.db")};
    std::string output;
    std::string errors;
};

TEST_F(OutboxCheck, TakesOutboxAndPolicyOfTheRelayInTheFile) {
    configure("  outbox: " + outbox + "\n  on_poison: park-row\n");
    EXPECT_EQ(check(), 1) << errors;
    EXPECT_THAT(output, HasSubstr(R"({"rows":2,"fit":1,"parked":1,"waiting":0,"stopping":0,)"));
}

TEST_F(OutboxCheck, AFlagWinsOverTheFile) {
    configure("  outbox: sqlite:/nowhere/else.db\n  on_poison: park-row\n");
    EXPECT_EQ(check({"--outbox", outbox, "--on-poison", "park-key"}), 1) << errors;
    EXPECT_THAT(
        output,
        AllOf(
            HasSubstr(R"({"rows":2,"fit":0,"parked":2,"waiting":0,"stopping":0,)"),
            HasSubstr(R"("reason":"lane_is_parked")")
        )
    );
}

TEST_F(OutboxCheck, SaysWhereARelayWouldStopAndThatNothingLaterOfTheKeyGoesOut) {
    configure("  outbox: " + outbox + "\n  on_poison: stop\n");
    EXPECT_EQ(check(), 1) << errors;
    EXPECT_THAT(
        output,
        AllOf(
            HasSubstr(R"({"rows":2,"fit":0,"parked":0,"waiting":1,"stopping":1,)"),
            HasSubstr(R"("fate":"stops","reason":"refused_record")"),
            HasSubstr(R"("fate":"waits","reason":"relay_stops")")
        )
    );
}

TEST_F(OutboxCheck, OfSeveralOutboxesOneIsToBeNamed) {
    configure("  outbox: [" + outbox + ", 'sqlite:other.db']\n");
    EXPECT_EQ(check(), 2);
    EXPECT_THAT(errors, AllOf(HasSubstr("m.yaml:3:"), HasSubstr("--outbox")));
    EXPECT_EQ(check({"--outbox", outbox}), 1) << errors;
}

TEST_F(OutboxCheck, NeedsTheVariablesOnlyOfWhatItTakes) {
    configure("  outbox: 'sqlite:${ENV:MILLRACE_NOT_SET}'\n");
    EXPECT_EQ(check(), 2);
    EXPECT_THAT(errors, HasSubstr("outbox needs a variable of the environment that is not set"));
    EXPECT_EQ(check({"--outbox", outbox}), 1) << errors;
}

}  // namespace
}  // namespace millrace::app
