#include "relay/poison.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

error fault(errc code, retry_advice retry, bool in_doubt = false) {
    return {code, retry, in_doubt, "simulated"};
}

TEST(Poison, OnlyTheSinksVerdictOnARowAloneMakesItGuilty) {
    const auto never = retry_advice::never;
    EXPECT_EQ(judge(fault(errc::refused_record, never), true), blame::guilty);
    EXPECT_EQ(judge(fault(errc::refused_record, never), false), blame::suspect);
    EXPECT_EQ(judge(fault(errc::refused_topic, retry_advice::after_delay), true), blame::mends);
}

TEST(Poison, AnAbsentOrBusySinkATimeOutAndAnUntriedRowAreNobodysFault) {
    for (const auto code : {errc::unavailable, errc::throttled, errc::purged, errc::cancelled}) {
        EXPECT_EQ(judge(fault(code, retry_advice::never), true), blame::none);
        EXPECT_EQ(judge(fault(code, retry_advice::after_delay), false), blame::none);
    }
    EXPECT_EQ(judge(fault(errc::refused_record, retry_advice::never, true), true), blame::none);
}

TEST(Poison, AFaultOfTheSinkItselfKeepsTheRowApartButNeverGivesItUp) {
    EXPECT_EQ(judge(fault(errc::permission_denied, retry_advice::never), false), blame::suspect);
    EXPECT_EQ(judge(fault(errc::permission_denied, retry_advice::never), true), blame::suspect);
}

TEST(Poison, NoLimitOfAttemptsMeansForEver) {
    EXPECT_FALSE(exhausted(1'000'000, {}));
    EXPECT_TRUE(exhausted(3, {.max_attempts = 3}));
    EXPECT_FALSE(exhausted(2, {.max_attempts = 3}));
}

}  // namespace
}  // namespace millrace
