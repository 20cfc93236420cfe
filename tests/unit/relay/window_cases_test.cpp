// What databases and applications do with ids: each case ends with every row delivered, in order per key
// where its ids say so, and with flat memory.

#include "relay_world.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

event row_of(std::string key, std::string value = "v") {
    return {.topic = "t", .key = std::move(key), .value = std::move(value)};
}

void put_at(relay_world& w, row_id id, event what) {
    const auto writer = w.table.begin();
    w.table.insert(writer, id, std::move(what));
    w.table.commit(writer);
}

TEST(WindowCases, SessionsThatTakeTwentyIdsAtATimeLoseNoRow) {
    relay_world w({.relay = {.sweep_every = 2s}});
    w.driver->start(epoch{1});
    // Each session draws from a block of its own; nothing in the database shows the ids that it has not used.
    std::vector<row_id> next;
    for (auto session = 0; session < 4; ++session)
        next.push_back(w.table.skip_ids(20));
    for (auto i = 0; i < 20; ++i) {
        for (auto session = next.size(); session-- > 0;) {
            put_at(w, next[session], row_of("session " + std::to_string(session)));
            next[session] = row_id{next[session].value() + 1};
            w.world.run_for(20ms);
        }
    }
    ASSERT_TRUE(w.run_until_empty(10s));
    EXPECT_EQ(w.first_appends.size(), 80U);
    EXPECT_THAT(w.broken, IsEmpty()) << "each key was written by one session, in order of its ids";
}

