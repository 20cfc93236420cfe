#include "group/give_way.hpp"

#include "relay/silence.hpp"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

constexpr auto after = 30s;

mono_time at(nanoseconds when) {
    return mono_time{1h + when};
}

bool yields(std::vector<seat_reach> led, bool others = true) {
    return gives_way(at(0s), led, others, after);
}

const reach silent{.silent_since = at(-30s), .answered = at(-30s)};
const reach fresh_silence{.silent_since = at(-29s), .answered = at(-29s)};
const reach answers{.silent_since = std::nullopt, .answered = at(-1s)};
const reach idle{};

TEST(GiveWay, ALeaderWithoutAnAnswerFromTheSinkGivesWayToOneThatWaits) {
    EXPECT_TRUE(yields({{.sink = silent, .outbox = answers}}));
    EXPECT_FALSE(yields({{.sink = silent, .outbox = answers}}, false)) << "nobody waits";
    EXPECT_FALSE(yields({{.sink = fresh_silence, .outbox = answers}})) << "not yet";
}

TEST(GiveWay, ALeaderThatDoesNotReachItsOutboxGivesWay) {
    EXPECT_TRUE(yields({{.sink = idle, .outbox = silent}}));
}

TEST(GiveWay, AnIdleLeaderStays) {
    EXPECT_FALSE(yields({{.sink = idle, .outbox = answers}}));
    EXPECT_FALSE(yields({}));
}

TEST(GiveWay, AnAnswerForAnotherOutboxShowsThatTheServersAreReached) {
    EXPECT_FALSE(yields({{.sink = silent, .outbox = answers}, {.sink = answers, .outbox = answers}}));
    EXPECT_FALSE(yields({{.sink = idle, .outbox = silent}, {.sink = idle, .outbox = answers}}));
}

TEST(GiveWay, AnIdleOutboxBesideASilentOneShowsNothing) {
    EXPECT_TRUE(yields({{.sink = silent, .outbox = answers}, {.sink = idle, .outbox = answers}}));
}

TEST(Silence, BeginsWithTheFirstRequestThatIsNotAnswered) {
    silence s;
    EXPECT_EQ(s.since(), std::nullopt);
    s.asked(at(1s));
    s.asked(at(2s));
    EXPECT_EQ(s.since(), at(1s));
    s.answered(at(3s));
    EXPECT_EQ(s.since(), at(3s)) << "one is still waiting";
    s.answered(at(4s));
    EXPECT_EQ(s.since(), std::nullopt);
    EXPECT_EQ(s.last_answer(), at(4s));
}

TEST(Silence, LastsOverRequestsThatFailWithoutAWord) {
    silence s;
    s.asked(at(1s));
    s.failed(at(2s));
    s.asked(at(9s));
    s.failed(at(10s));
    EXPECT_EQ(s.since(), at(1s));
    s.asked(at(11s));
    s.answered(at(12s));
    EXPECT_EQ(s.since(), std::nullopt);
}

TEST(Silence, IsForgottenWithAReset) {
    silence s;
    s.asked(at(1s));
    s.reset();
    EXPECT_EQ(s.since(), std::nullopt);
    s.answered(at(2s));  // of before
    EXPECT_EQ(s.since(), std::nullopt);
}

}  // namespace
}  // namespace millrace
