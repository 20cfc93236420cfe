#include "credentials/key_refresh.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using R = key_refresh;

const error down{errc::unavailable, retry_advice::after_delay, false, "the source is down"};

aws_keys named(const std::string& name) {
    return {.access_key = name, .secret_key = "secret", .session_token = {}, .expires = {}};
}

R::action give(std::vector<R::ask_id> to, const std::string& name) {
    return R::give{std::move(to), named(name)};
}

R::action give_error(std::vector<R::ask_id> to) {
    return R::give{std::move(to), tl::unexpected(down)};
}

const R::action fetch = R::fetch{};

// Scripts: at this time, this happened; these actions follow. Randomness is zero unless a test sets it.
struct KeyRefresh : testing::Test {
    std::vector<R::action> at(nanoseconds t, const R::event& what) {
        return machine.step(mono_time{} + t, what);
    }

    /// Keys that last so long are there.
    void begin(
        nanoseconds t, const std::string& name, std::optional<nanoseconds> lasts, bool outlive = false
    ) {
        EXPECT_THAT(at(t, R::asked{1}), ElementsAre(fetch));
        EXPECT_THAT(at(t, R::fetched{named(name), lasts, outlive}), ElementsAre(give({1}, name)));
    }

    [[nodiscard]] std::optional<nanoseconds> wake() const {
        const auto when = machine.wake();
        return when ? std::optional(*when - mono_time{}) : std::nullopt;
    }

    std::uint64_t random{0};
    key_refresh_options options;
    R machine{options, [this] { return random; }};
};

TEST_F(KeyRefresh, FetchesNothingBeforeSomebodyAsks) {
    EXPECT_THAT(at(0s, R::timer{}), IsEmpty());
    EXPECT_EQ(wake(), std::nullopt);
}

TEST_F(KeyRefresh, FetchesOnceHoweverManyRequestsWait) {
    EXPECT_THAT(at(0s, R::asked{1}), ElementsAre(fetch));
    EXPECT_THAT(at(1s, R::asked{2}), IsEmpty());
    EXPECT_THAT(at(2s, R::asked{3}), IsEmpty());
    EXPECT_THAT(at(3s, R::fetched{named("a"), 1h, false}), ElementsAre(give({1, 2, 3}, "a")));
    EXPECT_THAT(at(4s, R::asked{4}), ElementsAre(give({4}, "a")));
}

TEST_F(KeyRefresh, GivesKeysWithoutAnEndForEver) {
    begin(0s, "a", std::nullopt);
    EXPECT_EQ(wake(), std::nullopt);
    EXPECT_THAT(at(100'000h, R::asked{2}), ElementsAre(give({2}, "a")));
}

TEST_F(KeyRefresh, RenewsAQuarterOfAnHourBeforeTheEndWhileRequestsGoOn) {
    begin(0s, "a", 1h);
    EXPECT_EQ(wake(), 45min);
    EXPECT_THAT(at(45min - 1s, R::timer{}), IsEmpty());
    EXPECT_THAT(at(45min, R::timer{}), ElementsAre(fetch));
    EXPECT_THAT(at(45min + 1s, R::asked{2}), ElementsAre(give({2}, "a")));
    EXPECT_THAT(at(45min + 2s, R::fetched{named("b"), 1h, false}), IsEmpty());
    EXPECT_THAT(at(45min + 3s, R::asked{3}), ElementsAre(give({3}, "b")));
    EXPECT_EQ(wake(), 90min + 2s);
}

TEST_F(KeyRefresh, RenewsEarlierByUpToTheJitter) {
    random = static_cast<std::uint64_t>(nanoseconds(90s).count());
    begin(0s, "a", 1h);
    EXPECT_EQ(wake(), 45min - 90s);
}

TEST_F(KeyRefresh, ARequestBeginsTheRenewalWhereTheTimerCameLate) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(50min, R::asked{2}), ElementsAre(fetch, give({2}, "a")));
}

TEST_F(KeyRefresh, RequestsWaitInTheLastMinute) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(59min, R::asked{2}), ElementsAre(fetch));
    EXPECT_THAT(at(59min + 1s, R::fetched{named("b"), 1h, false}), ElementsAre(give({2}, "b")));
}

TEST_F(KeyRefresh, RequestsWaitNoLongerThanTheLimitWhileTheOldKeysHold) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(59min, R::asked{2}), ElementsAre(fetch));
    EXPECT_THAT(at(59min + 3s, R::asked{3}), IsEmpty());
    EXPECT_EQ(wake(), 59min + 5s);
    EXPECT_THAT(at(59min + 5s, R::timer{}), ElementsAre(give({2}, "a")));
    EXPECT_EQ(wake(), 59min + 8s);
    EXPECT_THAT(at(59min + 9s, R::fetched{named("b"), 1h, false}), ElementsAre(give({3}, "b")));
}

