#include "client/attempts.hpp"

#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;

// Tests are scripts: at this time the attempt failed so; the machine answers with this. The randomness given
// asks for the longest pause.
struct Attempts : testing::Test {
    static constexpr attempt_failure throttled{failure_class::throttled, false, false};
    static constexpr attempt_failure lost{failure_class::transient, true, false};
    static constexpr attempt_failure not_sent{failure_class::transient, false, false};
    static constexpr attempt_failure final{failure_class::final, false, false};
    static constexpr attempt_failure wrong_clock{failure_class::clock_skew, false, true};
    static constexpr attempt_failure wrong_secret{failure_class::clock_skew, false, false};
    static constexpr attempt_failure expired{failure_class::expired_keys, false, false};

    static attempts::action tell(bool in_doubt = false) { return attempts::tell{.in_doubt = in_doubt}; }
    static attempts::action gave_up() { return attempts::tell{.gave_up = true}; }
    static attempts::action again(nanoseconds pause = 0ns) { return attempts::again{pause}; }
    static attempts::action other_keys() { return attempts::other_keys{}; }

    static attempts with(attempt_options options, nanoseconds timeout = 10s) {
        return {options, mono_time{timeout}};
    }
    attempts::action at(
        attempts& of, nanoseconds time, const attempt_failure& what, nanoseconds longest = 1ns
    ) {
        return of.failed(mono_time{time}, what, budget, static_cast<std::uint64_t>((longest - 1ns).count()));
    }

    retry_budget budget{100};
};

TEST_F(Attempts, PauseLongerAfterEachThrottlingUpToTheLimit) {
    auto request = with({.attempts_max = 10}, 100s);
    EXPECT_EQ(at(request, 0s, throttled, 500ms), again(500ms));
    EXPECT_EQ(at(request, 1s, throttled, 1s), again(1s));
    EXPECT_EQ(at(request, 3s, throttled, 2s), again(2s));
    EXPECT_EQ(at(request, 6s, throttled, 4s), again(4s));
    EXPECT_EQ(at(request, 11s, throttled, 5s), again(5s));
    EXPECT_EQ(at(request, 17s, throttled, 5s), again(5s));
}

TEST_F(Attempts, PauseLessAfterFaultsThanAfterThrottling) {
    auto request = with({});
    EXPECT_EQ(at(request, 0s, lost, 100ms), again(100ms));
    EXPECT_EQ(at(request, 1s, throttled, 500ms), again(500ms));
    EXPECT_EQ(at(request, 2s, not_sent, 200ms), again(200ms));
}

TEST_F(Attempts, SpreadTheirPausesDownToNothing) {
    auto request = with({});
    EXPECT_EQ(at(request, 0s, lost, 1ns), again(1ns));
    EXPECT_EQ(request.failed(mono_time{}, lost, budget, 200'000'000 + 6), again(7ns));  // modulo the ceiling
}

TEST_F(Attempts, EndAtOnceInDoubtWhenAnEffectThatMustNotComeTwiceIsPossible) {
    auto request = with({.repeatable = false});
    EXPECT_EQ(at(request, 0s, lost), tell(true));
}

TEST_F(Attempts, GoOnWithWhatIsNotRepeatableWhileNothingCanHaveHappened) {
    auto request = with({.repeatable = false});
    EXPECT_EQ(at(request, 0s, not_sent), again(1ns));
    EXPECT_EQ(at(request, 1s, throttled), again(1ns));
    EXPECT_EQ(at(request, 2s, wrong_clock), again());
    EXPECT_EQ(at(request, 3s, expired), other_keys());
    EXPECT_EQ(at(request, 4s, lost), tell(true));
}

TEST_F(Attempts, AreNeverInDoubtWhereTheRequestIsRepeatable) {
    auto request = with({.attempts_max = 1});
    EXPECT_EQ(at(request, 0s, lost), gave_up());
}

TEST_F(Attempts, TellThrottlingAtOnceToACallerWithAPaceOfItsOwn) {
    auto request = with({.wait_when_throttled = false});
    EXPECT_EQ(at(request, 0s, lost), again(1ns));
    EXPECT_EQ(at(request, 1s, throttled), tell());
}

TEST_F(Attempts, EndAtARefusalThatIsFinal) {
    auto request = with({});
    EXPECT_EQ(at(request, 0s, final), tell());
}

TEST_F(Attempts, SignAnewByTheServicesClockOnce) {
    auto request = with({});
    EXPECT_EQ(at(request, 0s, wrong_clock), again());
    EXPECT_EQ(at(request, 1s, wrong_clock), tell());
}

TEST_F(Attempts, EndAtAWrongSecretWhichNoClockMends) {
    auto request = with({});
    EXPECT_EQ(at(request, 0s, wrong_secret), tell());
}

TEST_F(Attempts, AskForOtherKeysOnce) {
    auto request = with({});
    EXPECT_EQ(at(request, 0s, expired), other_keys());
    EXPECT_EQ(at(request, 1s, expired), tell());
}

TEST_F(Attempts, GiveUpAfterTheirNumber) {
    auto request = with({.attempts_max = 3});
    EXPECT_EQ(at(request, 0s, lost), again(1ns));
    EXPECT_EQ(at(request, 1s, lost), again(1ns));
    EXPECT_EQ(at(request, 2s, lost), gave_up());
    EXPECT_EQ(request.made(), 3U);
}

TEST_F(Attempts, GiveUpWhenThePauseWouldPassTheTimeOut) {
    auto request = with({}, 1s);
    EXPECT_EQ(at(request, 0s, throttled, 500ms), again(500ms));
    EXPECT_EQ(at(request, 600ms, throttled, 400ms), gave_up());
    auto late = with({}, 1s);
    EXPECT_EQ(at(late, 1s, wrong_clock), gave_up());
    EXPECT_EQ(at(late, 1s, expired), gave_up());
}

TEST_F(Attempts, GiveUpWhenTheBudgetOfAllRequestsIsSpentUntilSuccessesRefillIt) {
    budget = retry_budget(2);
    for (auto expected : {again(1ns), again(1ns), gave_up()}) {
        auto request = with({});
        EXPECT_EQ(at(request, 0s, throttled), expected);
    }
    for (int i = 0; i < 9; ++i)
        budget.succeeded();
    auto early = with({});
    EXPECT_EQ(at(early, 0s, throttled), gave_up());
    budget.succeeded();
    auto refilled = with({});
    EXPECT_EQ(at(refilled, 0s, throttled), again(1ns));
    EXPECT_EQ(at(refilled, 0s, wrong_clock), again());  // costs none
}

TEST_F(Attempts, NeverHaveABudgetBeyondTheStore) {
    budget = retry_budget(1);
    for (int i = 0; i < 1'000; ++i)
        budget.succeeded();
    EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
}

}  // namespace
}  // namespace millrace::aws
