// Scripts of the group protocol: what the group and the leader topic say, what the seat asks for.
#include "leader/kafka_seat.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using S = kafka_seat;

struct KafkaSeat : testing::Test {
    std::vector<S::action> step(const S::event& what, nanoseconds later = 0ms) {
        now += later;
        return seat.step(now, wall, what);
    }
    template <class A>
    static const A* find(const std::vector<S::action>& actions) {
        for (const auto& action : actions) {
            if (const auto* found = std::get_if<A>(&action)) return found;
        }
        return nullptr;
    }
    std::string beat(nanoseconds later = 0ms) {
        const auto actions = step(S::tick{}, later);
        const auto* sent = find<S::send>(actions);
        EXPECT_NE(sent, nullptr);
        return sent == nullptr ? "" : sent->value;
    }
    void own() {
        EXPECT_TRUE(find<S::join>(step(S::begin{})));
        EXPECT_TRUE(step(S::assigned{true}).empty());
    }
    void lead() {
        own();
        const auto sent = beat();
        EXPECT_TRUE(find<S::lead>(step(S::record_seen{sent}, 10ms)));
    }

    mono_time now{std::chrono::hours{1}};
    wall_time wall{1'700'000'000'000ms};
    S seat{{.name = "me", .heartbeat_timeout = 5s, .away = 15s}};
};

TEST_F(KafkaSeat, WritesHeartbeatsAsGoneliDoes) {
    own();
    EXPECT_EQ(beat(), "1700000000000000000%me");
}

TEST_F(KafkaSeat, TwoHeartbeatsNeverBearTheSameTimeAlthoughTheWallClockStandsOrGoesBack) {
    own();
    const auto first = beat();
    wall -= 1h;
    EXPECT_GT(beat(1s), first);
}

TEST_F(KafkaSeat, WritesNothingWithoutPartitionZero) {
    step(S::begin{});
    step(S::assigned{false});
    EXPECT_TRUE(step(S::tick{}, 10s).empty());
    EXPECT_EQ(seat.wake(), std::nullopt);
}

TEST_F(KafkaSeat, LeadsOnlyOnceItsOwnHeartbeatHasComeBack) {
    own();
    const auto sent = beat();
    EXPECT_EQ(seat.deadline(), mono_time::min());
    EXPECT_TRUE(step(S::record_seen{"1600000000000000000%goharvest-1"}).empty());
    EXPECT_TRUE(step(S::record_seen{"1700000000000000000%other"}).empty());
    EXPECT_TRUE(step(S::record_seen{"1699999999999999999%me"}).empty()) << "of an earlier life";
    const auto before = now;
    EXPECT_TRUE(find<S::lead>(step(S::record_seen{sent}, 20ms)));
    EXPECT_EQ(seat.deadline(), before + 5s) << "from the sending, not from the coming back";
}

TEST_F(KafkaSeat, AHeartbeatOfAnotherBehindItsOwnEndsTheLeadAtOnceThoughTheGroupSaysNothing) {
    lead();
    const auto under_way = beat(1s);
    EXPECT_TRUE(find<S::lose>(step(S::record_seen{"1700000000000000000%other"}, 10ms)));
    EXPECT_EQ(seat.deadline(), mono_time::min());
    EXPECT_TRUE(step(S::record_seen{under_way}, 10ms).empty()) << "it may lie before the other's";
    EXPECT_TRUE(step(S::tick{}, 4s).empty()) << "it leaves the topic to the other";
    EXPECT_TRUE(step(S::record_seen{"1700000000500000000%other"}).empty());
    EXPECT_TRUE(step(S::tick{}, 4s).empty());
    // The other was a zombie: nothing is heard of it any more, and the group stays silent.
    const auto again = beat(2s);
    EXPECT_TRUE(find<S::lead>(step(S::record_seen{again}, 10ms)));
}

TEST_F(KafkaSeat, TakesNoOtherRecordForAHeartbeat) {
    for (const auto* value : {"", "%", "12", "x%me", "99999999999999999999%me", "-%me", "12 %me"}) {
        const auto beat = parse_heartbeat(value);
        EXPECT_FALSE(beat && beat->second == "me") << value;
    }
    EXPECT_EQ(parse_heartbeat("12%a%b")->second, "a%b");
}

TEST_F(KafkaSeat, AHeartbeatFromBeforeTheAssignmentProvesNothing) {
    lead();
    const auto old = beat(1s);
    EXPECT_TRUE(find<S::lose>(step(S::revoked{false})));
    step(S::assigned{true});
    EXPECT_TRUE(step(S::record_seen{old}).empty());
}

