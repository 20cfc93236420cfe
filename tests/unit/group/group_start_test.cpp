#include "group/group_start.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr wall_time new_year{milliseconds{1'767'225'600'500}};

TEST(GroupStart, AnIgnoredStartIsNamedWithTheOneThatTheGroupHas) {
    group_row row;
    row.start = start_policy::latest;
    row.start_at = new_year;
    group_options asked;
    EXPECT_EQ(
        start_is_ignored(asked, row),
        "the group began at latest (2026-01-01T00:00:00Z) and goes on from its checkpoints; the start "
        "position "
        "trim_horizon is ignored"
    );
    row.start = start_policy::at_timestamp;
    asked.start = start_policy::at_timestamp;
    asked.start_at = new_year + std::chrono::hours{25};
    EXPECT_EQ(
        start_is_ignored(asked, row),
        "the group began at 2026-01-01T00:00:00Z and goes on from its checkpoints; the start position "
        "2026-01-02T01:00:00Z is ignored"
    );
    asked.start_at = row.start_at;
    EXPECT_EQ(start_is_ignored(asked, row), std::nullopt);
}

}  // namespace
}  // namespace millrace
