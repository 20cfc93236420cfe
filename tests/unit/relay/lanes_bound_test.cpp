// However many rows are in trouble at once, and however many lanes and topics they belong to, memory is
// bounded.
#include "relay/lanes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct LanesBound : testing::Test {
    static constexpr std::int64_t many = 100'000;

    static relay_options small_window() {
        relay_options options;
        options.window_rows = 200;
        return options;
    }

    /// Holds as many malformed rows; how many were taken.
    std::size_t hold_malformed(const std::string& topics, const std::optional<std::string>& keys) {
        const auto rows = std::make_shared<row_batch>();
        rows->reserve(many);
        for (std::int64_t i = 0; i < many; ++i) {
            outbox_row row;
            row.id = row_id{i};
            row.topic = rows->store(topics.empty() ? "t" : topics + std::to_string(i));
            if (keys) row.key = rows->store(*keys + std::to_string(i));
            row.malformed = "its headers have no values";
            rows->add(row);
        }
        auto* const batch = memory.adopt(rows);
        const auto verdict = std::make_shared<const error>(error{
            errc::refused_record, retry_advice::never, false, "its headers have no values"});
        std::size_t taken = 0;
        for (const auto& row : rows->rows()) {
            troubled_row suspect{memory.keep(row, batch), true};
            suspect.verdict = verdict;
            if (machine.hold(std::move(suspect), 0)) ++taken;
        }
        return taken;
    }

    void expect_bounded(std::size_t taken) const {
        EXPECT_EQ(taken, options.window_rows / 2);
        EXPECT_EQ(machine.rows_held(), taken);
        EXPECT_EQ(machine.count(), taken) << "lanes without a row";
        EXPECT_EQ(machine.deferred_from(), row_id{static_cast<std::int64_t>(taken)});
    }

    relay_options options{small_window()};
    held_rows memory;
    sink_view sink;
    lanes machine{options, sink};
};

TEST_F(LanesBound, RowsWithoutAKeyMakeNoMoreLanesThanTheyHaveRoom) {
    expect_bounded(hold_malformed({}, std::nullopt));
}

TEST_F(LanesBound, RowsOnAsManyKeysMakeNoMoreLanesThanTheyHaveRoom) {
    expect_bounded(hold_malformed({}, "k"));
}

TEST_F(LanesBound, RowsOnAsManyTopicsMakeNoMoreLanesThanTheyHaveRoom) {
    expect_bounded(hold_malformed("t", "k"));
}

TEST_F(LanesBound, ALaterRowOfALaneThatFoundNoRoomWaitsForTheEarlierOne) {
    (void)hold_malformed({}, "k");
    outbox_row later;
    later.id = row_id{many};
    later.topic = "t";
    later.key = "k99999";
    EXPECT_TRUE(machine.claims(later));
    later.key.reset();
    EXPECT_FALSE(machine.claims(later)) << "no other row comes before it";
    later.key = "k99999";
    machine.rewound();
    EXPECT_FALSE(machine.claims(later)) << "they are read again in order";
}

}  // namespace
}  // namespace millrace