TEST_F(KeyRefresh, RequestsThatWaitOverTheEndGetNoOldKeys) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(1h - 2s, R::asked{2}), ElementsAre(fetch));
    EXPECT_EQ(wake(), std::nullopt);
    EXPECT_THAT(at(1h + 4s, R::timer{}), IsEmpty());
    EXPECT_EQ(wake(), std::nullopt);
    EXPECT_THAT(at(1h + 5s, R::failed{down}), ElementsAre(give_error({2})));
}

TEST_F(KeyRefresh, KeepsOldKeysWhileTheyHoldAndTheSourceIsDown) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(45min, R::timer{}), ElementsAre(fetch));
    EXPECT_THAT(at(45min + 1s, R::failed{down}), IsEmpty());
    EXPECT_THAT(at(59min + 30s, R::asked{2}), ElementsAre(fetch, give({2}, "a")));
    EXPECT_THAT(at(59min + 40s, R::failed{down}), IsEmpty());
    EXPECT_THAT(at(1h, R::asked{3}), ElementsAre(fetch));
    EXPECT_THAT(at(1h, R::failed{down}), ElementsAre(give_error({3})));
}

TEST_F(KeyRefresh, TriesAgainWithGrowingPausesWhileTheSourceIsDown) {
    random = static_cast<std::uint64_t>(-1);
    options.jitter = 0s;
    machine = R{options, [this] { return random; }};
    begin(0s, "a", 1h);
    nanoseconds now = 45min;
    std::vector<nanoseconds> pauses;
    for (int i = 0; i < 8; ++i) {
        EXPECT_THAT(at(now, R::timer{}), ElementsAre(fetch));
        EXPECT_THAT(at(now, R::failed{down}), IsEmpty());
        EXPECT_THAT(at(now, R::timer{}), IsEmpty());
        pauses.push_back(*wake() - now);
        now = *wake();
    }
    EXPECT_LE(pauses.back(), 1min);
    EXPECT_GT(pauses.back(), pauses.front());
}

TEST_F(KeyRefresh, AFirstFetchThatFailsIsToldAndNotRepeatedForEachRequest) {
    random = static_cast<std::uint64_t>(nanoseconds(500ms).count()) - 1;
    EXPECT_THAT(at(0s, R::asked{1}), ElementsAre(fetch));
    EXPECT_THAT(at(0s, R::failed{down}), ElementsAre(give_error({1})));
    EXPECT_THAT(at(499ms, R::asked{2}), ElementsAre(give_error({2})));
    EXPECT_THAT(at(500ms, R::asked{3}), ElementsAre(fetch));
    EXPECT_THAT(at(1s, R::fetched{named("a"), 1h, false}), ElementsAre(give({3}, "a")));
}

TEST_F(KeyRefresh, KeysOfAnInstanceAreGivenBehindTheirEndWithARetryInFiveToTenMinutes) {
    begin(0s, "a", 1h, true);
    EXPECT_THAT(at(45min, R::timer{}), ElementsAre(fetch));
    EXPECT_THAT(at(1h + 1s, R::failed{down}), IsEmpty());
    EXPECT_EQ(wake(), 1h + 1s + 5min);
    EXPECT_THAT(at(1h + 4min, R::asked{2}), ElementsAre(give({2}, "a")));
    random = static_cast<std::uint64_t>(nanoseconds(5min).count());
    EXPECT_THAT(at(1h + 1s + 5min, R::timer{}), ElementsAre(fetch));
    EXPECT_THAT(at(1h + 1s + 5min, R::asked{3}), ElementsAre(give({3}, "a")));
    EXPECT_THAT(at(1h + 1s + 5min, R::failed{down}), IsEmpty());
    EXPECT_EQ(wake(), 1h + 1s + 15min);
    EXPECT_THAT(at(2h, R::timer{}), ElementsAre(fetch));
    EXPECT_THAT(at(2h, R::fetched{named("b"), 1h, true}), IsEmpty());
    EXPECT_THAT(at(2h, R::asked{4}), ElementsAre(give({4}, "b")));
}

TEST_F(KeyRefresh, AnInstanceThatStillGivesExpiredKeysIsAskedAgainInFiveToTenMinutes) {
    begin(0s, "a", -10min, true);
    EXPECT_TRUE(machine.stale(mono_time{} + 1s));
    EXPECT_EQ(wake(), 5min);
    EXPECT_THAT(at(1min, R::asked{2}), ElementsAre(give({2}, "a")));
    EXPECT_THAT(at(5min, R::timer{}), ElementsAre(fetch));
}

