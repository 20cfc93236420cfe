#include "summary.hpp"

#include <gtest/gtest.h>

namespace millrace::app {
namespace {

using namespace std::chrono_literals;

TEST(WorkTime, CountsOnlyTheTimeInWhichTheCountGrew) {
    const work_time::clock::time_point begin{};
    work_time work(begin);
    work.note(0, begin + 10s);  // waits for a lease
    work.note(100, begin + 11s);
    work.note(300, begin + 12s);
    work.note(300, begin + 60s);  // at the tip
    work.note(350, begin + 60s + 500ms);
    EXPECT_EQ(work.done(), 350U);
    EXPECT_EQ(work.spent(), 2500ms);
    EXPECT_DOUBLE_EQ(work.per_second(), 140);
    EXPECT_EQ(pace_text(work), " in 2.5s, 140/s");
    EXPECT_EQ(pace_json(work), R"("seconds":2.500,"per_second":140.0)");
}

TEST(WorkTime, OfNothingHasNoPace) {
    work_time work({});
    work.note(0, work_time::clock::time_point{5s});
    EXPECT_EQ(pace_text(work), "");
    EXPECT_EQ(pace_json(work), R"("seconds":0.000,"per_second":0.0)");
}

}  // namespace
}  // namespace millrace::app
