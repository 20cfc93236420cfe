#include "contract/outbox_source_contract.hpp"

#include "contract/outbox_worlds.hpp"

#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using condition = bury_request::condition;

TEST_P(OutboxSource, HasNoRowsAtFirst) {
    const auto reply = fetch();
    EXPECT_THAT(ids(reply.ahead), IsEmpty());
    EXPECT_THAT(ids(reply.filled), IsEmpty());
    EXPECT_FALSE(reply.more);
    EXPECT_THAT(parked(), IsEmpty());
}

TEST_P(OutboxSource, GivesBackEveryByteOfEveryRow) {
    const std::string binary("\0\xff\x80 a\n", 6);
    const std::vector<event> events{
        {"orders", "k", "v", {}, std::nullopt},
        {"orders", "", "", {}, std::nullopt},
        {"orders", std::nullopt, std::nullopt, {}, 0},
        {"t\xc3\xb6pic", binary, binary, {{"a", "text"}, {"", ""}, {"n", std::nullopt}, {"b", binary}}, 17},
        {"orders", std::string(300'000, 'k'), std::string(2'000'000, 'v'), {}, std::nullopt},
    };
    for (const auto& e : events)
        world->put(e);
    const auto reply = fetch({.bytes_max = 10'000'000});
    ASSERT_EQ(reply.ahead->rows().size(), events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto& row = reply.ahead->rows()[i];
        const auto& e = events[i];
        EXPECT_EQ(row.topic, e.topic);
        EXPECT_EQ(row.key, e.key) << i;
        EXPECT_EQ(row.value, e.value) << i;
        EXPECT_EQ(row.partition, e.partition) << i;
        EXPECT_EQ(row.malformed, "");
        ASSERT_EQ(row.headers.size(), e.headers.size());
        for (std::size_t h = 0; h < e.headers.size(); ++h) {
            EXPECT_EQ(row.headers[h].name, e.headers[h].name);
            EXPECT_EQ(row.headers[h].value, e.headers[h].value);
        }
    }
}

TEST_P(OutboxSource, ReadsAheadInOrderOfIdAboveTheCursor) {
    std::vector<std::int64_t> all;
    for (int i = 0; i < 5; ++i)
        all.push_back(put(an_event("a")));
    EXPECT_EQ(rows(), all);
    EXPECT_THAT(ids(fetch({.after = row_id{all[2]}}).ahead), ElementsAre(all[3], all[4]));
    EXPECT_THAT(ids(fetch({.after = row_id{all[4]}}).ahead), IsEmpty());
}

TEST_P(OutboxSource, StopsAtTheLimitOfRowsAndSaysWhetherThereIsMore) {
    for (int i = 0; i < 3; ++i)
        put(an_event("a"));
    const auto some = fetch({.rows_max = 2});
    EXPECT_EQ(some.ahead->rows().size(), 2u);
    EXPECT_TRUE(some.more);
    const auto all = fetch({.rows_max = 3});
    EXPECT_EQ(all.ahead->rows().size(), 3u);
    EXPECT_FALSE(all.more);
}

TEST_P(OutboxSource, StopsAtTheLimitOfBytesButGivesALargeRowAlone) {
    const event large{"orders", "a", std::string(10'000, 'v'), {}, std::nullopt};
    for (int i = 0; i < 4; ++i)
        put(large);
    const auto some = fetch({.bytes_max = 15'000});
    EXPECT_GE(some.ahead->rows().size(), 1u);
    EXPECT_LE(some.ahead->rows().size(), 2u);
    EXPECT_TRUE(some.more);
    const auto one = fetch({.bytes_max = 100});
    EXPECT_EQ(one.ahead->rows().size(), 1u);
    EXPECT_TRUE(one.more);
}

TEST_P(OutboxSource, FindsRowsThatAppearedInGapsAndReadsNothingAheadWhenAskedNotTo) {
    const auto first = put(an_event("a"));
    world->skip_ids(3);
    const auto last = put(an_event("a"));
    ASSERT_EQ(last, first + 4);
    const id_range gap{row_id{first + 1}, row_id{last - 1}};
    EXPECT_THAT(ids(fetch({.after = row_id{last}, .gaps = {gap}}).filled), IsEmpty());
    world->put_at(row_id{first + 2}, an_event("a"));
    const auto reply = fetch({.rows_max = 0, .gaps = {gap}});
    EXPECT_THAT(ids(reply.filled), ElementsAre(first + 2));
    EXPECT_THAT(ids(reply.ahead), IsEmpty());
}

TEST_P(OutboxSource, GivesRowsOfSeveralGapsInOrderOfId) {
    std::vector<std::int64_t> all;
    for (int i = 0; i < 6; ++i)
        all.push_back(put(an_event("a")));
    const auto range = [&](std::size_t a, std::size_t b) { return id_range{row_id{all[a]}, row_id{all[b]}}; };
    const auto reply = fetch({.after = row_id{all[5]}, .gaps = {range(0, 1), range(3, 3), range(5, 5)}});
    EXPECT_THAT(ids(reply.filled), ElementsAre(all[0], all[1], all[3], all[5]));
    EXPECT_FALSE(reply.gaps_more);
}

TEST_P(OutboxSource, DeletesExactlyTheDeliveredRangesAndCountsRows) {
    std::vector<std::int64_t> all;
    for (int i = 0; i < 6; ++i)
        all.push_back(put(an_event("a")));
    fetch();
    EXPECT_EQ(remove({{row_id{all[0]}, row_id{all[1]}}, {row_id{all[3]}, row_id{all[3]}}}), 3u);
    EXPECT_THAT(rows(), ElementsAre(all[2], all[4], all[5]));
    EXPECT_EQ(remove({{row_id{all[0]}, row_id{all[1]}}}), 0u) << "deleting again is harmless";
    EXPECT_EQ(remove({}), 0u);
}

TEST_P(OutboxSource, ReadsSweepsAndDeletesTheHighestIdThatThereIs) {
    const auto highest = row_id{std::numeric_limits<std::int64_t>::max()};
    const auto low = put(an_event("a"));
    world->put_at(row_id{highest.value() - 1}, an_event("b"));
    world->put_at(highest, an_event("b"));
    EXPECT_THAT(rows(), ElementsAre(low, highest.value() - 1, highest.value()));
    EXPECT_THAT(ids(fetch({.after = highest}).ahead), IsEmpty());
    EXPECT_THAT(ids(fetch({.after = highest, .until = highest}).ahead), IsEmpty());
    EXPECT_EQ(remove({{row_id{highest.value() - 1}, highest}}), 2u);
    EXPECT_THAT(rows(), ElementsAre(low));
}

TEST_P(OutboxSource, TellsAStaleOwnerThatNothingOfItsRowsWasDeleted) {
    const auto id = put(an_event("a"));
    fetch();
    // Where the epoch is no fence at that moment, it is told by the next one.
    result<std::uint64_t> outcome{1};
    for (int i = 0; i < 100 && outcome; ++i)
        outcome = remove({{row_id{id}, row_id{id}}}, stale);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, errc::not_owner);
    EXPECT_FALSE(outcome.error().in_doubt);
    EXPECT_EQ(remove({{row_id{id + 100}, row_id{id + 100}}}), 0u) << "its owner just had none to delete";
}

TEST_P(OutboxSource, NeverUsesAnIdAgain) {
    put(an_event("a"));
    const auto last = put(an_event("a"));
    fetch();
    ASSERT_TRUE(remove({{row_id{1}, row_id{last}}}));
    EXPECT_GT(put(an_event("a")), last);
}

TEST_P(OutboxSource, DeletesNothingOfATableThatWasMadeAnew) {
    const auto before = put(an_event("a"));
    const auto old_table = fetch().table_identity;
    world->recreate();
    const auto after = put(an_event("b"));
    EXPECT_EQ(remove({{row_id{before}, row_id{before}}, {row_id{after}, row_id{after}}}), 0u);
    const auto reply = fetch();
    EXPECT_THAT(ids(reply.ahead), ElementsAre(after));
    EXPECT_NE(reply.table_identity, old_table);
}

TEST_P(OutboxSource, DeletesNothingOfANewTableBeforeTheFetchThatSawItIsAnswered) {
    const auto before = put(an_event("a"));
    fetch();
    world->recreate();
    const auto after = put(an_event("b"));
    auto answered = false;
    source.fetch({}, [&](const result<fetch_reply>&) { answered = true; });
    EXPECT_EQ(remove({{row_id{before}, row_id{before}}, {row_id{after}, row_id{after}}}), 0u)
        << "the caller means rows of the old table";
    EXPECT_TRUE(world->run_until([&] { return answered; }));
    EXPECT_THAT(rows(), ElementsAre(after));
}

TEST_P(OutboxSource, SettlesRowsOfTheTableThatTheyWereReadFromWhateverWasFetchedSince) {
    const auto before = put(an_event("a"));
    const auto old = fetch().table_identity;
    world->recreate();
    world->put_at(row_id{before}, an_event("b"));
    fetch();
    identity = old;  // a relay that drains looks at no reply any more
    EXPECT_EQ(remove({{row_id{before}, row_id{before}}}), 0u);
    EXPECT_EQ(bury(request({before}, "a", condition::none)).error().code, errc::not_owner);
    EXPECT_THAT(rows(), ElementsAre(before));
    EXPECT_EQ(remove({{row_id{before}, row_id{before}}}), 1u);
}

TEST_P(OutboxSource, KeepsIdentityAndGenerationWhileRowsComeAndGo) {
    put(an_event("a"));
    const auto first = fetch();
    const auto id = put(an_event("a"));
    ASSERT_TRUE(remove({{row_id{id}, row_id{id}}}));
    const auto second = fetch();
    EXPECT_EQ(first.table_identity, second.table_identity);
    EXPECT_EQ(first.replay_generation, second.replay_generation);
}

TEST_P(OutboxSource, GivesNoHintAtFirstAndNamesTheStateOfTheTableWithIt) {
    put(an_event("a"));
    const auto from = start();
    EXPECT_EQ(from.low_water, row_id{});
    if (from.table_identity.empty()) return;  // it never gives a hint
    const auto reply = fetch();
    EXPECT_EQ(from.table_identity, reply.table_identity);
    EXPECT_EQ(from.replay_generation, reply.replay_generation);
}

TEST_P(OutboxSource, RemembersTheLowWaterMarkForTheNextOwner) {
    if (!GetParam().remembers_low_water) {
        EXPECT_EQ(hint_after(5, row_id{1}), row_id{});
        return;
    }
    const auto id = put(an_event("a"));
    fetch();
    ASSERT_TRUE(remove({{row_id{id}, row_id{id}}}, owner, row_id{id}));
    EXPECT_EQ(hint_after(200, row_id{id}), row_id{id});
    ASSERT_TRUE(remove({}, owner, row_id{}));
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(start().low_water, row_id{}) << "zero is always remembered";
}

TEST_P(OutboxSource, TakesNoHintFromAStaleOwner) {
    put(an_event("a"));
    fetch();
    EXPECT_EQ(hint_after(20, row_id{1}, stale), row_id{});
}

TEST_P(OutboxSource, DropsTheHintWhenRowsArePutBack) {
    const auto bad = put(an_event("a"));
    fetch();
    hint_after(20, row_id{bad});
    ASSERT_TRUE(bury(request({bad}, "a", condition::park_lane)));
    world->replay({"orders", "a", std::nullopt});
    EXPECT_EQ(hint_after(20, row_id{bad}), row_id{}) << "the owner has not seen the replay yet";
    fetch();
    EXPECT_EQ(hint_after(200, row_id{1}), GetParam().remembers_low_water ? row_id{1} : row_id{});
}

TEST_P(OutboxSource, DropsTheHintOfATableThatWasMadeAnew) {
    const auto id = put(an_event("a"));
    fetch();
    hint_after(20, row_id{id});
    world->recreate();
    EXPECT_EQ(hint_after(20, row_id{id}), row_id{});
}

TEST_P(OutboxSource, MovesARowToTheDeadLetters) {
    const auto bad = put(an_event("a"));
    const auto good = put(an_event("a"));
    fetch();
    ASSERT_TRUE(bury(request({bad}, "a", condition::none)));
    EXPECT_THAT(rows(), ElementsAre(good));
    EXPECT_THAT(
        world->dead_rows(), ElementsAre(outbox_world::dead{row_id{bad}, "refused_record", "too large", 2})
    );
    EXPECT_THAT(parked(), IsEmpty());
}

TEST_P(OutboxSource, MovesNothingForAStaleOwner) {
    const auto bad = put(an_event("a"));
    fetch();
    const auto refused = bury(request({bad}, "a", condition::park_lane), stale);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::not_owner);
    EXPECT_FALSE(refused.error().in_doubt);
    EXPECT_THAT(rows(), ElementsAre(bad));
    EXPECT_THAT(parked(), IsEmpty());
    EXPECT_THAT(world->dead_rows(), IsEmpty());
}

TEST_P(OutboxSource, ParksOneLaneAndMovesItsLaterRowsOnlyWhileItIsParked) {
    const auto bad = put(an_event("a"));
    const auto later = put(an_event("a"));
    fetch();
    const auto early = bury(request({later}, "a", condition::lane_is_parked));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, errc::conflict);
    EXPECT_THAT(rows(), ElementsAre(bad, later)) << "nothing is moved";

    ASSERT_TRUE(bury(request({bad}, "a", condition::park_lane)));
    EXPECT_THAT(parked(), ElementsAre(lane_key{"orders", "a", std::nullopt}));
    EXPECT_THAT(rows(), ElementsAre(later));
    ASSERT_TRUE(bury(request({later}, "a", condition::lane_is_parked)));
    EXPECT_THAT(rows(), IsEmpty());
    EXPECT_EQ(bury(request({bad}, "b", condition::lane_is_parked)).error().code, errc::conflict);
}

TEST_P(OutboxSource, TellsLanesApartByTopicKeyAndPartition) {
    put(an_event("a"));
    fetch();
    const std::string binary("\0\xff", 2);
    const std::vector<lane_key> lanes{
        {"a", "", std::nullopt},
        {"a", binary, std::nullopt},
        {"a", "k", std::nullopt},
        {"a", "k", 0},
        {"b", "k", 0}};
    for (const auto& lane : lanes) {
        auto one = request({}, "", condition::lane_is_parked);
        one.lane = lane;
        EXPECT_FALSE(bury(one));
        one.when = condition::park_lane;
        EXPECT_TRUE(bury(one));
        EXPECT_TRUE(bury(one)) << "parking again is harmless";
        one.when = condition::lane_is_parked;
        EXPECT_TRUE(bury(one));
    }
    EXPECT_THAT(parked(), testing::UnorderedElementsAreArray(lanes));
}

TEST_P(OutboxSource, RefusesToParkARowWithoutAKeyAsALane) {
    const auto bad = put({"orders", std::nullopt, "v", {}, std::nullopt});
    fetch();
    auto wrong = request({bad}, "", condition::park_lane);
    wrong.lane.key.reset();
    EXPECT_EQ(bury(wrong).error().code, errc::invalid_argument);
    EXPECT_THAT(rows(), ElementsAre(bad));
}

TEST_P(OutboxSource, BuriesOnlyOnceWhatIsBuriedAgain) {
    const auto bad = put(an_event("a"));
    fetch();
    ASSERT_TRUE(bury(request({bad}, "a", condition::park_lane)));
    EXPECT_TRUE(bury(request({bad}, "a", condition::park_lane))) << "after a lost reply";
    EXPECT_EQ(world->dead_rows().size(), 1u);
}

TEST_P(OutboxSource, KeepsADeadLetterWhoseIdComesAgain) {
    const auto old = put(an_event("a"));
    fetch();
    ASSERT_TRUE(bury(request({old}, "a", condition::none)));
    world->recreate();
    world->put_at(row_id{old}, an_event("b"));
    fetch();  // says that the table is another one: a relay begins anew
    start();
    fetch();
    auto again = request({old}, "b", condition::none);
    again.detail = "another";
    const auto done = bury(again);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_THAT(
        world->dead_rows(),
        ElementsAre(
            outbox_world::dead{row_id{old}, "refused_record", "too large", 2},
            outbox_world::dead{row_id{old}, "refused_record", "another", 2}
        )
    );
}

TEST_P(OutboxSource, PutsReplayedRowsBackUnderTheirOldIdsAndSaysSo) {
    const auto bad = put(an_event("a"));
    const auto other = put(an_event("b"));
    const auto later = put(an_event("a"));
    const auto before = fetch().replay_generation;
    ASSERT_TRUE(bury(request({bad}, "a", condition::park_lane)));
    ASSERT_TRUE(bury(request({later}, "a", condition::lane_is_parked)));
    EXPECT_EQ(world->replay({"orders", "a", std::nullopt}), 2u);
    const auto reply = fetch();
    EXPECT_THAT(ids(reply.ahead), ElementsAre(bad, other, later));
    EXPECT_EQ(reply.ahead->rows()[0].key, "a");
    EXPECT_NE(reply.replay_generation, before);
    EXPECT_THAT(parked(), IsEmpty());
    EXPECT_THAT(world->dead_rows(), IsEmpty());
}

TEST_P(OutboxSource, UnparksALaneWhoseDeadLettersAreDroppedAndSaysSo) {
    const auto bad = put(an_event("a"));
    const auto before = fetch().replay_generation;
    ASSERT_TRUE(bury(request({bad}, "a", condition::park_lane)));
    EXPECT_EQ(world->drop({"orders", "a", std::nullopt}), 1u);
    EXPECT_THAT(parked(), IsEmpty());
    const auto reply = fetch();
    EXPECT_THAT(ids(reply.ahead), IsEmpty());
    EXPECT_NE(reply.replay_generation, before);
}

TEST_P(OutboxSource, SaysWhichRowsAreMalformedAndReadsTheOthers) {
    const auto good = put(an_event("a"));
    const auto bad = world->put_malformed(an_event("b")).value();
    const auto after = put(an_event("a"));
    const auto reply = fetch();
    ASSERT_THAT(ids(reply.ahead), ElementsAre(good, bad, after));
    EXPECT_EQ(reply.ahead->rows()[0].malformed, "");
    EXPECT_NE(reply.ahead->rows()[1].malformed, "");
    EXPECT_EQ(reply.ahead->rows()[1].key, "b");
    EXPECT_EQ(reply.ahead->rows()[2].malformed, "");
}

TEST_P(OutboxSource, SignalsNewRowsUntilNobodyWatches) {
    fetch();
    int signals = 0;
    EXPECT_EQ(source.signals_changes(), GetParam().signals_changes);
    source.watch([&] { ++signals; });
    put(an_event("a"));
    if (GetParam().signals_changes) {
        EXPECT_TRUE(world->run_until([&] { return signals > 0; }));
    }
    source.watch({});
    const auto before = signals;
    put(an_event("a"));
    fetch();
    // Where the source looks for itself, it does so every 10 ms.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{50};
    (void)world->run_until([&] { return signals > before || std::chrono::steady_clock::now() >= end; });
    EXPECT_EQ(signals, before);
}

INSTANTIATE_TEST_SUITE_P(
    Contract,
    OutboxSource,
    testing::Values(
        outbox_source_case{"sqlite", make_sqlite_outbox_world, false},
        outbox_source_case{"fake", make_fake_outbox_world}
    ),
    [](const auto& which) { return which.param.name; }
);

}  // namespace
}  // namespace millrace::test
