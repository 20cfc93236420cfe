#include "put_queue.hpp"

#include "put_entry.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using verdict = put_queue::verdict;

constexpr mono_time start{std::chrono::hours{1}};

outgoing_row row_of(std::int64_t id, std::optional<std::string> key, std::size_t bytes = 1) {
    auto batch = std::make_shared<row_batch>();
    outbox_row row;
    row.id = row_id{id};
    if (key) row.key = batch->store(*key);
    row.value = batch->store(std::string(bytes, 'x'));
    batch->reserve(1);
    batch->add(row);
    return {&batch->rows().front(), batch};
}

std::vector<std::int64_t> ids(const std::vector<put_queue::item>& items) {
    std::vector<std::int64_t> out;
    for (const auto& one : items)
        out.push_back(one.row.row->id.value());
    return out;
}

struct queue_test {
    explicit queue_test(put_queue_options options = {}) : queue(options) {}

    void add(std::int64_t id, const char* key, const char* stream = "s") {
        queue.add(
            1, row_of(id, key == nullptr ? std::nullopt : std::optional<std::string>(key)), stream, settled
        );
    }
    std::optional<put_queue::call> next() { return queue.next(now); }
    /// Answers a call: rows for which an outcome is given fail with it, the others are put.
    void answer(std::optional<put_queue::call> call, const std::map<std::int64_t, verdict>& failing = {}) {
        std::vector<put_queue::outcome> how;
        for (const auto id : ids(call->items)) {
            const auto found = failing.find(id);
            if (found == failing.end()) {
                how.push_back({});
            } else {
                how.push_back({found->second, {errc::throttled, retry_advice::after_delay, false, "busy"}});
            }
        }
        queue.done(now, 0, std::move(*call), std::move(how), settled);
    }
    /// What was settled since the last call: published ids, and failures by id.
    std::vector<std::int64_t> put() {
        std::vector<std::int64_t> out;
        for (const auto& one : settled)
            if (!one.failed) out.push_back(one.what.row.row->id.value());
        return out;
    }
    std::map<std::int64_t, errc> failed() {
        std::map<std::int64_t, errc> out;
        for (const auto& one : settled)
            if (one.failed) out[one.what.row.row->id.value()] = one.failed->code;
        return out;
    }

    put_queue queue;
    mono_time now{start};
    std::vector<put_queue::settled> settled;
};

TEST(PutQueue, PutsEachKeyOnceInACallAndInOneCallAtATime) {
    queue_test t;
    for (const auto& [id, key] : {std::pair(1, "a"), {2, "b"}, {3, "a"}, {4, "c"}, {5, "b"}})
        t.add(id, key);
    auto first = t.next();
    ASSERT_TRUE(first);
    EXPECT_THAT(ids(first->items), ElementsAre(1, 2, 4));
    EXPECT_FALSE(t.next()) << "3 and 5 wait for their keys";
    t.answer(std::move(first));
    auto second = t.next();
    EXPECT_THAT(ids(second->items), ElementsAre(3, 5));
    t.answer(std::move(second));
    EXPECT_THAT(t.put(), ElementsAre(1, 2, 4, 3, 5));
    EXPECT_EQ(t.queue.calls_in_flight(), 0U);
}

TEST(PutQueue, RowsWithoutAKeyGoTogether) {
    queue_test t;
    for (int id = 1; id <= 3; ++id)
        t.add(id, nullptr);
    EXPECT_THAT(ids(t.next()->items), ElementsAre(1, 2, 3));
}

TEST(PutQueue, AnEmptyKeyIsAKey) {
    queue_test t;
    t.add(1, "");
    t.add(2, "");
    EXPECT_THAT(ids(t.next()->items), ElementsAre(1));
}

