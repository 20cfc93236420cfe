#include "relay_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

struct RelayReset : testing::Test {
    relay_world w{{.sink = {.suspected = 50}}};
    std::int64_t next{1};

    // Leaves ids out until one is suspected, or not.
    row_id put(bool suspected) {
        for (;; ++next) {
            outbox_row row;
            row.id = row_id{next};
            if (w.sink->suspect(row).has_value() == suspected) break;
            w.table.skip_ids(1);
        }
        ++next;
        return w.put("k");
    }
};

TEST_F(RelayReset, ASuspectStaysBehindARowOfItsLaneThatGoesOutAgain) {
    w.sink->force("publish", fate::lost_request);
    w.sink->force("publish", fate::late);
    const auto first = put(false);
    w.driver->start(epoch{1});
    w.world.run_for(50ms);
    ASSERT_EQ(w.driver->counters().in_flight, 1U);
    const auto suspect = put(true);
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.broken, testing::IsEmpty());
    EXPECT_THAT(w.order_of("k"), testing::ElementsAre(first.value(), suspect.value()));
}

}  // namespace
}  // namespace millrace::sim
