#include "cli_fixture.hpp"

#include <algorithm>
#include <csignal>

namespace millrace::cli {
namespace {

/// A stream of one shard with three records, and an import into a group on it.
struct CliImport : Cli {
    void SetUp() override {
        make_stream();
        put_values(3);
        for (const auto& line : lines_of(consume("other"))) {
            sequences.push_back(field(line, "sequence"));
            shard = field(line, "shard");
        }
        ASSERT_EQ(sequences.size(), 3U);
    }
    [[nodiscard]] words of(const words& first, const words& more, const std::string& group = "g") const {
        words command = first;
        command.insert(command.end(), {"--stream", stream(), "--group", group, "--state", state()});
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    [[nodiscard]] std::string consume(const std::string& group) const {
        return ok(of({"consume"}, {"--print", "--idle-exit", "0.2", "--log-level", "warning"}, group));
    }
    [[nodiscard]] support::command_result import(const std::string& text, const words& more = {}) const {
        write("positions", text);
        words all{path("positions")};
        all.insert(all.end(), more.begin(), more.end());
        return millrace(of({"group", "import"}, all));
    }
    [[nodiscard]] std::string at(std::size_t record) const {
        return "{\"shard\":\"" + shard + "\",\"sequence\":\"" + sequences.at(record) + "\"}\n";
    }
    static std::vector<std::string> lines_of(const std::string& text) {
        std::vector<std::string> lines;
        for (std::size_t from = 0; from < text.size();) {
            const auto end = std::min(text.find('\n', from), text.size());
            lines.push_back(text.substr(from, end - from));
            from = end + 1;
        }
        return lines;
    }
    /// Of a line of JSON; with or without quotes.
    static std::string field(const std::string& line, const std::string& name) {
        auto from = line.find("\"" + name + "\":");
        if (from == std::string::npos) return "";
        from += name.size() + 3;
        if (line[from] == '"') ++from;
        return line.substr(from, line.find_first_of("\",}", from) - from);
    }

    std::string shard;
    std::vector<std::string> sequences;
};

TEST_F(CliImport, AGroupGoesOnBehindTheImportedPosition) {
    const auto done = import(at(1));
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_THAT(done.output, HasSubstr("imported into group g: 1 shard written, 0 taken for finished"));
    const auto printed = lines_of(consume("g"));
    ASSERT_EQ(printed.size(), 1U);
    EXPECT_EQ(field(printed[0], "sequence"), sequences[2]);
}

TEST_F(CliImport, ReadsStandardInput) {
    const auto done = millrace(of({"group", "import"}, {"-"}), at(2));
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_EQ(consume("g"), "");
}

TEST_F(CliImport, ACheckpointGoesBackOnlyByForce) {
    EXPECT_EQ(lines_of(consume("g")).size(), 3U);
    const auto kept = import(at(0));
    EXPECT_EQ(kept.status, 0);
    EXPECT_THAT(kept.output, HasSubstr("0 shards written, 0 taken for finished, 1 kept further"));
    EXPECT_THAT(kept.errors, HasSubstr("stands further than its line"));
    EXPECT_EQ(consume("g"), "");
    EXPECT_THAT(import(at(0), {"--force"}).output, HasSubstr("1 shard written"));
    EXPECT_EQ(lines_of(consume("g")).size(), 2U);
}

TEST_F(CliImport, FaultsNameTheLineAndNothingIsWritten) {
    const auto malformed = import(at(1) + "{\"shard\":\"" + shard + "\",\"sequence\":\"12x\"}\n");
    EXPECT_EQ(malformed.status, 2);
    EXPECT_THAT(malformed.errors, AllOf(HasSubstr("line 2: "), HasSubstr("12x")));
    const auto unknown = import(at(1) + "\n{\"shard\":\"nowhere\",\"sequence\":\"1\"}\n");
    EXPECT_EQ(unknown.status, 2);
    EXPECT_THAT(unknown.errors, HasSubstr("line 3: shard \"nowhere\" is not in the stream"));
    EXPECT_EQ(lines_of(consume("g")).size(), 3U);
    const auto empty = millrace(of({"group", "import"}, {"-"}), " \n");
    EXPECT_EQ(empty.status, 2);
    EXPECT_THAT(empty.errors, HasSubstr("\"-\" has no line, so nothing was imported"));
    const auto missing = millrace(of({"group", "import"}, {path("none")}));
    EXPECT_EQ(missing.status, 1);
    EXPECT_THAT(missing.errors, HasSubstr("No such file"));
}

TEST_F(CliImport, IsRefusedWhileAWorkerLives) {
    auto worker = start(of({"consume"}, {"--log-level", "info"}), "worker");
    ASSERT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        const auto seen = millrace(of({"group", "status"}, {"--json"}));
        return seen.output.find("\"checkpoint\":{") != std::string::npos;
    }));
    const auto refused = import(at(0), {"--force"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, HasSubstr("stop all workers first"));
    worker.ask_to_end();
    ASSERT_TRUE(worker.wait(std::chrono::seconds{20}));
    EXPECT_EQ(import(at(0), {"--force"}).status, 0);
}

TEST_F(CliImport, AParentOfAnImportedShardIsTakenForFinishedAndThatIsSaid) {
    ok({"stream", "split", "--stream", stream(), "--shard", shard});
    const auto listed = ok({"stream", "describe", "--stream", stream(), "--json"});
    std::string child;
    for (std::size_t from = 0; (from = listed.find("\"shard\":\"", from)) != std::string::npos;) {
        from += 9;
        const auto name = listed.substr(from, listed.find('"', from) - from);
        if (name != shard) child = name;
    }
    ASSERT_NE(child, "") << listed;
    const auto done = import("{\"shard\":\"" + child + "\",\"sequence\":\"" + sequences[2] + "\"}\n");
    EXPECT_THAT(done.output, HasSubstr("1 shard written, 1 taken for finished"));
    EXPECT_THAT(
        done.errors, AllOf(HasSubstr(shard), HasSubstr("taken for finished, since a shard behind it"))
    );
    EXPECT_EQ(consume("g"), "");
}

}  // namespace
}  // namespace millrace::cli
