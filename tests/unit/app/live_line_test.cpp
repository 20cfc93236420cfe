#include "live_line.hpp"

#include <gtest/gtest.h>

namespace millrace::app {
namespace {

using namespace std::chrono_literals;

TEST(ProgressText, ShowsOnlyWhatIsKnown) {
    EXPECT_EQ(progress_text({.done = 0, .what = "written"}, 0), "0 written  0/s");
    EXPECT_EQ(progress_text({.done = 1'234'567, .what = "written"}, 45'678.9), "1,234,567 written  45,678/s");
}

TEST(ProgressText, GivesTheTimeLeftByBacklogAndRate) {
    EXPECT_EQ(
        progress_text({.done = 12'345, .what = "delivered", .backlog = 20'000}, 4'000),
        "12,345 delivered  4,000/s  backlog 20,000  5.0s left"
    );
    EXPECT_EQ(
        progress_text({.done = 5, .what = "delivered", .backlog = 3'600'000}, 100),
        "5 delivered  100/s  backlog 3,600,000  10h00m left"
    );
}

TEST(ProgressText, GivesNoTimeLeftWithoutARateOrABacklog) {
    EXPECT_EQ(
        progress_text({.done = 5, .what = "delivered", .backlog = 7}, 0.5), "5 delivered  0/s  backlog 7"
    );
    EXPECT_EQ(
        progress_text({.done = 5, .what = "delivered", .backlog = 0}, 10), "5 delivered  10/s  backlog 0"
    );
}

TEST(ProgressText, ShowsHowOldAReadRecordIs) {
    EXPECT_EQ(
        progress_text({.done = 5, .what = "records", .shards = 3, .behind = 12'000ms}, 10),
        "5 records  10/s  3 shards  12s behind"
    );
    EXPECT_EQ(
        progress_text({.done = 5, .what = "records", .shards = 1, .behind = 0ms}, 10),
        "5 records  10/s  1 shard  at the tip"
    );
}

TEST(RateMeter, SmoothsOverSamplesThatLieApart) {
    rate_meter meter;
    const rate_meter::clock::time_point begin{};
    EXPECT_EQ(meter.sample(0, begin), 0);
    EXPECT_EQ(meter.sample(50, begin + 100ms), 0) << "too early to tell";
    EXPECT_DOUBLE_EQ(meter.sample(1'000, begin + 1s), 1'000);
    EXPECT_DOUBLE_EQ(meter.sample(3'000, begin + 2s), 0.6 * 1'000 + 0.4 * 2'000);
}

}  // namespace
}  // namespace millrace::app
