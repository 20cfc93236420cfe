#include "idle_watch.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

shard_view view_of(const char* owner) {
    shard_view view;
    view.row.shard = shard_id("s");
    view.row.owner = incarnation(owner);
    view.listed = true;
    view.ready = true;
    return view;
}

TEST(IdleWatch, WorkIsOpenWhileAShardIsFreeWaitingOrHeldByAWorkerThatIsGone) {
    EXPECT_TRUE(work_is_open({view_of("")}));
    auto waiting = view_of("");
    waiting.ready = false;
    EXPECT_TRUE(work_is_open({waiting}));
    auto orphan = view_of("gone");
    orphan.owner_lapsed = true;
    EXPECT_TRUE(work_is_open({orphan}));
    EXPECT_TRUE(work_is_open({view_of("other"), view_of("")}));
}

TEST(IdleWatch, WorkIsNotOpenWhenAllIsHeldFinishedOrNoLongerListed) {
    auto mine = view_of("me");
    mine.mine = true;
    auto finished = view_of("");
    finished.row.finished_at = wall_time{};
    auto unlisted = view_of("");
    unlisted.listed = false;
    EXPECT_FALSE(work_is_open({mine, view_of("other"), finished, unlisted}));
}

TEST(IdleWatch, AFinishedShardThatIsOpenAgainIsLookedAtOnceMore) {
    auto again = view_of("");
    again.row.finished_at = wall_time{};
    again.open_again = true;
    EXPECT_TRUE(work_is_open({again}));
    EXPECT_FALSE(work_is_open({again}, true)) << "known for certain: it is reported";
}

TEST(IdleWatch, AShardWhoseRowIsUnreadableIsOpenUntilThatIsReported) {
    auto damaged = view_of("");
    damaged.row.unreadable = "column epoch";
    EXPECT_TRUE(work_is_open({damaged}));
    EXPECT_FALSE(work_is_open({damaged}, true));
}

TEST(IdleWatch, BeforeTheFirstListingNothingIsKnown) {
    EXPECT_TRUE(work_is_open({}));
}

TEST(IdleWatch, IsOverOnlyAfterTheWholeTimeWithoutWork) {
    idle_watch watch(1s);
    EXPECT_FALSE(watch.over(mono_time{0s}, true, 0));
    EXPECT_FALSE(watch.over(mono_time{900ms}, true, 0));
    EXPECT_FALSE(watch.over(mono_time{950ms}, false, 0));
    EXPECT_FALSE(watch.over(mono_time{1s}, true, 0));
    EXPECT_FALSE(watch.over(mono_time{1900ms}, true, 0));
    EXPECT_TRUE(watch.over(mono_time{2s}, true, 0));
}

TEST(IdleWatch, RecordsThatCameAndWentBetweenTwoLooksCount) {
    idle_watch watch(1s);
    EXPECT_FALSE(watch.over(mono_time{0s}, true, 5));
    EXPECT_FALSE(watch.over(mono_time{1500ms}, true, 6));
    EXPECT_FALSE(watch.over(mono_time{2400ms}, true, 6));
    EXPECT_TRUE(watch.over(mono_time{2500ms}, true, 6));
}

TEST(IdleWatch, ALimitOfZeroEndsAtTheFirstQuietMoment) {
    idle_watch watch(0s);
    EXPECT_FALSE(watch.over(mono_time{0s}, false, 0));
    EXPECT_TRUE(watch.over(mono_time{1ms}, true, 3));
}

}  // namespace
}  // namespace millrace
