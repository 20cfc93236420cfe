#include "shard/reader.hpp"

#include "batches.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing_shard::at;
using R = shard_reader;
using action = R::action;
using notice = R::notice;

// Scripts: at this time, this happened; the reader answers with this action. Times are offsets from the
// start.
struct ShardReader : testing::Test {
    static constexpr shard_options pace{
        .read_interval = 0ms, .tip_interval = 1s, .backoff_min = 100ms, .backoff_max = 400ms};

    explicit ShardReader(shard_options options = pace) : options_(options) {}

    void from(start_position start) { reader.emplace(options_, std::move(start)); }

    R::outcome step(nanoseconds t, const R::event& what) {
        // The largest draw of each limit, so that pauses are 100, 200, 400, 400 ms.
        const auto limit = std::min<nanoseconds>(400ms, 100ms * (1 << std::min(reader->failures(), 4UL)));
        return reader->step(mono_time{} + t, static_cast<std::uint64_t>(limit.count()) - 1, what);
    }
    action after(nanoseconds t, const R::event& what) { return step(t, what).next; }

    static R::event opened(std::string cursor) { return R::opened{read_cursor{std::move(cursor)}}; }
    static R::event got(
        nanoseconds sent, std::string next, std::optional<std::uint64_t> last, milliseconds behind = 0ms
    ) {
        return R::records{
            read_cursor{std::move(next)},
            last ? std::optional(at(*last)) : std::nullopt,
            behind,
            mono_time{} + sent};
    }
    static R::event failed(errc code) {
        return R::failed{{code, retry_advice::after_delay, false, "simulated"}};
    }
    static action read(std::string cursor) { return R::read{read_cursor{std::move(cursor)}}; }
    static action open(start_position start) { return R::open{std::move(start)}; }
    static action wait(nanoseconds until) { return R::wait{mono_time{} + until}; }

    /// Opens at the trim horizon and reads up to record 7, at the tip.
    void read_to_seven() {
        from(from::trim_horizon{});
        after(0ms, R::started{});
        after(0ms, opened("c0"));
        after(10ms, got(0ms, "c1", 7));
    }

    shard_options options_;
    std::optional<R> reader;
};

TEST_F(ShardReader, OpensAtItsStartAndReadsAtOnceWhileBehind) {
    from(from::trim_horizon{});
    EXPECT_EQ(after(0ms, R::started{}), open(from::trim_horizon{}));
    EXPECT_EQ(after(10ms, opened("c0")), read("c0"));
    EXPECT_EQ(after(20ms, got(10ms, "c1", 5, 900ms)), read("c1"));
    EXPECT_FALSE(reader->at_tip());
    EXPECT_EQ(after(30ms, got(20ms, "c2", std::nullopt, 300ms)), read("c2"));  // empty, yet more follows
}

TEST_F(ShardReader, IsCalmAtTheTip) {
    read_to_seven();
    EXPECT_TRUE(reader->at_tip());
    EXPECT_EQ(after(500ms, R::woken{}), wait(1s));
    EXPECT_EQ(after(1s, R::woken{}), read("c1"));
    EXPECT_EQ(after(1010ms, got(1s, "c2", std::nullopt)), wait(2s));
}

TEST_F(ShardReader, ReadersAtTheTipLookAtTheSameMoments) {
    for (const auto begun : {0ms, 10ms, 400ms, 999ms}) {
        from(from::trim_horizon{});
        after(begun, R::started{});
        after(begun, opened("c0"));
        EXPECT_EQ(after(begun + 1ms, got(begun, "c1", 7)), wait(1s)) << begun.count();
        EXPECT_EQ(after(1s, R::woken{}), read("c1"));
        EXPECT_EQ(after(1010ms, got(1003ms, "c2", std::nullopt)), wait(2s)) << "and it does not drift";
    }
}

TEST_F(ShardReader, AChangeOfTheSourceEndsTheCalmAtOnce) {
    read_to_seven();
    EXPECT_EQ(after(50ms, R::changed{}), read("c1"));
}

TEST_F(ShardReader, AChangeDuringAReadIsNotForgotten) {
    from(from::trim_horizon{});
    after(0ms, R::started{});
    after(0ms, opened("c0"));
    EXPECT_EQ(after(5ms, R::changed{}), action{R::await{}});
    EXPECT_EQ(after(10ms, got(0ms, "c1", std::nullopt)), read("c1"));
    EXPECT_EQ(after(20ms, got(10ms, "c2", 1)), wait(1s));
}

struct PacedShardReader : ShardReader {
    PacedShardReader()
        : ShardReader([] {
              auto options = pace;
              options.read_interval = 200ms;
              return options;
          }()) {}
};

