#include "cli_fixture.hpp"

#include <algorithm>

namespace millrace::cli {
namespace {

/// Two streams of one file, read by groups of the same name that keep their state in one file.
struct CliTwoStreams : Cli {
    void SetUp() override {
        for (const std::string name : {"a", "b"}) {
            ok({"stream", "create", "--stream", stream(name), "--shards", "1"});
            put(name, 3);
        }
    }
    void put(const std::string& name, int records) const {
        std::string lines;
        for (int i = 0; i < records; ++i)
            lines += "{\"key\":\"k\",\"value\":\"" + name + "\"}\n";
        ok({"stream", "put", "--stream", stream(name)}, lines);
    }
    words of(const std::string& name, const words& first, const words& more) const {
        words command = first;
        command.insert(command.end(), {"--stream", stream(name), "--group", "g", "--state", state()});
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    std::size_t printed(const std::string& name) const {
        const std::string out =
            ok(of(name, {"consume"}, {"--print", "--idle-exit", "0.2", "--log-level", "warning"}));
        return static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
    }
};

TEST_F(CliTwoStreams, EachResumesWhereItWas) {
    EXPECT_EQ(printed("a"), 3U);
    EXPECT_EQ(printed("b"), 3U);
    EXPECT_EQ(printed("a"), 0U);
    EXPECT_EQ(printed("b"), 0U);
    put("a", 1);
    EXPECT_EQ(printed("b"), 0U);
    EXPECT_EQ(printed("a"), 1U);
}

TEST_F(CliTwoStreams, StatusAndResetLookAtOneStreamOnly) {
    EXPECT_EQ(printed("a"), 3U);
    const auto none = millrace(of("b", {"group", "status"}, {"--json"}));
    EXPECT_EQ(none.status, 1);
    EXPECT_THAT(none.errors, HasSubstr("of stream b; it has none yet"));
    EXPECT_EQ(printed("b"), 3U);
    ok(of("b", {"group", "reset"}, {}));
    EXPECT_THAT(ok(of("a", {"group", "status"}, {"--json"})), HasSubstr("\"checkpoint\":{"));
    EXPECT_EQ(printed("a"), 0U);
    EXPECT_EQ(printed("b"), 3U);
}

}  // namespace
}  // namespace millrace::cli
