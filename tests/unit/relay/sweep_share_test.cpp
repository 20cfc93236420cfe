#include "unit/relay/bare_relay.hpp"

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

// A table of rows that the sink keeps for ever.
struct SweepShare : testing::Test, test::bare_relay {
    SweepShare() : bare_relay({.fetch_rows = 10, .sweep_every = 60s, .sweep_share = 0.1}) {}

    void start_with_rows() {
        start({});
        for (auto first = 1; first <= 41; first += 10)
            step(relay_event::fetched{number_of<relay_action::fetch>(), page(first, 10, first < 41)});
    }

    // Turns until the machine asks for a page of the sweep; what else it reads finds nothing.
    mono_time next_page() {
        for (;;) {
            if (const auto* fetch = find<relay_action::fetch>()) {
                if (fetch->request.after < row_id{50}) return now;
                step(relay_event::fetched{fetch->number, fetch_reply{.table_identity = "a"}});
                continue;
            }
            wake();
        }
    }
};

TEST_F(SweepShare, ASlowSweepTakesItsShareOfTimeAtMostAndReadingAheadGoesOnBetweenItsPages) {
    start_with_rows();
    const auto first = next_page();
    EXPECT_GE(first - mono_time{1h}, 60s);
    auto begun = first;
    for (auto page_first = 1; page_first <= 31; page_first += 10) {
        now += 100ms;  // what the page took
        const auto sweep = number_of<relay_action::fetch>();
        step(relay_event::fetched{sweep, page(page_first, 10, true)});
        const auto* next = find<relay_action::fetch>();
        if (next != nullptr) {
            EXPECT_GE(next->request.after, row_id{50});
        }
        const auto again = next_page();
        EXPECT_GE(again - begun, 1s);
        EXPECT_LE(again - begun, 1100ms);
        begun = again;
    }
}

TEST_F(SweepShare, TheFirstSweepAfterAHintDoesNotPauseWhileNothingIsWaiting) {
    start({.low_water = row_id{50}, .table_identity = "a"});
    auto begun = next_page();
    for (auto looked_to = 10; looked_to <= 40; looked_to += 10) {
        EXPECT_FALSE(machine.empty());
        now += 1s;  // what the page took
        const auto sweep = number_of<relay_action::fetch>();
        step(relay_event::fetched{
            sweep, fetch_reply{.more = true, .looked_to = row_id{looked_to}, .table_identity = "a"}});
        const auto again = next_page();
        EXPECT_LE(again - begun, 1100ms);
        begun = again;
    }
    step(relay_event::fetched{
        number_of<relay_action::fetch>(), fetch_reply{.looked_to = row_id{50}, .table_identity = "a"}});
    EXPECT_TRUE(machine.empty());
}

}  // namespace
}  // namespace millrace