TEST_F(PacedShardReader, KeepsTheReadIntervalAlsoWhileBehindAndOnChanges) {
    from(from::trim_horizon{});
    after(0ms, R::started{});
    EXPECT_EQ(after(0ms, opened("c0")), read("c0"));
    EXPECT_EQ(after(30ms, got(0ms, "c1", 5, 900ms)), wait(200ms));
    EXPECT_EQ(after(200ms, R::woken{}), read("c1"));
    EXPECT_EQ(after(230ms, got(200ms, "c2", 6)), wait(1s));
    EXPECT_EQ(after(250ms, R::changed{}), wait(400ms));
    EXPECT_EQ(after(300ms, R::changed{}), wait(400ms));
    EXPECT_EQ(after(400ms, R::woken{}), read("c2"));
}

struct LimitedShardReader : ShardReader {
    LimitedShardReader()
        : ShardReader([] {
              auto options = pace;
              options.reads_per_second = 5;
              options.read_bytes_per_second = 2 << 20;
              return options;
          }()) {}

    static R::event brought(nanoseconds sent, std::string next, std::size_t bytes, milliseconds behind) {
        return R::records{read_cursor{std::move(next)}, std::nullopt, behind, mono_time{} + sent, bytes};
    }
};

TEST_F(LimitedShardReader, ReadsAgainAtOnceAsTheLimitsAllowWhileBehind) {
    from(from::trim_horizon{});
    after(1s, R::started{});
    EXPECT_EQ(after(1s, opened("c0")), read("c0"));
    EXPECT_EQ(after(1030ms, brought(1s, "c1", 1000, 900ms)), wait(1204ms));
    EXPECT_EQ(after(1204ms, R::woken{}), read("c1"));
    EXPECT_EQ(after(1500ms, brought(1204ms, "c2", 1000, 900ms)), read("c2"));
    EXPECT_EQ(after(1600ms, brought(1500ms, "c3", 10 << 20, 900ms)), wait(7s));
}

TEST_F(LimitedShardReader, PaysForALargeReplyAlsoAtTheTipAndOnChanges) {
    from(from::trim_horizon{});
    after(1s, R::started{});
    after(1s, opened("c0"));
    EXPECT_EQ(after(1100ms, brought(1s, "c1", 10 << 20, 0ms)), wait(6500ms));
    EXPECT_EQ(after(2s, R::changed{}), wait(6500ms));
    EXPECT_EQ(after(6500ms, R::woken{}), read("c1"));
    EXPECT_EQ(after(6600ms, brought(6500ms, "c2", 1000, 0ms)), wait(7s));
}

TEST_F(LimitedShardReader, WaitsAfterARefusalForTheLongerOfBackOffAndPaceAndNoLonger) {
    from(from::trim_horizon{});
    after(1s, R::started{});
    after(1s, opened("c0"));
    const auto refused = after(1s, failed(errc::throttled));  // back-off 100 ms, pace 204 / 0.7 ms
    const auto* until = std::get_if<R::wait>(&refused);
    ASSERT_NE(until, nullptr);
    EXPECT_GT(until->until, mono_time{} + 1203ms);
    EXPECT_LT(until->until, mono_time{} + 1300ms);
}

TEST_F(LimitedShardReader, AFailedOpeningTakesNoToken) {
    from(from::trim_horizon{});
    after(1s, R::started{});
    EXPECT_EQ(after(1s, failed(errc::throttled)), wait(1100ms));
    after(1100ms, R::woken{});
    EXPECT_EQ(after(1100ms, opened("c0")), read("c0"));
}

TEST_F(LimitedShardReader, ACursorIsRenewedOnlyWhenItCanBeUsedAtOnce) {
    from(from::trim_horizon{});
    after(1s, R::started{});
    after(1s, opened("c0"));
    after(1030ms, brought(1s, "c1", 1000, 900ms));
    after(1204ms, R::woken{});
    EXPECT_EQ(after(1210ms, failed(errc::expired_cursor)), wait(1414ms));
    EXPECT_EQ(after(1414ms, R::woken{}), open(from::trim_horizon{}));
    EXPECT_EQ(after(1420ms, opened("c9")), read("c9"));
}

TEST_F(ShardReader, AnExpiredCursorIsRenewedAfterTheLastRecordReadNotTheLastAcknowledged) {
    read_to_seven();
    after(1s, R::woken{});
    EXPECT_EQ(after(1100ms, failed(errc::expired_cursor)), open(from::after{at(7)}));
    EXPECT_EQ(after(1200ms, opened("c9")), read("c9"));
}