TEST(PutQueue, KeepsToTheLimitsOfACall) {
    queue_test t(
        {.call_records_max = 2, .call_bytes_max = 1'000, .calls_in_flight_max = 3, .calls_at_first = 3}
    );
    for (int id = 1; id <= 5; ++id)
        t.queue.add(1, row_of(id, std::to_string(id), id == 3 ? 5'000 : 1), "s", t.settled);
    EXPECT_THAT(ids(t.next()->items), ElementsAre(1, 2));
    EXPECT_THAT(ids(t.next()->items), ElementsAre(3)) << "one record goes, however large";
    EXPECT_THAT(ids(t.next()->items), ElementsAre(4, 5));
    t.add(6, "6");
    EXPECT_FALSE(t.next()) << "three calls are under way";
}

/// Rows of keys of their own, and calls until no more are allowed.
struct pacing_test : queue_test {
    explicit pacing_test(put_queue_options options) : queue_test(options) {
        for (int id = 1; id <= 5'000; ++id)
            queue.add(1, row_of(id, std::to_string(id)), "s", settled);
    }
    std::vector<put_queue::call> calls() {
        std::vector<put_queue::call> all;
        while (auto call = next())
            all.push_back(std::move(*call));
        return all;
    }
    /// One round: all that is allowed is sent, and answered after this time.
    std::size_t round(std::chrono::milliseconds takes) {
        auto all = calls();
        now += takes;
        for (auto& call : all)
            answer(std::move(call));
        return all.size();
    }
};

TEST(PutQueue, AStreamThatAnswersQuicklyGetsMoreAndMoreCallsAtATime) {
    pacing_test t({.call_records_max = 10, .calls_in_flight_max = 6, .calls_at_first = 2});
    EXPECT_EQ(t.round(std::chrono::milliseconds{50}), 2U);
    EXPECT_GT(t.round(std::chrono::milliseconds{50}), 2U);
    t.round(std::chrono::milliseconds{50});
    t.round(std::chrono::milliseconds{50});
    EXPECT_EQ(t.round(std::chrono::milliseconds{50}), 6U);
}

TEST(PutQueue, AStreamThatAnswersSlowlyGetsFewerCallsThenSmallerOnesUntilItKeepsUp) {
    pacing_test t({.call_records_max = 100, .calls_in_flight_max = 8, .calls_at_first = 8});
    EXPECT_EQ(t.round(std::chrono::seconds{4}), 8U);
    EXPECT_EQ(t.round(std::chrono::seconds{3}), 4U) << "one step for all that queued up together";
    EXPECT_EQ(t.round(std::chrono::seconds{2}), 2U);
    auto last = t.calls();
    ASSERT_THAT(last, SizeIs(1));
    EXPECT_THAT(last[0].items, SizeIs(100));
    t.now += std::chrono::seconds{2};
    t.answer(std::move(last[0]));
    last = t.calls();
    ASSERT_THAT(last, SizeIs(1));
    EXPECT_THAT(last[0].items, SizeIs(50));
    t.now += std::chrono::milliseconds{100};
    t.answer(std::move(last[0]));
    last = t.calls();
    ASSERT_THAT(last, SizeIs(1));
    EXPECT_THAT(last[0].items, SizeIs(100));
}

TEST(PutQueue, CallsThatWereFewAnywayDoNotRaiseWhatIsAllowed) {
    queue_test t({.calls_at_first = 3});
    t.add(1, "slow");
    const auto slow = t.next();
    for (int id = 2; id <= 50; ++id) {
        t.add(id, std::to_string(id).c_str());
        t.answer(t.next());
    }
    for (int id = 1'001; id <= 4'000; ++id)
        t.add(id, std::to_string(id).c_str());
    EXPECT_TRUE(t.next());
    EXPECT_TRUE(t.next());
    EXPECT_FALSE(t.next()) << "nothing has shown that it bears more than three";
}

TEST(PutQueue, StreamsTakeTurnsAndDoNotWaitForEachOther) {
    queue_test t({.call_records_max = 1, .calls_in_flight_max = 1});
    t.add(1, "a", "one");
    t.add(2, "b", "one");
    t.add(3, "a", "two");
    EXPECT_EQ(t.next()->stream, "one");
    EXPECT_EQ(t.next()->stream, "two") << "the same key in another stream is another lane";
    EXPECT_FALSE(t.next());
}

TEST(PutQueue, AThrottledRowIsTriedAgainBeforeWhatIsBehindItAndHoldsUpNobodyElse) {
    queue_test t;
    t.add(1, "a");
    t.add(2, "b");
    t.add(3, "a");
    auto call = t.next();
    t.answer(std::move(call), {{1, verdict::busy}});
    EXPECT_THAT(t.put(), ElementsAre(2));
    t.add(4, "b");
    EXPECT_THAT(ids(t.next()->items), ElementsAre(4)) << "a rests, b goes on";
    EXPECT_GT(t.queue.due(), t.now);
    t.now = t.queue.due();
    auto again = t.next();
    EXPECT_THAT(ids(again->items), ElementsAre(1)) << "3 stays behind it";
    t.answer(std::move(again));
    EXPECT_THAT(ids(t.next()->items), ElementsAre(3));
}

TEST(PutQueue, ARowThatStaysThrottledHoldsUpItsKeyAloneAndIsSpokenOf) {
    queue_test t;
    t.add(1, "a");
    t.add(2, "a");
    std::size_t told = 0;
    const auto began = t.now;
    for (int id = 3; t.now - began < std::chrono::seconds{100}; ++id) {
        t.add(id, "b", id % 2 == 0 ? "s" : "other");
        while (auto call = t.next())
            t.answer(std::move(call), {{1, verdict::busy}});
        told += t.queue.take_slow().size();
        t.now += std::chrono::seconds{1};
    }
    EXPECT_THAT(t.failed(), IsEmpty());
    EXPECT_THAT(t.put(), SizeIs(100)) << "all others went on";
    EXPECT_EQ(told, 2U) << "once a minute";
    while (auto call = t.next())
        t.answer(std::move(call));
    EXPECT_EQ(t.put()[100], 1);
    EXPECT_EQ(t.put()[101], 2);
}

TEST(PutQueue, AStreamThatHoldsManyRowsBackFailsForItselfAndStopsWhatIsBehind) {
    queue_test t({.retry_limit = std::chrono::seconds{5}, .throttled_rows_max = 0});
    t.add(1, "a");
    t.add(2, "a");
    for (auto call = t.next(); call; call = t.next()) {
        t.now += std::chrono::seconds{2};
        t.answer(std::move(call), {{1, verdict::busy}});
        t.now = t.queue.due() == mono_time::max() ? t.now : t.queue.due();
    }
    EXPECT_THAT(t.failed(), ElementsAre(std::pair(1, errc::throttled), std::pair(2, errc::purged)));
    EXPECT_TRUE(t.settled.front().of_stream);
    EXPECT_FALSE(t.settled.back().of_stream);
    EXPECT_THAT(t.put(), IsEmpty());
}

TEST(PutQueue, ACallThatIsTooLargeForSomethingOnTheWayGoesAgainInSmallerOnesInOrder) {
    queue_test t({.call_bytes_max = 1'000'000, .calls_in_flight_max = 1});
    for (int id = 1; id <= 8; ++id)
        t.queue.add(1, row_of(id, std::to_string(id), 936), "s", t.settled);
    const auto size_that_passes = 3 * (936 + kinesis_record_overhead + 1);
    std::vector<std::size_t> sizes;
    for (auto call = t.next(); call; call = t.next()) {
        sizes.push_back(call->items.size());
        ASSERT_LT(sizes.size(), 20U);
        std::map<std::int64_t, verdict> how;
        if (call->bytes > size_that_passes)
            for (const auto id : ids(call->items))
                how[id] = verdict::too_large;
        t.answer(std::move(call), how);
    }
    EXPECT_THAT(sizes, ElementsAre(8, 4, 2, 2, 2, 2));
    EXPECT_THAT(t.put(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_THAT(t.failed(), IsEmpty());
}

TEST(PutQueue, ACallThatIsTooLargeFailsBehindAStop) {
    queue_test t;
    t.add(1, "a");
    t.add(2, "b");
    auto call = t.next();
    t.queue.stop(t.settled);
    t.answer(std::move(call), {{1, verdict::too_large}, {2, verdict::too_large}});
    EXPECT_THAT(t.failed(), SizeIs(2));
    EXPECT_EQ(t.queue.calls_in_flight(), 0U);
    EXPECT_FALSE(t.next());
}

TEST(PutQueue, AFailureStopsWhatIsBehindItButNotWhatIsBeforeIt) {
    queue_test t({.call_records_max = 2, .calls_in_flight_max = 1});
    for (const auto& [id, key] : {std::pair(1, "a"), {2, "b"}, {3, "a"}, {4, "c"}})
        t.add(id, key);
    t.queue.refuse(1, row_of(5, "d"), {errc::refused_record, {}, false, "too large"}, t.settled);
    t.add(6, "e");
    EXPECT_THAT(t.failed(), ElementsAre(std::pair(5, errc::refused_record), std::pair(6, errc::purged)));
    for (auto call = t.next(); call; call = t.next())
        t.answer(std::move(call));
    EXPECT_THAT(t.put(), ElementsAre(1, 2, 3, 4));
}

TEST(PutQueue, AFailureOfACallStopsAllBehindItsFirstRowAlsoInOtherStreams) {
    queue_test t({.call_records_max = 1});
    t.add(1, "a", "one");
    t.add(2, "a", "one");
    t.add(3, "b", "two");
    auto first = t.next();
    auto other = t.next();
    EXPECT_EQ(ids(other->items), std::vector<std::int64_t>{3});
    t.add(4, "c", "two");
    t.answer(std::move(first), {{1, verdict::failed}});
    EXPECT_THAT(
        t.failed(),
        ElementsAre(std::pair(1, errc::throttled), std::pair(2, errc::purged), std::pair(4, errc::purged))
    );
    t.answer(std::move(other));
    EXPECT_THAT(t.put(), ElementsAre(3)) << "what was on its way says what became of it";
    EXPECT_FALSE(t.next());
}

TEST(PutQueue, AStopGivesUpWhatIsNotInFlightUntilItIsOpenedAgain) {
    queue_test t({.call_records_max = 1, .calls_in_flight_max = 1});
    t.add(1, "a");
    t.add(2, "b");
    auto call = t.next();
    t.queue.stop(t.settled);
    EXPECT_THAT(t.failed(), ElementsAre(std::pair(2, errc::purged)));
    t.answer(std::move(call), {{1, verdict::busy}});
    EXPECT_EQ(t.failed()[1], errc::throttled) << "not tried again behind a stop";
    t.add(3, "a");
    EXPECT_EQ(t.failed()[3], errc::purged);
    t.queue.open();
    t.add(4, "a");
    EXPECT_THAT(ids(t.next()->items), ElementsAre(4));
}

/// Whatever fails, and in whatever order calls end: no key is inverted, and each row is settled once.
RC_GTEST_PROP(PutQueue, NeverInvertsAKey, ()) {
    const auto keys = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
    queue_test t({.call_records_max = 3, .calls_in_flight_max = 3, .retry_limit = std::chrono::seconds{1}});
    for (std::size_t i = 0; i < keys.size(); ++i)
        t.add(
            static_cast<std::int64_t>(i), std::to_string(keys[i]).c_str(), keys[i] % 2 == 0 ? "even" : "odd"
        );
    std::map<int, std::vector<std::int64_t>> arrived;
    std::vector<put_queue::call> flying;
    while (true) {
        while (auto call = t.next())
            flying.push_back(std::move(*call));
        if (flying.empty()) {
            if (t.queue.due() == mono_time::max()) break;
            t.now = t.queue.due();
            continue;
        }
        const auto which = *rc::gen::inRange<std::size_t>(0, flying.size());
        auto call = std::move(flying[which]);
        flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(which));
        std::map<std::int64_t, verdict> failing;
        for (const auto id : ids(call.items)) {
            const auto dice = *rc::gen::inRange(0, 10);
            if (dice < 3) failing[id] = dice == 0 ? verdict::failed : verdict::busy;
            if (dice >= 3) arrived[keys[static_cast<std::size_t>(id)]].push_back(id);
        }
        t.answer(std::move(call), failing);
    }
    RC_ASSERT(t.settled.size() == keys.size());
    for (const auto& [key, order] : arrived)
        RC_ASSERT(std::is_sorted(order.begin(), order.end()));
    // Of each key, what was put comes before everything that was not.
    const auto failed = t.failed();
    for (const auto& [key, order] : arrived) {
        for (const auto& [id, code] : failed) {
            if (keys[static_cast<std::size_t>(id)] == key) RC_ASSERT(order.back() < id);
        }
    }
}

}  // namespace
}  // namespace millrace
