// Values of options that make no sense: each is named with its option, and the exit status is 2.
#include "cli_fixture.hpp"
#include "option.hpp"

namespace millrace::cli {
namespace {

struct CliValues : Cli {
    static void refused(const words& command, const std::vector<std::string>& parts) {
        const auto done = millrace(command);
        EXPECT_EQ(done.status, 2) << done.errors;
        for (const auto& part : parts)
            EXPECT_THAT(done.errors, HasSubstr(part));
    }
};

TEST_F(CliValues, EveryNumericOptionRefusesWhatIsNoneOrOutOfItsRange) {
    using app::option_kind;
    for (const auto& command : app::commands()) {
        words base;
        for (std::size_t at = 0; at != std::string::npos;) {
            const auto end = command.path.find(' ', at);
            base.emplace_back(command.path.substr(at, end == std::string_view::npos ? end : end - at));
            at = end == std::string_view::npos ? end : end + 1;
        }
        for (const std::string value :
             {"-1",
              "-1s",
              "99999999999999999999999999",
              "99999999999999999999999999d",
              "x",
              "",
              "1e3",
              "0x10",
              "nan",
              "1 2",
              "٣"}) {
            words line = base;
            std::vector<std::string> named;
            for (const auto& option : command.options) {
                const bool numeric = option.kind == option_kind::count || option.kind == option_kind::share ||
                                     option.kind == option_kind::duration ||
                                     option.kind == option_kind::seconds || option.kind == option_kind::bytes;
                if (!numeric || option.positional) continue;
                line.push_back("--" + std::string(option.name) + "=" + value);
                named.push_back("--" + std::string(option.name) + ": ");
            }
            if (!named.empty()) refused(line, named);
        }
    }
}

TEST_F(CliValues, NamesAreShortPlainText) {
    make_stream();
    const std::string huge(10'000, 'x');
    for (const auto& [name, why] :
         {std::pair{std::string(), "the value is empty"},
          std::pair{std::string("a\nb"), "has control characters"},
          std::pair{std::string("\xff\xfe"), "is not UTF-8"},
          std::pair{huge, "is longer than 256 bytes"}}) {
        refused({"consume", "--stream", stream(), "--group=" + name, "--state", state()}, {"--group: ", why});
        refused(consume({"--worker=" + name}), {"--worker: ", why});
        refused(
            {"group", "status", "--stream", stream(), "--group=" + name, "--state", state()},
            {"--group: ", why}
        );
        refused({"relay", "--outbox", outbox(), "--sink", sink(), "--worker=" + name}, {"--worker: ", why});
    }
    for (const char* name : {"../../x", "😀", "a b", "'; DROP TABLE x; --", "%s"}) {
        ok({"consume",
            "--stream",
            stream(),
            "--group",
            name,
            "--state",
            state(),
            "--worker",
            name,
            "--idle-exit",
            "0.1",
            "--log-level",
            "warning"});
        EXPECT_THAT(
            ok({"group", "status", "--stream", stream(), "--group", name, "--state", state(), "--json"}),
            HasSubstr("\"epoch\":1")
        );
    }
}

TEST_F(CliValues, StreamNamesHaveLettersDigitsDotsUnderscoresAndHyphens) {
    for (const std::string name : {"a b", "a'b", "a\"b", "..", "ü"})
        refused(
            {"stream", "create", "--stream", sink() + "/" + name, "--shards", "1"},
            {"--stream: ", "is not usable"}
        );
    refused(
        {"stream", "create", "--stream", sink() + "/a/", "--shards", "1"}, {"names no stream after its file"}
    );
}

TEST_F(CliValues, SplitsAndMergesThatCannotBeAreRefused) {
    make_stream("2");
    const std::string first = "shardId-000000000000";
    const std::string second = "shardId-000000000001";
    const auto split = [&](const std::string& at) {
        return words{"stream", "split", "--stream", stream(), "--shard", first, "--at=" + at};
    };
    for (const char* at : {"-1", "abc", "", "340282366920938463463374607431768211456"})
        refused(split(at), {"--at: ", "is not a number from 0 to 2^128 - 1"});
    for (const char* at : {"0", "340282366920938463463374607431768211455"})
        refused(split(at), {first, "does not split the range"});
    refused(
        {"stream", "merge", "--stream", stream(), "--shard", first, "--shard", first},
        {"names the same shard twice"}
    );
    refused({"stream", "merge", "--stream", stream(), "--shard", first}, {"must be given twice"});
    ok({"stream", "split", "--stream", stream(), "--shard", first});
    refused(
        {"stream", "merge", "--stream", stream(), "--shard", "shardId-000000000002", "--shard", second},
        {"are not adjacent"}
    );
    const auto unknown = millrace({"stream", "split", "--stream", stream(), "--shard", "nope"});
    EXPECT_EQ(unknown.status, 1);
    EXPECT_THAT(unknown.errors, AllOf(HasSubstr("\"nope\""), HasSubstr("does not exist in " + sink())));
}

TEST_F(CliValues, AStartInTheFutureIsTakenAndOneThatIsNoTimeIsNot) {
    make_stream();
    ok({"stream", "put", "--stream", stream(), "--value", "v"});
    EXPECT_EQ(ok(consume({"--print", "--idle-exit", "0.1", "--start", "9999-12-31T23:59:59Z"})), "");
    for (const char* start : {"2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "LATEST", "", "tomorrow"})
        refused(
            consume({std::string("--start=") + start}),
            {"--start: ", "neither trim_horizon nor latest nor a time"}
        );
}

TEST_F(CliValues, LinesThatAreNoEventsAreNamedByTheirNumber) {
    make_outbox();
    const auto bad = [&](const std::string& line, const std::string& why) {
        const auto done = millrace(
            {"outbox", "put", "--outbox", outbox()}, "{\"topic\":\"t\",\"value\":\"x\"}\r\n" + line + "\n"
        );
        EXPECT_EQ(done.status, 2) << done.errors;
        EXPECT_THAT(
            done.errors,
            AllOf(testing::StartsWith("line 2: "), HasSubstr(why), HasSubstr("nothing was written"))
        );
    };
    bad("{\"topic\":\"t\",\"value\":\"\xff\"}", "a byte that is not UTF-8");
    bad(std::string("{\"topic\":\"t\",\"value\":\"a\0b\"}", 27), "not valid JSON");
    bad(std::string(1, '\0'), "not valid JSON");
    bad(std::string(100'000, '['), "too deep");
    bad("{\"topic\":\"t\",\"value\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
        "too deep");
    bad("{\"topic\":\"t\",\"value\":\"\\ud800\"}", "half of a surrogate pair");
    bad("{\"topic\":\"t\",\"value\":\"x\",\"value\":\"y\"}", "the field \"value\" is there twice");
    bad("[]", "expected an object");
    std::string long_value;
    long_value.resize(34'000'000, 'x');
    bad("{\"topic\":\"t\",\"value\":\"" + long_value + "\"}",
        "longer than 33554432 bytes (--line-bytes-max)");
}

TEST_F(CliValues, AddressesThatNameNothingAreUsageFaults) {
    for (const std::string url :
         {"sqlite:",
          "sqlite://",
          "sqlite::memory:",
          "sqlite:file:shop.db",
          "SQLITE:a.db",
          "file:a.db",
          "a.db",
          ":",
          "",
          "local:a.db"})
        refused({"outbox", "stats", "--outbox=" + url}, {"--outbox: "});
    make_outbox();
    EXPECT_EQ(
        shell("$M outbox stats --outbox sqlite:./shop.db && $M outbox stats --outbox sqlite:../$(basename "
              "$PWD)/shop.db")
            .status,
        0
    );
    for (const std::string url : {"sqlite:shop.db?mode=ro", "sqlite:shop%2Edb"}) {
        const auto done = millrace({"outbox", "stats", "--outbox", url});
        EXPECT_EQ(done.status, 1);
        EXPECT_THAT(done.errors, AllOf(HasSubstr(url), HasSubstr("does not exist")));
    }
}

}  // namespace
}  // namespace millrace::cli