TEST_F(KeyRefresh, ExpiredKeysOfOthersAreAFailure) {
    EXPECT_THAT(at(0s, R::asked{1}), ElementsAre(fetch));
    const auto told = at(0s, R::fetched{named("a"), -1s, false});
    ASSERT_EQ(told.size(), 1U);
    const auto& outcome = std::get<R::give>(told[0]).outcome;
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().detail, testing::HasSubstr("clock"));
}

TEST_F(KeyRefresh, ShortLivedKeysAreUsedForHalfTheirTime) {
    begin(0s, "a", 10min);
    EXPECT_EQ(wake(), 5min);
    EXPECT_THAT(at(4min, R::asked{2}), ElementsAre(give({2}, "a")));
}

TEST_F(KeyRefresh, KeysThatLastNoSecondAreFetchedForEachWaitButNeverTwiceAtOnce) {
    begin(0s, "a", 10ms);
    EXPECT_THAT(at(20ms, R::asked{2}), ElementsAre(fetch));
    EXPECT_THAT(at(21ms, R::asked{3}), IsEmpty());
    EXPECT_THAT(at(22ms, R::fetched{named("b"), 10ms, false}), ElementsAre(give({2, 3}, "b")));
}

TEST_F(KeyRefresh, RefusedKeysAreReplacedAndRequestsWaitForOthers) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(20min, R::refused{named("a")}), ElementsAre(fetch));
    EXPECT_THAT(at(20min, R::refused{named("a")}), IsEmpty());
    EXPECT_THAT(at(20min, R::asked{2}), IsEmpty());
    EXPECT_THAT(at(20min + 1s, R::fetched{named("b"), 1h, false}), ElementsAre(give({2}, "b")));
}

TEST_F(KeyRefresh, ALateRefusalOfKeysThatWereReplacedChangesNothing) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(20min, R::refused{named("a")}), ElementsAre(fetch));
    EXPECT_THAT(at(20min + 1s, R::fetched{named("b"), 1h, false}), IsEmpty());
    EXPECT_THAT(at(40min, R::refused{named("a")}), IsEmpty());
    EXPECT_THAT(at(40min, R::asked{2}), ElementsAre(give({2}, "b")));
}

TEST_F(KeyRefresh, TheSameKeysRefusedAgainAndAgainAreFetchedEveryTenSeconds) {
    begin(0s, "a", std::nullopt);
    int fetches = 0;
    for (nanoseconds now = 1min; now < 2min; now += 100ms) {
        for (const auto& action : at(now, R::refused{named("a")})) {
            EXPECT_EQ(action, fetch);
            ++fetches;
            EXPECT_THAT(at(now, R::fetched{named("a"), std::nullopt, false}), IsEmpty());
        }
        EXPECT_THAT(at(now, R::asked{2}), ElementsAre(give({2}, "a")));
    }
    EXPECT_EQ(fetches, 6);
}

TEST_F(KeyRefresh, ARefusalBehindTheEndShortensThePauseOfAnInstance) {
    begin(0s, "a", -1s, true);
    EXPECT_THAT(at(5s, R::refused{named("a")}), IsEmpty());
    EXPECT_EQ(wake(), 10s);
    EXPECT_THAT(at(10s, R::timer{}), ElementsAre(fetch));
}

TEST_F(KeyRefresh, RefusedKeysAreKeptWhileTheSourceIsDown) {
    begin(0s, "a", 1h);
    EXPECT_THAT(at(20min, R::refused{named("a")}), ElementsAre(fetch));
    EXPECT_THAT(at(20min, R::asked{2}), IsEmpty());
    EXPECT_THAT(at(20min + 1s, R::failed{down}), ElementsAre(give({2}, "a")));
}

TEST_F(KeyRefresh, NoMoreRequestsWaitThanMay) {
    options.waiting_max = 2;
    machine = R{options, [] { return std::uint64_t{0}; }};
    EXPECT_THAT(at(0s, R::asked{1}), ElementsAre(fetch));
    EXPECT_THAT(at(0s, R::asked{2}), IsEmpty());
    const auto told = at(0s, R::asked{3});
    ASSERT_EQ(told.size(), 1U);
    const auto& answer = std::get<R::give>(told[0]);
    EXPECT_THAT(answer.to, ElementsAre(3U));
    ASSERT_FALSE(answer.outcome);
    EXPECT_EQ(answer.outcome.error().code, errc::throttled);
}

}  // namespace
}  // namespace millrace::aws
