#include "config.hpp"

#include "output.hpp"
#include "settings.hpp"

#include <millrace/options.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::optional<std::string> no_variable(const std::string&) {
    return std::nullopt;
}

struct Config : testing::Test {
    config_values read(std::string_view text, const environment& variables = no_variable) {
        found = {};
        return parse_config("m.yaml", text, variables, found);
    }
    const std::vector<std::string>& faults_of(std::string_view text) {
        (void)read(text);
        return found.lines();
    }
    faults found;
};

TEST_F(Config, SectionsAreCommandsAndKeysAreOptions) {
    const config_values values = read("relay:\n  lease: 3s\n  drain_limit: 1s\nconsume: {print: true}\n");
    EXPECT_THAT(found.lines(), IsEmpty());
    ASSERT_EQ(values.at("relay").size(), 2U);
    EXPECT_EQ(values.at("relay")[1].option, "drain-limit");
    EXPECT_EQ(values.at("relay")[1].text, "1s");
    EXPECT_EQ(values.at("relay")[1].where, "m.yaml:3:16");
    EXPECT_EQ(values.at("consume")[0].text, "true");
}

TEST_F(Config, AnUnknownKeyIsAnsweredWithTheNearestOne) {
    EXPECT_THAT(
        faults_of("relay:\n  leese: 3s\n"),
        ElementsAre("m.yaml:2:3: unknown key \"leese\" in relay; did you "
                    "mean \"lease\"?")
    );
    EXPECT_THAT(
        faults_of("realy:\n  lease: 3s\n"),
        ElementsAre("m.yaml:1:1: unknown section \"realy\"; did you mean \"relay\"?")
    );
}

TEST_F(Config, VariablesOfASectionThatIsNotUsedAreNotLookedUp) {
    const std::string text =
        "relay:\n  sink: local:${ENV:SINK}\nconsume:\n  state: x${ENV:STATE}y\n  lease: 3s\n";
    const environment of_relay = [](const std::string& name) {
        return name == "SINK" ? std::optional<std::string>("a.db") : std::nullopt;
    };
    const auto values = parse_config("m.yaml", text, of_relay, found, "relay");
    EXPECT_THAT(found.lines(), IsEmpty());
    EXPECT_EQ(values.at("relay")[0].text, "local:a.db");
    EXPECT_FALSE(values.at("relay")[0].open);
    EXPECT_TRUE(values.at("consume")[0].open);
    EXPECT_FALSE(values.at("consume")[1].open);

    (void)parse_config("m.yaml", text, of_relay, found);
    EXPECT_THAT(found.lines(), ElementsAre(HasSubstr("needs the environment variable \"STATE\"")));
    found = {};
    (void)parse_config("m.yaml", "consume: {state: \"${ENV:STATE\"}\n", no_variable, found, "relay");
    EXPECT_THAT(found.lines(), ElementsAre(HasSubstr("lacks the closing brace")));
}

TEST_F(Config, ADoubledKeyOrSectionIsAFault) {
    EXPECT_THAT(
        faults_of("relay:\n  lease: 3s\n  lease: 4s\n"),
        ElementsAre("m.yaml:3:3: key \"lease\" is there twice in relay")
    );
    EXPECT_THAT(
        faults_of("relay:\n  lease: 3s\nrelay:\n  lease: 4s\n"),
        ElementsAre("m.yaml:3:1: section \"relay\" is there twice")
    );
}

TEST_F(Config, AllFaultsAreReportedTogether) {
    EXPECT_EQ(
        faults_of("relay:\n  leese: 3s\n  once: true\n  lease: [1]\nfoo: "
                  "1\nconsume: 3\n")
            .size(),
        5U
    );
}

TEST_F(Config, AnOptionOfTheCommandLineAloneIsNoKey) {
    EXPECT_THAT(
        faults_of("relay:\n  once: true\n"),
        ElementsAre("m.yaml:2:3: \"once\" of relay can only be given on "
                    "the command line")
    );
}

