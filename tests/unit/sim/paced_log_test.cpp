// The log for events that may come in floods.
#include "paced_log.hpp"

#include "fake_outbox.hpp"
#include "unit/remembered_log.hpp"

#include <gmock/gmock.h>

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct PacedLog : testing::Test {
    void say(const std::string& detail) {
        paced.write_change(log_level::warning, "event", {{"detail", detail}}, detail);
        world.run_for(300ms);
    }

    scheduler world;
    rng random{1};
    test::remembered_log log;
    sim_host host{world, random, {}, &log};
    paced_log paced{host};
};

TEST_F(PacedLog, SaysOnceWhatOnlyRepeatsItself) {
    for (int i = 0; i < 100; ++i)
        say("there is no table");
    EXPECT_THAT(log.lines, ElementsAre(HasSubstr("there is no table")));
    say("access was denied");
    say("access was denied");
    say("there is no table");
    EXPECT_EQ(log.lines.size(), 3U) << "each change of state";
    paced.ended("event");
    say("there is no table");
    EXPECT_EQ(log.lines.size(), 4U) << "it was there meanwhile";
}

TEST_F(PacedLog, SaysAfterAMinuteThatItIsStillSo) {
    for (int i = 0; i < 250; ++i)
        say("there is no table");
    EXPECT_THAT(log.lines, ElementsAre(HasSubstr("there is no table"), HasSubstr("there is no table")));
}

TEST_F(PacedLog, SaysOfEachRowWhatHasTheSameReason) {
    for (const auto* id : {"7", "8", "9"})
        paced.write_change(log_level::warning, "event", {{"id", id}, {"detail", "too large"}}, "too large");
    EXPECT_THAT(log.lines, ElementsAre(HasSubstr("id=7"), HasSubstr("id=8"), HasSubstr("id=9")));
}

TEST_F(PacedLog, SaysOfOneCauseOneLineAndTheOthersAtDebug) {
    const auto fails = [&](const char* event) {
        paced.write_of("away", log_level::warning, event, {{"detail", "refused"}}, "refused");
    };
    for (const auto* event : {"first", "second", "third", "first"})
        fails(event);
    EXPECT_THAT(log.lines, ElementsAre(HasSubstr("first")));
    paced.over("away");
    fails("second");
    fails("first");
    EXPECT_THAT(log.of("second"), ElementsAre(HasSubstr("refused"))) << "a new outage";
    EXPECT_EQ(log.lines.size(), 2U);
    world.run_for(70s);
    fails("third");
    EXPECT_EQ(log.count("third"), 1U) << "who told of it does no more";
}

TEST_F(PacedLog, LeavesOutMostOfAFlood) {
    for (int i = 0; i < 40; ++i)
        say("row " + std::to_string(i));
    EXPECT_LT(log.lines.size(), 10U);
    world.run_for(10s);
    EXPECT_EQ(log.times("event"), 40U);
}

}  // namespace
}  // namespace millrace::sim
