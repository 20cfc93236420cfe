#include "shard/ack_window.hpp"

#include "batches.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

using testing_shard::arrived;
using testing_shard::at;
using testing_shard::batch;

std::optional<checkpoint> reached(std::uint64_t number) {
    return checkpoint{at(number), arrived(number)};
}

TEST(AckWindow, AWholeBatchMovesTheCheckpointToItsLastRecordAndIsForgotten) {
    ack_window window;
    auto b = batch(1, 100);
    const std::weak_ptr<const record_batch> alive = b;
    window.push(std::move(b));
    EXPECT_EQ(window.reached(), std::nullopt);
    EXPECT_EQ(window.acknowledge(0, 99), 100U);
    EXPECT_EQ(window.reached(), reached(100));
    EXPECT_EQ(window.size(), 0U);
    EXPECT_TRUE(alive.expired());
}

TEST(AckWindow, UpToAPositionCountsAcrossBatchesAndNeedNotHitARecord) {
    ack_window window;
    window.push(batch(10, 19));
    window.push(batch(30, 39));
    EXPECT_EQ(window.acknowledge_up_to(at(9)), 0U);
    EXPECT_EQ(window.acknowledge_up_to(at(25)), 10U);
    EXPECT_EQ(window.reached(), reached(19));
    EXPECT_EQ(window.acknowledge_up_to(at(32)), 3U);
    EXPECT_EQ(window.reached(), reached(32));
    EXPECT_EQ(window.acknowledge_up_to(at(12)), 0U);
    EXPECT_EQ(window.acknowledge_up_to(at(99)), 7U);
    EXPECT_EQ(window.size(), 0U);
}

TEST(AckWindow, OutOfOrderTheCheckpointWaitsForTheGapAndThenJumps) {
    ack_window window;
    window.push(batch(1, 5));
    window.push(batch(6, 10));
    EXPECT_EQ(window.acknowledge(1, 7), 7U);
    EXPECT_EQ(window.reached(), std::nullopt);
    EXPECT_EQ(window.unacknowledged(), 3U);
    EXPECT_EQ(window.next_unacknowledged(1), 8U);
    EXPECT_EQ(window.acknowledge(0, 0), 1U);
    EXPECT_EQ(window.reached(), reached(8));
    EXPECT_EQ(window.low(), 8U);
}

TEST(AckWindow, RepeatsAndIndicesOutsideDoNothing) {
    ack_window window;
    EXPECT_EQ(window.acknowledge(0, 5), 0U);
    window.push(batch(1, 4));
    EXPECT_EQ(window.acknowledge(2, 2), 1U);
    EXPECT_EQ(window.acknowledge(2, 2), 0U);
    EXPECT_EQ(window.acknowledge(4, 9), 0U);
    EXPECT_EQ(window.acknowledge(3, 2), 0U);
    EXPECT_EQ(window.acknowledge(0, 99), 3U);
    EXPECT_EQ(window.reached(), reached(4));
}

TEST(AckWindow, TruncateForgetsWhatNobodyWasGiven) {
    ack_window window;
    window.push(batch(1, 4));
    window.push(batch(5, 8));
    window.truncate(2);
    EXPECT_EQ(window.end(), 2U);
    EXPECT_EQ(window.acknowledge(0, 99), 2U);
    EXPECT_EQ(window.reached(), reached(2));
    EXPECT_EQ(window.size(), 0U);
}

TEST(AckWindow, AnEmptyBatchAddsNothing) {
    ack_window window;
    window.push(batch(2, 1));
    EXPECT_EQ(window.end(), 0U);
}

// Against a set of numbers.
RC_GTEST_PROP(AckWindowProperty, AgreesWithASet, ()) {
    ack_window window;
    std::set<std::uint64_t> acknowledged;
    std::uint64_t end = 0;
    const auto low = [&] {
        std::uint64_t i = 0;
        while (acknowledged.contains(i))
            ++i;
        return i;
    };
    for (int i = *rc::gen::inRange(0, 40); i > 0; --i) {
        const auto what = *rc::gen::inRange(0, 4);
        if (what == 0) {
            const auto count = *rc::gen::inRange<std::uint64_t>(1, 150);
            window.push(batch(end + 1, end + count));
            end += count;
        } else if (end > 0) {
            const auto first = *rc::gen::inRange<std::uint64_t>(0, end + 3);
            const auto last = what == 1 ? first : first + *rc::gen::inRange<std::uint64_t>(0, 140);
            std::uint64_t fresh = 0;
            for (auto n = first; n <= last && n < end; ++n)
                fresh += acknowledged.insert(n).second ? 1 : 0;
            RC_ASSERT(window.acknowledge(first, last) == fresh);
        }
        RC_ASSERT(window.low() == low());
        RC_ASSERT(window.end() == end);
        RC_ASSERT(window.unacknowledged() == end - acknowledged.size());
        RC_ASSERT(window.reached().has_value() == (low() > 0));
        if (low() > 0) RC_ASSERT(window.reached() == reached(low()));  // record n has the number n + 1
        const auto from = *rc::gen::inRange<std::uint64_t>(0, end + 2);
        auto next = from;
        while (next < end && acknowledged.contains(next))
            ++next;
        RC_ASSERT(window.next_unacknowledged(from) == std::min(next, end));
        if (low() < end)
            RC_ASSERT(window.at(low()).batch->records()[window.at(low()).at].position == at(low() + 1));
    }
}

}  // namespace
}  // namespace millrace
