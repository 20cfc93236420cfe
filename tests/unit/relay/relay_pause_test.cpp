// A pause holds also for rows that were read before it; its end gives them back in order.
#include "relay_world.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>

namespace millrace::sim {
namespace {

using testing::IsEmpty;

struct RelayPause : testing::Test {
    /// Rows on topics `t` and `u` in turn, which go out slowly.
    explicit RelayPause(relay_options options = {.client_window_rows = 20})
        : w({.relay = options, .sink = {.capacity = {.request_rows_max = 10}}}) {}

    void put(int rows) {
        for (auto i = 0; i < rows; ++i)
            w.put("k", "v", i % 2 == 0 ? "t" : "u");
    }
    [[nodiscard]] std::size_t appended(const std::string& topic) const {
        return w.order_of("k", topic).size();
    }
    void run_until_appended(std::size_t rows) {
        while (appended("t") < rows)
            w.world.run_for(1ms);
    }

    /// What may still come: rows in flight, and those handed over until the pause is seen.
    void pause(const std::string& topic) {
        w.table.pause(topic);
        w.world.run_for(200ms);
        paused_at = appended("t");
    }
    void resumes(const std::string& topic) {
        w.table.resume(topic);
        ASSERT_TRUE(w.run_until_empty());
        EXPECT_THAT(w.broken, IsEmpty());
        EXPECT_EQ(w.duplicates, 0U);
        const auto order = w.order_of("k", "t");
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    }

    relay_world w;
    std::size_t paused_at{0};
    int tried{0};  ///< Rows that the sink judged.
};

TEST_F(RelayPause, RowsThatWereReadBeforeItStayAndOtherTopicsGoOn) {
    put(2'000);
    w.driver->start(epoch{1});
    run_until_appended(50);
    pause("t");
    w.world.run_for(10s);
    EXPECT_EQ(appended("t"), paused_at);
    EXPECT_LT(paused_at, 500U) << "nothing was held back";
    EXPECT_EQ(appended("u"), 1'000U);
    EXPECT_TRUE(w.driver->empty()) << "all that may be delivered is";
    resumes("t");
    EXPECT_EQ(appended("t"), 1'000U);
}

TEST_F(RelayPause, AllTopicsStayUnderAPauseOfAll) {
    put(2'000);
    w.driver->start(epoch{1});
    run_until_appended(50);
    pause("");
    const auto others = appended("u");
    w.world.run_for(10s);
    EXPECT_EQ(appended("t"), paused_at);
    EXPECT_EQ(appended("u"), others);
    resumes("");
}

TEST_F(RelayPause, RowsThatComeBackFromAFailedRequestStay) {
    put(40);
    w.sink->force("publish", fate::lost_request);
    w.driver->start(epoch{1});
    w.world.run_for(50ms);
    ASSERT_GT(w.driver->counters().in_flight, 0U);
    ASSERT_EQ(appended("t"), 0U);
    w.table.pause("t");
    w.world.run_for(60s);
    EXPECT_EQ(appended("t"), 0U);
    EXPECT_EQ(appended("u"), 20U);
    resumes("t");
}

struct RelayPauseOfAFullWindow : RelayPause {
    RelayPauseOfAFullWindow()
        : RelayPause({.retry_max = 200ms, .fetch_rows = 50, .window_rows = 100, .client_window_rows = 20}) {}
};

TEST_F(RelayPauseOfAFullWindow, IsSeenWhileTheSinkIsAwayAndNothingMoreIsRead) {
    put(1'000);
    w.sink_faults.down = true;
    w.driver->start(epoch{1});
    w.world.run_for(10s);
    w.table.pause("t");
    w.world.run_for(3s);
    w.sink_faults.down = false;
    w.world.run_for(60s);
    EXPECT_EQ(appended("t"), 0U);
    EXPECT_EQ(appended("u"), 500U);
    resumes("t");
}

TEST_F(RelayPause, ATopicInTroubleIsNotTriedAnyMore) {
    w.service.verdict = [this](const outbox_row& row) -> std::optional<error> {
        if (row.topic != "t") return std::nullopt;
        ++tried;
        return refusal(errc::refused_topic, retry_advice::after_delay);
    };
    for (auto i = 0; i < 100; ++i)
        w.put("k" + std::to_string(i), "v", i % 2 == 0 ? "t" : "u");
    w.driver->start(epoch{1});
    w.world.run_for(5s);
    EXPECT_GT(tried, 2);
    w.table.pause("t");
    w.world.run_for(1s);
    tried = 0;
    w.world.run_for(120s);
    EXPECT_EQ(tried, 0);
    EXPECT_EQ(w.first_appends.size(), 50U);
    w.service.verdict = nullptr;
    w.table.resume("t");
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.first_appends.size(), 100U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST_F(RelayPause, HoldsForARelayThatTakesOver) {
    put(200);
    w.table.pause("t");
    w.driver->start(epoch{1});
    w.world.run_for(5s);
    w.driver->halt();
    w.driver->start(epoch{2});
    w.world.run_for(5s);
    EXPECT_EQ(appended("t"), 0U);
    EXPECT_EQ(appended("u"), 100U);
    resumes("t");
}

}  // namespace
}  // namespace millrace::sim
