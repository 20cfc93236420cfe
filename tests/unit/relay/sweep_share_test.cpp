#include "relay/relay.hpp"

#include <optional>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

// The machine alone, with a table of rows that the sink keeps for ever.
struct SweepShare : testing::Test {
    void start(outbox_start from) {
        step(relay_event::started{epoch{1}});
        step(relay_event::start_loaded{number_of<relay_action::load_start>(), std::move(from)});
    }
    void start_with_rows() {
        start({});
        for (auto first = 1; first <= 41; first += 10)
            step(relay_event::fetched{number_of<relay_action::fetch>(), page(first, first < 41)});
    }

    void step(relay_event::any what) {
        actions = machine.step(now, 1, std::move(what));
        for (const auto& action : actions)
            if (const auto* wake = std::get_if<relay_action::wake_at>(&action)) wake_at = wake->when;
    }
    template <class Action>
    [[nodiscard]] const Action* find() const {
        for (const auto& action : actions)
            if (const auto* found = std::get_if<Action>(&action)) return found;
        return nullptr;
    }
    template <class Action>
    [[nodiscard]] std::uint64_t number_of() const {
        const auto* found = find<Action>();
        EXPECT_NE(found, nullptr);
        return found == nullptr ? 0 : found->number;
    }

    static fetch_reply page(std::int64_t first, bool more) {
        auto rows = std::make_shared<row_batch>();
        rows->reserve(10);
        for (auto i = first; i < first + 10; ++i) {
            outbox_row row;
            row.id = row_id{i};
            row.topic = rows->store("t");
            rows->add(row);
        }
        return {.ahead = std::move(rows), .more = more, .table_identity = "a"};
    }

    // Turns until the machine asks for a page of the sweep; what else it reads finds nothing.
    mono_time next_page() {
        for (;;) {
            if (const auto* fetch = find<relay_action::fetch>()) {
                if (fetch->request.after < row_id{50}) return now;
                step(relay_event::fetched{fetch->number, fetch_reply{.table_identity = "a"}});
                continue;
            }
            now = std::max(now, wake_at);
            step(relay_event::timer{});
        }
    }

    relay_options options{.fetch_rows = 10, .sweep_every = 60s, .sweep_share = 0.1};
    event_sink::capacity limits;
    relay_machine machine{
        options, {[](const outbox_row&) { return std::optional<error>{}; }, [this] { return limits; }}};
    mono_time now{1h};
    mono_time wake_at{};
    std::vector<relay_action::any> actions;
};

TEST_F(SweepShare, ASlowSweepTakesItsShareOfTimeAtMostAndReadingAheadGoesOnBetweenItsPages) {
    start_with_rows();
    const auto first = next_page();
    EXPECT_GE(first - mono_time{1h}, 60s);
    auto begun = first;
    for (auto page_first = 1; page_first <= 31; page_first += 10) {
        now += 100ms;  // what the page took
        const auto sweep = number_of<relay_action::fetch>();
        step(relay_event::fetched{sweep, page(page_first, true)});
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
