#include "cli.hpp"

#include "translate.hpp"

#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> split_words(const std::string& text) {
    std::istringstream in{text};
    std::vector<std::string> out;
    for (std::string word; in >> word;)
        out.push_back(word);
    return out;
}

struct CommandLine : testing::Test {
    command_line parse(std::vector<std::string> words) {
        found = {};
        return parse_command_line(std::move(words), found);
    }
    const std::vector<std::string>& faults_of(const std::string& text) {
        (void)parse(split_words(text));
        return found.lines();
    }
    faults found;
};

TEST_F(CommandLine, FlagsAreTakenWithTheirValues) {
    const command_line line =
        parse({"outbox", "put", "--outbox", "sqlite:a", "--value=", "--key", "-x", "--header", "a=[1]"});
    EXPECT_THAT(found.lines(), IsEmpty());
    ASSERT_NE(line.command, nullptr);
    EXPECT_EQ(line.command->path, "outbox put");
    std::vector<std::string> values;
    for (const given_value& v : line.flags)
        values.push_back(v.option + "=" + v.text);
    EXPECT_THAT(values, testing::UnorderedElementsAre("outbox=sqlite:a", "value=", "key=-x", "header=a=[1]"));
}

TEST_F(CommandLine, HelpOfAnUnknownCommandIsAnsweredWithTheNearestOne) {
    EXPECT_EQ(parse({"help", "realy"}).help, "");
    EXPECT_THAT(found.lines(), ElementsAre("unknown command \"realy\"; did you mean \"relay\"?"));
    EXPECT_THAT(
        faults_of("help outbox statz"),
        ElementsAre("unknown command \"outbox statz\"; did you mean \"outbox stats\"?")
    );
    EXPECT_THAT(faults_of("help relay now"), ElementsAre(HasSubstr("unknown command \"relay now\"")));
    EXPECT_THAT(parse({"help", "outbox", "dead"}).help, HasSubstr("Usage: millrace outbox dead COMMAND"));
    EXPECT_THAT(found.lines(), IsEmpty());
}

TEST_F(CommandLine, UnknownCommandsAreAnsweredWithTheNearestOne) {
    EXPECT_THAT(faults_of("realy"), ElementsAre("unknown command \"realy\"; did you mean \"relay\"?"));
    EXPECT_THAT(
        faults_of("outbox statz"),
        ElementsAre("unknown command \"outbox statz\"; did you mean \"outbox stats\"?")
    );
    EXPECT_THAT(
        faults_of("outbox dead lst"),
        ElementsAre("unknown command \"outbox dead lst\"; did you mean "
                    "\"outbox dead list\"?")
    );
    EXPECT_THAT(
        faults_of("frobnicate"),
        ElementsAre(HasSubstr("unknown command \"frobnicate\"; there are relay, consume"))
    );
    EXPECT_THAT(
        faults_of("outbox"),
        ElementsAre("outbox needs a command: init, put, stats, pause, resume, check, dead")
    );
    EXPECT_THAT(faults_of(""), ElementsAre(HasSubstr("millrace needs a command: relay, consume")));
}

TEST_F(CommandLine, UnknownOptionsAreAllAnsweredWithTheNearestOne) {
    EXPECT_THAT(
        faults_of("relay --outbx sqlite:a --leese=3s --sink local:b"),
        ElementsAre(
            "unknown option \"--outbx\" of relay; did you mean \"--outbox\"?",
            "unknown option \"--leese\" of relay; did you mean \"--lease\"?"
        )
    );
    EXPECT_THAT(
        faults_of("--vresion"), ElementsAre("unknown option \"--vresion\"; did you mean \"--version\"?")
    );
    EXPECT_THAT(faults_of("version now"), ElementsAre("unexpected argument \"now\"; options begin with --"));
}

TEST_F(CommandLine, AMissingValueIsNamedBesideOtherFaults) {
    EXPECT_THAT(
        faults_of("relay --leese 3s --sink"),
        ElementsAre("--sink needs a value", "unknown option \"--leese\" of relay; did you mean \"--lease\"?")
    );
}

TEST_F(CommandLine, NegativeNumbersAreValues) {
    const command_line line = parse(split_words("stream create --stream local:a/b --shards -3"));
    EXPECT_THAT(found.lines(), IsEmpty());
    EXPECT_EQ(line.flags.back().text, "-3");
}

TEST_F(CommandLine, RepeatedOptionsAreKeptInOrder) {
    const command_line line = parse(split_words("stream merge --stream local:a/b --shard one --shard two"));
    std::vector<std::string> shards;
    for (const given_value& v : line.flags) {
        if (v.option == "shard") shards.push_back(v.text);
    }
    EXPECT_THAT(shards, ElementsAre("one", "two"));
}

TEST_F(CommandLine, WordsBehindAFileAreACommandLineToExplain) {
    const command_line line = parse(split_words("config explain m.yaml relay --lease 3s"));
    EXPECT_THAT(found.lines(), IsEmpty());
    EXPECT_EQ(line.command->path, "config explain");
    std::vector<std::string> rest;
    for (const given_value& v : line.flags) {
        if (v.option == "words") rest.push_back(v.text);
    }
    EXPECT_THAT(rest, ElementsAre("relay", "--lease", "3s"));
}