TEST(WindowCases, IdsThatAreAThousandApartCostNoMemoryAndNoTime) {
    relay_world w;
    w.driver->start(epoch{1});
    for (auto i = 0; i < 5'000; ++i) {
        w.put("k" + std::to_string(i % 7));
        (void)w.table.skip_ids(999);
        if (i % 100 == 0) w.world.run_for(5ms);
        ASSERT_LE(w.driver->counters().gaps, relay_options{}.gaps_max);
    }
    ASSERT_TRUE(w.run_until_empty(2s));
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(WindowCases, AJumpOfATrillionIdsStopsNothing) {
    relay_world w({.relay = {.sweep_every = 2s}});
    w.driver->start(epoch{1});
    w.put("k");
    w.world.run_for(100ms);
    (void)w.table.skip_ids(1'000'000'000'000);
    w.put("k");
    w.world.run_for(50ms);
    EXPECT_EQ(w.first_appends.size(), 2U);
    ASSERT_TRUE(w.run_until_empty(1s));
    w.world.run_for(10s);
    EXPECT_TRUE(w.driver->empty()) << "sweeps come to their end, too";
}

TEST(WindowCases, TheHighestIdThatThereIsIsARowLikeAnyOther) {
    const auto highest = std::numeric_limits<std::int64_t>::max();
    relay_world w({.relay = {.sweep_every = 2s}});
    w.driver->start(epoch{1});
    w.put("k");
    put_at(w, row_id{highest}, row_of("k"));
    put_at(w, row_id{highest - 1}, row_of("other"));
    ASSERT_TRUE(w.run_until_empty(10s));
    w.put("k");
    ASSERT_TRUE(w.run_until_empty(10s)) << "what comes below it is found by the sweep";
    put_at(w, row_id{highest}, row_of("k"));
    ASSERT_TRUE(w.run_until_empty(10s)) << "also when it comes again";
    EXPECT_EQ(w.first_appends.size(), 4U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(WindowCases, AfterAnExplicitHighIdOneSweepFindsWhereTheSequenceStandsAndLaterRowsComeAtOnce) {
    relay_world w({.relay = {.sweep_every = 10s}});
    w.driver->start(epoch{1});
    w.put("k");
    put_at(w, row_id{1'000'000'000'000}, row_of("high"));
    w.world.run_for(100ms);
    w.put("k");
    w.world.run_for(1s);
    EXPECT_EQ(w.first_appends.size(), 2U);
    w.world.run_for(10s);
    ASSERT_EQ(w.first_appends.size(), 3U) << "the sweep has found it";
    for (auto i = 0U; i < 100; ++i) {
        if (i % 3 == 0) (void)w.table.skip_ids(7);  // of transactions that were rolled back
        w.put("k");
        w.world.run_for(60ms);
        ASSERT_EQ(w.first_appends.size(), 4U + i);
        EXPECT_LE(w.driver->counters().gaps, 2U);
    }
    w.world.run_for(1s);
    EXPECT_TRUE(w.driver->empty());
    EXPECT_EQ(w.driver->counters().gaps, 0U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(WindowCases, WhereTheSequenceIsSeenRowsBelowAnExplicitHighIdNeedNoSweepAlsoUnderALaterRelay) {
    relay_world w({.relay = {.sweep_every = std::chrono::minutes{10}}});
    w.table.tells_sequence = true;
    w.driver->start(epoch{1});
    w.put("k");
    put_at(w, row_id{1'000'000'000'000}, row_of("high"));
    w.world.run_for(100ms);
    std::size_t sent = 2;
    for (std::uint64_t life = 2; life < 5; ++life) {
        for (auto i = 0; i < 100; ++i) {
            if (i % 3 == 0) (void)w.table.skip_ids(i == 99 ? 20'000 : 7);  // of those that were rolled back
            const auto slow = w.table.begin();
            const auto early = w.table.draw(slow);
            w.put("k");
            w.world.run_for(i == 99 ? 120ms : 60ms);
            ASSERT_EQ(w.first_appends.size(), ++sent);
            w.table.insert(slow, early, row_of("slow"));
            w.table.commit(slow);
            w.world.run_for(60ms);
            ASSERT_EQ(w.first_appends.size(), ++sent);
            EXPECT_LE(w.driver->counters().gaps, 3U);
        }
        w.world.run_for(1s);
        EXPECT_TRUE(w.driver->empty());
        const auto begun = w.table.begin();  // drawn under this relay, committed under the next
        const auto early = w.table.draw(begun);
        w.driver->halt();
        w.driver->start(epoch{life});
        w.world.run_for(1s);
        w.table.insert(begun, early, row_of("slow"));
        w.table.commit(begun);
        w.world.run_for(100ms);
        ASSERT_EQ(w.first_appends.size(), ++sent);
    }
    EXPECT_THAT(w.broken, IsEmpty());
}

struct WindowSequence : testing::TestWithParam<bool> {};

TEST_P(WindowSequence, AfterAnExplicitHighIdALaterRowOfABatchNeverOvertakesAnEarlierOne) {
    relay_world w({.relay = {.sweep_every = 2s}});
    w.table.tells_sequence = GetParam();
    w.driver->start(epoch{1});
    put_at(w, row_id{1'000'000'000'000}, row_of("high"));
    for (auto round = 0; round < 200; ++round) {
        for (auto i = 0; i < round % 7; ++i)
            w.put("k" + std::to_string(i % 3));
        const auto slow = w.table.begin();
        const auto early = w.table.draw(slow);
        w.put("other");
        w.world.run_for(20ms);
        w.table.insert(slow, early, row_of("slow"));
        w.table.commit(slow);
    }
    ASSERT_TRUE(w.run_until_empty(10s));
    EXPECT_THAT(w.broken, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(IsSeen, WindowSequence, testing::Bool());

TEST(WindowCases, ARowUnderAnExplicitLowIdWaitsForTheSweepAtMost) {
    relay_world w({.relay = {.sweep_every = 2s}});
    (void)w.table.skip_ids(1'000);
    w.put("k");
    w.driver->start(epoch{1});
    ASSERT_TRUE(w.run_until_empty(1s));
    put_at(w, row_id{17}, row_of("k"));
    put_at(w, row_id{-5}, row_of("negative"));
    ASSERT_TRUE(w.run_until_empty(4s));
    EXPECT_THAT(w.order_of("k"), ElementsAre(1'001, 17));
    EXPECT_THAT(w.order_of("negative"), ElementsAre(-5));
}

TEST(WindowCases, AHundredThousandRollbacksBesideAnIdleWriterKeepMemoryFlat) {
    relay_world w;
    w.driver->start(epoch{1});
    const auto idle = w.table.begin();
    const auto early = w.table.draw(idle);
    std::uint64_t gaps_most = 0;
    std::size_t rows = 0;
    for (auto i = 0; i < 100'000; ++i) {
        const auto lost = w.table.begin();
        (void)w.table.draw(lost);
        w.table.roll_back(lost);
        if (i % 20 != 0) continue;
        w.put("k" + std::to_string(i % 7));
        ++rows;
        if (i % 500 == 0) w.world.run_for(5ms);
        gaps_most = std::max(gaps_most, w.driver->counters().gaps);
    }
    w.world.run_for(1s);
    EXPECT_EQ(w.first_appends.size(), rows);
    EXPECT_LE(gaps_most, relay_options{}.gaps_max);
    EXPECT_EQ(w.driver->counters().bytes_in_memory, 0U);
    w.table.insert(idle, early, row_of("early"));
    w.table.commit(idle);
    ASSERT_TRUE(w.run_until_empty(2s));
    EXPECT_THAT(w.order_of("early"), ElementsAre(early.value()));
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST(WindowCases, IdsThatBeginAgainInATableThatWasMadeAnewAreDelivered) {
    relay_world w;
    w.driver->start(epoch{1});
    for (auto i = 0; i < 50; ++i)
        w.put("k");
    ASSERT_TRUE(w.run_until_empty(1s));
    w.table.recreate();
    for (auto id = 1; id <= 30; ++id)
        put_at(w, row_id{id}, row_of("again"));
    ASSERT_TRUE(w.run_until_empty(2s));
    for (auto id = 1; id <= 30; ++id)
        EXPECT_EQ(w.appends[row_id{id}], 2) << id;
}

TEST(WindowCases, IdsThatBeginAgainInTheSameTableWaitForTheSweepAtMost) {
    relay_world w({.relay = {.sweep_every = 2s}});
    w.driver->start(epoch{1});
    for (auto i = 0; i < 50; ++i)
        w.put("k");
    ASSERT_TRUE(w.run_until_empty(1s));
    for (auto id = 1; id <= 30; ++id)
        put_at(w, row_id{id}, row_of("again"));
    ASSERT_TRUE(w.run_until_empty(4s));
    for (auto id = 1; id <= 30; ++id)
        EXPECT_EQ(w.appends[row_id{id}], 2) << id;
}

TEST(PoisonCases, OfRowsOneTwoThreeOfAKeyTheFirstIsRefusedAndNoneOvertakes) {
    for (const auto policy : {poison_policy::park_row, poison_policy::park_key}) {
        relay_world w({.relay = {.on_poison = policy}});
        w.service.verdict = [](const outbox_row& row) -> std::optional<error> {
            if (row.value != "bad") return std::nullopt;
            return error{errc::refused_record, retry_advice::never, false, "too large"};
        };
        w.put("k", "bad");
        w.put("k");
        w.put("k");
        w.put("other");
        w.driver->start(epoch{1});
        ASSERT_TRUE(w.run_until_empty(2s));
        const std::vector<std::int64_t> after = w.order_of("k");
        if (policy == poison_policy::park_row) {
            EXPECT_THAT(after, ElementsAre(2, 3));
        } else {
            EXPECT_THAT(after, IsEmpty());
            EXPECT_EQ(w.table.dead().size(), 3U);
        }
        EXPECT_THAT(w.order_of("other"), ElementsAre(4));
        EXPECT_THAT(w.broken, IsEmpty());
    }
}

TEST(PoisonCases, BWaitsForAOfItsKeyThatBacksOff) {
    relay_world w;
    auto mended = false;
    w.service.verdict = [&](const outbox_row& row) -> std::optional<error> {
        if (mended || row.value != "a") return std::nullopt;
        return error{errc::refused_record, retry_advice::after_delay, false, "it may mend"};
    };
    w.put("k", "a");
    w.put("k", "b");
    w.put("other", "b");
    w.driver->start(epoch{1});
    w.world.run_for(5s);
    EXPECT_THAT(w.order_of("k"), IsEmpty());
    EXPECT_THAT(w.order_of("other"), ElementsAre(3));
    mended = true;
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_THAT(w.order_of("k"), ElementsAre(1, 2));
    EXPECT_THAT(w.broken, IsEmpty());
}

// How long each of 200 rows of one key takes, written every 5 ms.
nanoseconds p99(relay_world& w) {
    std::vector<nanoseconds> took;
    for (auto i = 0; i < 200; ++i) {
        const auto id = w.put("steady");
        const auto put_at = w.world.now();
        while (w.appends[id] == 0 && w.world.now() < put_at + 5s)
            w.world.run_for(200us);
        took.push_back(w.world.now() - put_at);
        w.world.run_for(5ms);
    }
    std::sort(took.begin(), took.end());
    return took[took.size() - 3];
}

TEST(PoisonCases, ARefusedBatchOfTenThousandKeysIsSortedOutWithoutSlowingAnother) {
    relay_world calm;
    calm.driver->start(epoch{1});
    calm.world.run_for(1s);
    const auto usual = p99(calm);

    relay_world w({.sink = {.blamed_rows = 10'000}});
    w.service.verdict = [](const outbox_row& row) -> std::optional<error> {
        if (row.value != "bad") return std::nullopt;
        return error{errc::refused_record, retry_advice::never, false, "too large"};
    };
    for (auto i = 0; i < 10'000; ++i)
        w.put("k" + std::to_string(i), i == 5'000 ? "bad" : "v");
    w.driver->start(epoch{1});
    while (w.driver->counters().retried == 0)
        w.world.run_for(1ms);
    EXPECT_LE(p99(w), 2 * usual) << "usually " << usual / 1us << " us";
    ASSERT_TRUE(w.run_until_empty());
    EXPECT_EQ(w.table.dead().size(), 1U);
    EXPECT_EQ(w.first_appends.size(), 10'199U);
    EXPECT_THAT(w.broken, IsEmpty());
}

}  // namespace
}  // namespace millrace::sim