TEST_F(Config, SecretsComeFromTheEnvironmentByName) {
    const auto variables = [](const std::string& name) {
        return name == "SINK" ? std::optional<std::string>{"x.db"} : std::nullopt;
    };
    const config_values values = read("relay:\n  sink: local:${ENV:SINK}\n", variables);
    EXPECT_EQ(values.at("relay")[0].text, "local:x.db");
    EXPECT_EQ(values.at("relay")[0].shown, "local:${ENV:SINK}");
    EXPECT_THAT(
        (read("relay:\n  sink: ${ENV:NO}\n", variables), found.lines()),
        ElementsAre("m.yaml:2:9: sink needs the environment variable "
                    "\"NO\", which is not set")
    );
    EXPECT_THAT(
        (read("relay:\n  sink: ${ENV:NO\n", variables), found.lines()),
        ElementsAre("m.yaml:2:9: sink lacks the closing brace of ${ENV:NAME}")
    );
}

TEST_F(Config, AnEmptyFileOrSectionSetsNothing) {
    for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "relay:\n", "relay: {}\n", "~\n"}) {
        EXPECT_THAT(faults_of(text), IsEmpty()) << text;
    }
}

TEST_F(Config, WhatIsNotASectionIsSaidToBeNone) {
    EXPECT_THAT(
        faults_of("- a\n- b\n"), ElementsAre(HasSubstr("m.yaml:1:1: expected a section such as \"relay:\""))
    );
    EXPECT_THAT(faults_of("hello\n"), ElementsAre(HasSubstr("found one value")));
    EXPECT_THAT(
        faults_of("relay: {lease: }\n"), ElementsAre(HasSubstr("lease must have one value, not nothing"))
    );
    EXPECT_THAT(
        faults_of("relay: {}\n---\nrelay: {}\n"), ElementsAre(HasSubstr("a second document begins here"))
    );
    EXPECT_THAT(faults_of("relay: [\n"), ElementsAre(HasSubstr("not valid YAML")));
    EXPECT_THAT(faults_of("relay:\n\tlease: 3s\n"), ElementsAre(HasSubstr("m.yaml:2")));
}

TEST_F(Config, AliasesAreNotFollowed) {
    std::string bomb = "relay: &a {lease: 3s}\nconsume: *a\n";
    EXPECT_THAT(faults_of(bomb), ElementsAre(HasSubstr("an alias")));
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 40; ++i) {
        const std::string last = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + "," + last + "," + last +
                "]\n";
    }
    EXPECT_EQ(faults_of(bomb).size(), 40U);
}

TEST_F(Config, AValueThatDoesNotEndOnItsLineIsAFaultWhereItBegins) {
    const auto* const open = "m.yaml:2:11: the quote that begins here is not closed on its line";
    for (const std::string quote : {"\"", "'"}) {
        const auto text = "consume:\n  stream: " + quote + "local:x\n  group: g\n  state: " + quote +
                          "sqlite:y" + quote + "\n";
        EXPECT_THAT(faults_of(text), testing::Contains(HasSubstr(":"))) << text;
        const auto swallowed =
            "consume:\n  stream: " + quote + "local:x\n  group: g\n  worker: w" + quote + "\n";
        EXPECT_THAT(faults_of(swallowed), ElementsAre(open)) << swallowed;
        EXPECT_THAT(faults_of("consume:\n  stream: " + quote + "local:x\n  group: g\n"), testing::SizeIs(1));
    }
    EXPECT_THAT(
        faults_of("relay:\n  lease: 3s\n    4s\n"),
        ElementsAre(HasSubstr("m.yaml:2:10: the value that begins here goes on on the next line"))
    );
    EXPECT_THAT(
        faults_of("relay:\n  lease: |\n    3s\n"), ElementsAre(HasSubstr("m.yaml:2:10: a value must stand"))
    );
    EXPECT_THAT(faults_of("relay:\n  lease: !!str 3s\n"), ElementsAre(HasSubstr("tags and anchors")));
    const auto whole = read("consume:\n  stream: \"a\\\"b\" # \"\n  group: 'it''s'\n  worker: a#b c  # d\n");
    EXPECT_THAT(found.lines(), IsEmpty());
    EXPECT_EQ(whole.at("consume")[0].text, "a\"b");
    EXPECT_EQ(whole.at("consume")[1].text, "it's");
    EXPECT_EQ(whole.at("consume")[2].text, "a#b c");
    EXPECT_EQ(read("\xEF\xBB\xBFrelay: {lease: \"3s\"}\r\n").at("relay")[0].text, "3s");
    EXPECT_THAT(found.lines(), IsEmpty());
}