TEST(Help, EveryCommandEndsInAnExample) {
    for (const command_spec& command : commands()) {
        const std::string help = help_of(command.path);
        EXPECT_THAT(help, testing::EndsWith("Example:\n  " + std::string{command.example} + "\n"));
        EXPECT_EQ(
            command.example.substr(0, 9 + command.path.size()), "millrace " + std::string{command.path}
        );
        faults found;
        EXPECT_EQ(parse_command_line({split_words(std::string{command.path} + " --help")}, found).help, help);
        EXPECT_TRUE(found.empty());
    }
    EXPECT_THAT(help_of(""), HasSubstr("Example:\n  millrace"));
    EXPECT_THAT(help_of("outbox"), HasSubstr("outbox dead retry"));
}

TEST(Options, EachOneIsCompleteAndItsDefaultFits) {
    for (const command_spec& command : commands()) {
        std::set<std::string_view> names;
        for (const option_spec& option : command.options) {
            EXPECT_TRUE(names.insert(option.name).second) << command.path << " --" << option.name;
            EXPECT_FALSE(option.meaning.empty()) << option.name;
            EXPECT_EQ(option.placeholder.empty(), option.kind == option_kind::flag) << option.name;
            for (const std::string_view value : {option.fallback, option.least, option.most}) {
                EXPECT_EQ(value.empty() ? "" : misfit(option, value), "") << option.name << " " << value;
            }
        }
    }
}

settings defaults_of(std::string_view command) {
    faults found;
    settings out = settings::resolve(*find_command(command), {}, {}, false, found);
    EXPECT_TRUE(found.empty());
    return out;
}

TEST(Options, DefaultsAreThoseOfTheLibrary) {
    const relay_options relay = relay_options_of(defaults_of("relay"));
    const relay_options r;
    EXPECT_EQ(relay.on_poison, r.on_poison);
    EXPECT_EQ(relay.max_attempts, r.max_attempts);
    EXPECT_EQ(relay.retry_min, r.retry_min);
    EXPECT_EQ(relay.retry_max, r.retry_max);
    EXPECT_EQ(relay.fetch_rows, r.fetch_rows);
    EXPECT_EQ(relay.fetch_bytes, r.fetch_bytes);
    EXPECT_EQ(relay.window_rows, r.window_rows);
    EXPECT_EQ(relay.window_bytes, r.window_bytes);
    EXPECT_EQ(relay.client_window_rows, r.client_window_rows);
    EXPECT_EQ(relay.client_window_bytes, r.client_window_bytes);
    EXPECT_EQ(relay.delete_rows, r.delete_rows);
    EXPECT_EQ(relay.delete_delay, r.delete_delay);
    EXPECT_EQ(relay.gaps_max, r.gaps_max);
    EXPECT_EQ(relay.probes_in_flight, r.probes_in_flight);
    EXPECT_EQ(relay.poll_min, r.poll_min);
    EXPECT_EQ(relay.poll_max, r.poll_max);
    EXPECT_EQ(relay.gap_probe_every, r.gap_probe_every);
    EXPECT_EQ(relay.sweep_every, r.sweep_every);
    EXPECT_DOUBLE_EQ(relay.sweep_share, r.sweep_share);
    EXPECT_EQ(relay.drain_limit, r.drain_limit);
    EXPECT_EQ(relay_settings_of(defaults_of("relay")).lease, relay_settings{}.lease);
}

TEST(Options, DefaultsOfAConsumerAreThoseOfTheLibrary) {
    const settings values = defaults_of("consume");
    const shard_options reading = shard_options_of(values);
    const shard_options s;
    EXPECT_EQ(reading.on_failure, s.on_failure);
    EXPECT_EQ(reading.dead_letter_after, s.dead_letter_after);
    EXPECT_EQ(reading.retry_min, s.retry_min);
    EXPECT_EQ(reading.retry_max, s.retry_max);
    EXPECT_EQ(reading.batch_records, s.batch_records);
    EXPECT_EQ(reading.read_records, s.read_records);
    EXPECT_EQ(reading.read_bytes, s.read_bytes);
    EXPECT_EQ(reading.reads_in_flight, s.reads_in_flight);
    EXPECT_EQ(reading.memory_bytes, s.memory_bytes);
    EXPECT_EQ(reading.shard_unacknowledged, s.shard_unacknowledged);
    EXPECT_EQ(reading.read_interval, s.read_interval);
    EXPECT_EQ(reading.tip_interval, s.tip_interval);
    EXPECT_EQ(reading.reads_per_second, s.reads_per_second);
    EXPECT_EQ(reading.read_bytes_per_second, s.read_bytes_per_second);
    EXPECT_EQ(reading.backoff_min, s.backoff_min);
    EXPECT_EQ(reading.backoff_max, s.backoff_max);
    const group_options sharing = group_options_of(values).value();
    const group_options g;
    EXPECT_EQ(sharing.start, g.start);
    EXPECT_EQ(sharing.tick, g.tick);
    EXPECT_EQ(sharing.shard_list_every, g.shard_list_every);
    EXPECT_EQ(sharing.discover_every, g.discover_every);
    EXPECT_EQ(sharing.checkpoint_every, g.checkpoint_every);
    EXPECT_EQ(sharing.checkpoint_records, g.checkpoint_records);
    EXPECT_EQ(sharing.checkpoints_per_second, g.checkpoints_per_second);
    EXPECT_EQ(sharing.drain_limit, g.drain_limit);
    EXPECT_EQ(sharing.tidy_after, g.tidy_after);
    EXPECT_EQ(consumer_settings_of(values).lease, consumer_settings{}.lease);
    EXPECT_EQ(consumer_settings_of(values).idle_exit, std::nullopt);
}

}  // namespace
}  // namespace millrace::app