TEST_F(ShardReader, ARenewalBeforeTheFirstRecordGoesBackToTheStart) {
    from(from::after{at(3)});
    after(0ms, R::started{});
    after(0ms, opened("c0"));
    EXPECT_EQ(after(10ms, failed(errc::expired_cursor)), open(from::after{at(3)}));
}

TEST_F(ShardReader, ThrottledItBacksOffUpToTheCapAndKeepsItsCursor) {
    read_to_seven();
    EXPECT_EQ(after(1s, R::woken{}), read("c1"));
    nanoseconds t = 1s;
    for (const auto pause : {100ms, 200ms, 400ms, 400ms}) {
        EXPECT_EQ(after(t, failed(errc::throttled)), wait(t + pause));
        EXPECT_EQ(after(t + 1ms, R::changed{}), wait(t + pause));  // no change shortens a back-off
        t += pause;
        EXPECT_EQ(after(t, R::woken{}), read("c1"));
    }
    after(t, got(t, "c2", 8, 1ms));
    EXPECT_EQ(after(t, failed(errc::throttled)), wait(t + 100ms));  // begins anew after a success
}

TEST_F(ShardReader, AnOutageIsRetriedForEverAndIsNotTheTipAndIsSaidLessAndLessOften) {
    read_to_seven();
    std::vector<int> said;
    nanoseconds t = 1s;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(after(t, R::woken{}), read("c1"));
        const auto out = step(t, failed(errc::unavailable));
        if (out.say == notice::failing) said.push_back(i + 1);
        ASSERT_TRUE(std::holds_alternative<R::wait>(out.next));
        EXPECT_LE(std::get<R::wait>(out.next).until, mono_time{} + t + 400ms);
        EXPECT_FALSE(reader->at_tip());
        t += 400ms;
    }
    EXPECT_EQ(said, (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
}

TEST_F(ShardReader, ATrimmedCheckpointGoesOnAtTheHorizonAndReportsTheGapOnce) {
    from(from::after{at(3)});
    after(0ms, R::started{});
    const auto out = step(10ms, failed(errc::position_trimmed));
    EXPECT_EQ(out.next, open(from::trim_horizon{}));
    EXPECT_EQ(out.say, notice::gap);
    after(20ms, opened("c0"));
    const auto again = step(30ms, failed(errc::position_trimmed));
    EXPECT_EQ(again.say, notice::none);
    EXPECT_EQ(again.next, wait(230ms));
    EXPECT_EQ(after(230ms, R::woken{}), open(from::trim_horizon{}));
}

TEST_F(ShardReader, AListedShardThatTheSourceDeniesIsAskedForAgainAndSaidEverMoreRarely) {
    read_to_seven();
    nanoseconds t = 1s;
    after(t, R::woken{});
    std::string said;
    for (int i = 1; i <= 9; ++i) {
        const auto out = step(t, failed(errc::not_found));
        ASSERT_TRUE(std::holds_alternative<R::wait>(out.next));
        EXPECT_FALSE(reader->at_tip());
        said += out.say == notice::missing ? '!' : out.say == notice::none ? '.' : '?';
        t += 400ms;
        EXPECT_EQ(after(t, R::woken{}), open(from::after{at(7)}));
    }
    EXPECT_EQ(said, "!!.!...!.");
    EXPECT_EQ(after(t, opened("c9")), read("c9"));
}

TEST_F(ShardReader, AShardThatIsDeniedAndUnlistedIsAtItsEnd) {
    read_to_seven();
    after(1s, R::woken{});
    const auto out = step(1010ms, R::failed{{errc::not_found, {}, false, "simulated"}, true});
    EXPECT_EQ(out.next, action{R::end{}});
    EXPECT_EQ(out.say, notice::shard_gone);
    EXPECT_EQ(after(2s, R::woken{}), action{R::end{}});
}

TEST_F(ShardReader, EndsWhenNoCursorFollows) {
    read_to_seven();
    after(1s, R::woken{});
    EXPECT_EQ(after(1010ms, R::records{std::nullopt, at(9), 0ms, mono_time{} + 1s}), action{R::end{}});
    EXPECT_TRUE(reader->at_tip());
    EXPECT_EQ(after(1020ms, R::changed{}), action{R::end{}});
}

TEST_F(ShardReader, AnyOtherErrorIsRetriedAndSaidEverMoreRarely) {
    read_to_seven();
    nanoseconds t = 1s;
    std::string said;
    for (int i = 1; i <= 9; ++i) {
        EXPECT_EQ(after(t, R::woken{}), read("c1"));
        said += step(t, failed(errc::permission_denied)).say == notice::failing ? '!' : '.';
        t += 400ms;
    }
    EXPECT_EQ(said, "!!.!...!.");
}

}  // namespace
}  // namespace millrace