TEST_F(KafkaSeat, AHeartbeatThatComesBackTooLateMakesNoLeader) {
    own();
    const auto sent = beat();
    EXPECT_TRUE(step(S::record_seen{sent}, 5s).empty());
}

TEST_F(KafkaSeat, FencesItselfWhenNoHeartbeatComesBackAndLeadsAgainWhenOneDoes) {
    lead();
    EXPECT_FALSE(find<S::lose>(step(S::tick{}, 4s)));
    EXPECT_LE(*seat.wake(), seat.deadline());
    EXPECT_TRUE(find<S::lose>(step(S::tick{}, 1s)));
    EXPECT_EQ(seat.deadline(), mono_time::min());
    EXPECT_TRUE(find<S::lead>(step(S::record_seen{beat(2s)})));
}

TEST_F(KafkaSeat, HeartbeatsAreFewerThanTenASecond) {
    lead();
    int sent = 0;
    for (int i = 0; i < 100; ++i)
        sent += find<S::send>(step(S::tick{}, 100ms)) != nullptr ? 1 : 0;
    EXPECT_EQ(sent, 10);
}

TEST_F(KafkaSeat, GivesThePartitionBackOnlyOnceTheRelayHasDrained) {
    lead();
    const auto asked = step(S::revoked{true});
    EXPECT_TRUE(find<S::retire>(asked));
    EXPECT_FALSE(find<S::unassign>(asked));
    EXPECT_GT(seat.deadline(), now) << "what is under way may be settled";
    EXPECT_TRUE(find<S::unassign>(step(S::drained{}, 100ms)));
    EXPECT_EQ(seat.deadline(), mono_time::min());
}

TEST_F(KafkaSeat, ADrainEndsAtTheDeadline) {
    lead();
    step(S::revoked{true});
    const auto late = step(S::tick{}, 5s);
    EXPECT_TRUE(find<S::lose>(late));
    EXPECT_TRUE(find<S::unassign>(late));
    EXPECT_TRUE(step(S::drained{}).empty()) << "too late to matter";
}

TEST_F(KafkaSeat, APartitionThatIsLostIsLostAtOnce) {
    lead();
    const auto lost = step(S::revoked{false});
    EXPECT_TRUE(find<S::lose>(lost));
    EXPECT_TRUE(find<S::unassign>(lost));
}

TEST_F(KafkaSeat, AFollowerAnswersARevocationAtOnce) {
    step(S::begin{});
    step(S::assigned{false});
    EXPECT_TRUE(find<S::unassign>(step(S::revoked{true})));
}

TEST_F(KafkaSeat, GivesWayByLeavingTheGroupAndComesBackLater) {
    lead();
    EXPECT_TRUE(find<S::retire>(step(S::give_way{})));
    EXPECT_TRUE(find<S::leave>(step(S::drained{})));
    step(S::revoked{true});
    EXPECT_TRUE(step(S::left{}).empty());
    EXPECT_TRUE(step(S::tick{}, 14s).empty());
    EXPECT_TRUE(find<S::join>(step(S::tick{}, 1s)));
}

TEST_F(KafkaSeat, StopsOnceItHasDrainedAndLeft) {
    lead();
    EXPECT_TRUE(find<S::retire>(step(S::stop{})));
    EXPECT_TRUE(find<S::leave>(step(S::drained{})));
    EXPECT_TRUE(find<S::stopped>(step(S::left{})));
    EXPECT_TRUE(step(S::stop{}).empty());
}

TEST_F(KafkaSeat, StopsAtOnceWhenItWasNeverInTheGroup) {
    EXPECT_TRUE(find<S::stopped>(step(S::stop{})));
    EXPECT_TRUE(step(S::begin{}).empty());
}

TEST_F(KafkaSeat, StopsWhileItIsAway) {
    lead();
    step(S::give_way{});
    step(S::drained{});
    step(S::left{});
    EXPECT_TRUE(find<S::stopped>(step(S::stop{})));
}

TEST_F(KafkaSeat, ABrokenClientIsReplaced) {
    lead();
    const auto actions = step(S::broken{{errc::unavailable, retry_advice::after_delay, false, "fatal"}});
    EXPECT_TRUE(find<S::lose>(actions));
    EXPECT_TRUE(find<S::leave>(actions));
    step(S::left{});
    EXPECT_TRUE(find<S::join>(step(S::tick{}, 15s)));
}

}  // namespace
}  // namespace millrace