TEST_F(Config, WhatIsNoYamlIsNamedByItsCause) {
    EXPECT_THAT(
        faults_of("relay:\n  lease: \"3\xc3(\"\n"),
        ElementsAre("m.yaml:2:12: not UTF-8 from here on; save the file as UTF-8")
    );
    EXPECT_THAT(faults_of(std::string(100'000, '[')), ElementsAre(HasSubstr("nested too deeply")));
    EXPECT_THAT(
        faults_of("relay:\n\tlease: 3s\n"),
        ElementsAre(HasSubstr("line 2 is indented by a tab; YAML indents by spaces"))
    );
}

TEST_F(Config, DeepAndHugeFilesEndInAFault) {
    for (const std::string& text :
         {std::string(100'000, '['),
          std::string(100'000, '{'),
          std::string(100'000, '-'),
          std::string(config_bytes_max + 1, 'a'),
          std::string(1000, '\0'),
          std::string("\xff\xfe"
                      "relay:\n"),
          std::string("\x1f\x8b\x08\x00\x00", 5)}) {
        EXPECT_THAT(faults_of(text), testing::Not(IsEmpty())) << text.substr(0, 20);
    }
    std::string nested;
    for (int i = 0; i < 400; ++i)
        nested += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    EXPECT_THAT(faults_of(nested), testing::Not(IsEmpty()));
}

RC_GTEST_PROP(ConfigText, NoTextBreaksTheParser, ()) {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "relay",
        "consume",
        ":",
        " ",
        "\n",
        "  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&a",
        "*a",
        "|",
        ">",
        "'",
        "\"",
        "#",
        "?",
        "!",
        "%",
        "@",
        "\t",
        "lease",
        "${ENV:",
        "---\n",
        "...\n",
        "\xff",
        ","
    ));
    std::string text;
    for (const std::string& piece : pieces)
        text += piece;
    faults found;
    (void)parse_config("m.yaml", text, no_variable, found);
}

TEST(ReadConfig, AFileThatCannotBeReadIsARunTimeFault) {
    faults found;
    (void)read_config("/nonexistent/m.yaml", no_variable, found);
    EXPECT_THAT(
        found.lines(),
        ElementsAre("/nonexistent/m.yaml: the configuration file cannot "
                    "be read: No such file or directory")
    );
    EXPECT_EQ(found.status(), exit_status::failed);
    found = {};
    (void)read_config("/", no_variable, found);
    EXPECT_THAT(found.lines(), ElementsAre("/: the configuration is not a regular file; write it to one"));
}

struct Settings : testing::Test {
    settings resolve(
        std::vector<given_value> from_file, std::vector<given_value> flags, bool complete = false
    ) {
        found = {};
        return settings::resolve(*find_command("relay"), from_file, flags, complete, found);
    }
    faults found;
};

TEST_F(Settings, FlagsWinOverTheFileAndTheFileOverDefaults) {
    const given_value file{"lease", "3s", "3s", "m.yaml:2:3"};
    const given_value flag{"lease", "4s", "4s", ""};
    EXPECT_EQ(resolve({}, {}).duration("lease"), std::chrono::seconds{5});
    EXPECT_EQ(resolve({file}, {}).duration("lease"), std::chrono::seconds{3});
    EXPECT_EQ(resolve({file}, {flag}).duration("lease"), std::chrono::seconds{4});
    const settings explained = resolve({file}, {});
    const auto lease = std::find_if(explained.all().begin(), explained.all().end(), [](const setting& s) {
        return s.option->name == "lease";
    });
    EXPECT_EQ(lease->origin, "m.yaml:2");
}

TEST_F(Settings, FaultyValuesAreNamedByTheirPlace) {
    (void)resolve(
        {{"lease", "3x", "3x", "m.yaml:2:3"}}, {{"lease", "-4s", "-4s", ""}, {"fetch-rows", "0", "0", ""}}
    );
    EXPECT_THAT(
        found.lines(),
        ElementsAre(
            HasSubstr("m.yaml:2:3: lease: \"3x\" is not a duration"),
            "--lease: \"-4s\" is negative",
            "--fetch-rows: \"0\" is too small; give 1 to 100000"
        )
    );
    EXPECT_EQ(found.status(), exit_status::usage);
}

TEST_F(Settings, FaultsOfMeaningAreNamedByThePlaceOfTheValue) {
    const settings values = resolve(
        {{"outbox", "kafka:x", "kafka:x", "m.yaml:2:11"},
         {"retry-min", "2ms", "2ms", "m.yaml:5:14"},
         {"retry-max", "1ms", "1ms", "m.yaml:6:14"},
         {"admin", "nowhere", "nowhere", "m.yaml:4:10"},
         {"worker", "w", "w", "m.yaml:7:11"}},
        {{"sink", "sqlite:y", "sqlite:y", ""}}
    );
    values.command().check(values, found);
    EXPECT_THAT(
        found.lines(),
        ElementsAre(
            HasSubstr("m.yaml:2:11: outbox: outbox URL \"kafka:x\""),
            HasSubstr("--sink: sink URL \"sqlite:y\""),
            HasSubstr("m.yaml:4:10: admin: "),
            HasSubstr("m.yaml:5:14: relay option retry_max")
        )
    );
}

TEST_F(Settings, AWordOfASentenceIsNoOption) {
    const std::vector<given_value> file{
        {"group", "g", "g", "m.yaml:2:10"}, {"tick", "1s", "1s", "m.yaml:3:9"}};
    const settings values = settings::resolve(*find_command("consume"), file, {}, false, found);
    EXPECT_EQ(values.placed("group option drain_limit is 0 s"), "group option drain_limit is 0 s");
    EXPECT_EQ(values.placed("tick is wrong").substr(0, 4), "tick") << "a faulty value is not the one in use";
}

TEST_F(Settings, AFlagThatReplacesAValueOfTheFileIsNamedAsAFlag) {
    const settings values =
        resolve({{"outbox", "sqlite:x", "sqlite:x", "m.yaml:2:11"}}, {{"outbox", "kafka:x", "kafka:x", ""}});
    values.command().check(values, found);
    EXPECT_THAT(found.lines(), ElementsAre(HasSubstr("--outbox: outbox URL \"kafka:x\"")));
}

TEST(ConfigFaults, AreShownInTheOrderOfTheFile) {
    faults found;
    for (const char* line :
         {"--sink is missing", "m.yaml:10:3: ten", "m.yaml:9:20: nine", "m.yaml:9:3: nine", "--lease: bad"})
        found.add(line);
    testing::internal::CaptureStderr();
    complain(found);
    EXPECT_EQ(
        testing::internal::GetCapturedStderr(),
        "m.yaml:9:3: nine\nm.yaml:9:20: nine\nm.yaml:10:3: ten\nmillrace: --sink is missing\nmillrace: "
        "--lease: "
        "bad\n"
    );
}

TEST_F(Config, AKeyWithoutAValueIsNamedAtItsOwnLine) {
    EXPECT_THAT(
        faults_of("relay:\n  sink: local:x\n  lease:\n  worker: w\n"),
        ElementsAre("m.yaml:3:3: lease must have one value, not nothing")
    );
}

TEST_F(Settings, AMissingRequiredOptionIsNamed) {
    (void)resolve({}, {}, true);
    EXPECT_THAT(
        found.lines(),
        ElementsAre(
            "--outbox is missing; give --outbox URL, or "
            "\"outbox\" in the configuration",
            "--sink is missing; give --sink URL, or \"sink\" in "
            "the configuration"
        )
    );
}

TEST_F(Config, AKeyOfSeveralValuesTakesAListOrOne) {
    const auto list = read("relay:\n  outbox: [sqlite:a, sqlite:b]\n").at("relay");
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(list[1].text, "sqlite:b");
    EXPECT_EQ(list[1].where, "m.yaml:2:22");
    EXPECT_EQ(read("relay:\n  outbox: sqlite:a\n").at("relay").size(), 1u);
    EXPECT_THAT(
        faults_of("relay:\n  outbox: [[sqlite:a], {b: c}]\n"),
        ElementsAre(HasSubstr("outbox must have one value"), HasSubstr("outbox must have one value"))
    );
    EXPECT_THAT(
        faults_of("relay:\n  sink: [local:a]\n"),
        ElementsAre(HasSubstr("sink must have one value, not a list"))
    );
}

TEST_F(Settings, OutboxesMayBeSeveralAndAreShownWithoutSecrets) {
    const settings values = resolve(
        {{"outbox", "postgresql://u:secret@h/a", "postgresql://u:secret@h/a", "m.yaml:2:11"},
         {"outbox", "sqlite:b", "sqlite:b", "m.yaml:2:30"}},
        {}
    );
    EXPECT_EQ(values.list("outbox").size(), 2u);
    for (const setting& s : values.all()) {
        if (s.option->name == "outbox") {
            EXPECT_EQ(s.shown, "postgresql://u:***@h/a, sqlite:b");
        }
    }
}

TEST_F(Settings, ALeaderByKafkaNeedsAGroup) {
    const std::vector<given_value> both{
        {"outbox", "sqlite:a", "sqlite:a", ""}, {"sink", "local:b", "local:b", ""}};
    const auto faults_with = [&](std::vector<given_value> more) {
        more.insert(more.end(), both.begin(), both.end());
        const settings values = resolve({}, std::move(more));
        values.command().check(values, found);
        return found.lines();
    };
    EXPECT_THAT(
        faults_with({{"leader", "kafka", "kafka", ""}}),
        ElementsAre("--leader: kafka needs a group; give --leader-group NAME")
    );
    EXPECT_THAT(
        faults_with(
            {{"leader", "kafka", "kafka", ""},
             {"leader-group", "g", "g", ""},
             {"leader-kafka", "kafka://h:1", "kafka://h:1", ""},
             {"fleet-state", "sqlite:f", "sqlite:f", ""}}
        ),
        ElementsAre(HasSubstr("a fleet shares its outboxes out by leases"))
    );
    EXPECT_THAT(
        faults_with(
            {{"leader", "kafka", "kafka", ""},
             {"leader-kafka", "kafka://h:1", "kafka://h:1", ""},
             {"leader-group", "a b", "a b", "m.yaml:7:3"}}
        ),
        ElementsAre(AllOf(testing::StartsWith("m.yaml:7:3"), HasSubstr("it is \"a b\"; it must be")))
    );
    EXPECT_THAT(
        faults_with({{"leader", "kafka", "kafka", ""}, {"leader-group", "g", "g", ""}}),
        ElementsAre(
            "--leader: kafka needs brokers, and the sink has none; give --leader-kafka kafka://HOST:PORT"
        )
    );
    EXPECT_THAT(
        faults_with(
            {{"leader", "kafka", "kafka", ""},
             {"leader-group", "g", "g", ""},
             {"leader-kafka", "kafka://h:1", "kafka://h:1", ""}}
        ),
        IsEmpty()
    );
}

TEST_F(Settings, AnOptionOfAnElectionThatIsNotHeldIsAFault) {
    for (const auto& [option, value] : std::initializer_list<std::pair<std::string, std::string>>{
             {"leader-group", "shop"},
             {"leader-topic", "shop.neli"},
             {"leader-kafka", "kafka://h:9092"},
             {"leader-name", "relay-1"},
             {"fleet", "shops"}}) {
        const settings values = resolve(
            {{"outbox", "sqlite:a", "sqlite:a", ""}, {"sink", "local:b", "local:b", ""}},
            {{option, value, value, ""}}
        );
        values.command().check(values, found);
        EXPECT_THAT(found.lines(), ElementsAre(testing::StartsWith("--" + option + ": "))) << option;
    }
    leadership_options stray;
    stray.group = "shop";
    EXPECT_FALSE(stray.validate());
    stray.by = leadership_way::kafka_group;
    EXPECT_TRUE(stray.validate());
}

TEST_F(Settings, EachValueOfAListIsNamedByItsOwnPlace) {
    const settings values = resolve(
        {{"outbox", "sqlit:a", "sqlit:a", "m.yaml:3:7"},
         {"outbox", "sqlite:b", "sqlite:b", "m.yaml:4:7"},
         {"outbox", "sqlite:c", "sqlite:c", "m.yaml:5:7"},
         {"sink", "local:b", "local:b", "m.yaml:6:7"}},
        {}
    );
    values.command().check(values, found);
    EXPECT_THAT(found.lines(), ElementsAre(testing::StartsWith("m.yaml:3:7: outbox: ")));
}

TEST_F(Settings, EveryDocumentedLimitCanBeUsedAlone) {
    for (const std::string path : {"relay", "consume"}) {
        const command_spec& command = *find_command(path);
        std::vector<given_value> needed;
        for (const option_spec& option : command.options) {
            const std::string example{option.example};
            if (option.required) needed.push_back({std::string{option.name}, example, example, ""});
        }
        for (const option_spec& option : command.options) {
            for (const std::string& limit : {std::string{option.least}, std::string{option.most}}) {
                if (limit.empty()) continue;
                found = {};
                const settings values = settings::resolve(
                    command,
                    needed,
                    std::vector<given_value>{{std::string{option.name}, limit, limit, ""}},
                    true,
                    found
                );
                command.check(values, found);
                EXPECT_THAT(found.lines(), IsEmpty()) << path << " --" << option.name << " " << limit;
            }
        }
    }
}

TEST_F(Settings, AValueThatFollowsItsBoundIsShownWithIt) {
    const settings values =
        resolve({}, {{"window-bytes", "2MiB", "2MiB", ""}, {"fetch-rows", "30000", "30000", ""}});
    EXPECT_EQ(values.bytes("fetch-bytes"), 2U << 20);
    EXPECT_EQ(values.count("window-rows"), 30'000U);
    for (const setting& s : values.all()) {
        if (s.option->name == "fetch-bytes") {
            EXPECT_EQ(s.origin, "as window_bytes");
        }
    }
}

TEST_F(Settings, TwoValuesThatContradictEachOtherAreStillAFault) {
    const settings values = resolve(
        {{"outbox", "sqlite:a", "sqlite:a", ""}, {"sink", "local:b", "local:b", ""}},
        {{"fetch-bytes", "3MiB", "3MiB", ""}, {"window-bytes", "2MiB", "2MiB", ""}}
    );
    values.command().check(values, found);
    EXPECT_THAT(found.lines(), ElementsAre(HasSubstr("window_bytes")));
}

TEST_F(Settings, AnOptionGivenTwiceIsAFault) {
    (void)resolve({}, {{"sink", "local:a", "local:a", ""}, {"sink", "local:b", "local:b", ""}});
    EXPECT_THAT(found.lines(), ElementsAre("--sink is given twice; give it once"));
}

}  // namespace
}  // namespace millrace::app
