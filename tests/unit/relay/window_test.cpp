#include "relay/window.hpp"

#include "rng.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto least = std::numeric_limits<std::int64_t>::min();
constexpr auto most = std::numeric_limits<std::int64_t>::max();

// The table as one snapshot shows it; `writers` are seen by a later statement.
struct table {
    std::set<std::int64_t> rows;
    std::vector<std::uint64_t> writers;
    std::string identity{"a"};
    std::uint64_t generation{0};

    static std::shared_ptr<const row_batch> batch(const std::vector<std::int64_t>& ids) {
        auto made = std::make_shared<row_batch>();
        for (const auto id : ids) {
            outbox_row row{};
            row.id = row_id{id};
            row.topic = "t";
            made->add(row);
        }
        return made;
    }

    fetch_reply answer(const fetch_request& request) const {
        fetch_reply reply;
        std::vector<std::int64_t> ahead;
        for (auto at = rows.upper_bound(request.after.value()); at != rows.end(); ++at) {
            if (ahead.size() == request.rows_max) {
                reply.more = true;
                break;
            }
            ahead.push_back(*at);
        }
        std::vector<std::int64_t> filled;
        for (const auto& gap : request.gaps) {
            for (auto at = rows.lower_bound(gap.first.value()); at != rows.end() && *at <= gap.last.value();
                 ++at)
                filled.push_back(*at);
        }
        const auto gap_rows_max = std::max<std::size_t>(1, request.gap_bytes_max / 1000);
        if (filled.size() > gap_rows_max) {
            filled.resize(gap_rows_max);
            reply.gaps_more = true;
        }
        reply.ahead = batch(ahead);
        reply.filled = batch(filled);
        reply.writers = writers;
        reply.table_identity = identity;
        reply.replay_generation = generation;
        return reply;
    }
};

struct Window : testing::Test {
    table db;
    window w{100};

    std::vector<std::int64_t> look(std::size_t rows = 100) {
        const auto reply = db.answer(w.look(rows, 1'000'000, 0));
        const auto intake = w.looked(reply);
        std::vector<std::int64_t> ids;
        for (const auto& row : intake.rows)
            ids.push_back(row.row->id.value());
        return ids;
    }
};

TEST_F(Window, AGapIsDeadOnlyWhenItsWritersAreGoneAndALaterProbeMissesIt) {
    db.rows = {1, 3};
    db.writers = {77};
    EXPECT_THAT(look(), ElementsAre(1, 3));
    db.writers = {77, 88};  // 88 began later: it cannot fill the gap
    EXPECT_THAT(look(), IsEmpty());
    EXPECT_TRUE(w.gaps().contains(row_id{2}));
    db.writers = {88};  // this reply's probe may be older than the end of 77
    EXPECT_THAT(look(), IsEmpty());
    EXPECT_TRUE(w.gaps().contains(row_id{2}));
    EXPECT_THAT(look(), IsEmpty());
    EXPECT_FALSE(w.gaps().contains(row_id{2}));
}

TEST_F(Window, WhoMayFillAGapIsAskedOnceAProbeHasMissedIt) {
    const auto asks = [&] {
        const auto request = w.look(100, 1'000'000, 0);
        auto reply = db.answer(request);
        reply.knows_writers = request.wants_writers;
        if (!reply.knows_writers) reply.writers.clear();
        (void)w.looked(reply);
        return request.wants_writers;
    };
    db.rows = {1, 2};
    EXPECT_TRUE(asks()) << "the first look";
    while (!w.gaps().empty())  // that before the lowest id of all
        (void)asks();
    EXPECT_FALSE(asks());
    db.rows.insert(4);
    db.writers = {77};
    EXPECT_FALSE(asks()) << "a gap that most likely is filled in a moment";
    db.rows.insert(6);
    EXPECT_FALSE(asks()) << "not yet probed when this was sent";
    db.writers = {77, 88};
    EXPECT_TRUE(asks());
    db.writers = {88};
    EXPECT_TRUE(asks());
    EXPECT_TRUE(asks());
    EXPECT_TRUE(w.gaps().contains(row_id{3})) << "88 was there when the writers were first looked at";
    db.writers.clear();
    EXPECT_TRUE(asks());
    EXPECT_TRUE(w.gaps().contains(row_id{3})) << "this probe may be older than the end of 88";
    EXPECT_TRUE(asks());
    EXPECT_TRUE(w.gaps().empty());
    EXPECT_FALSE(asks());
}

TEST_F(Window, ARowCommittedBetweenProbeAndListOfWritersIsFoundByTheNextRound) {
    db.rows = {1, 3};
    db.writers = {77};
    (void)look();
    const auto request = w.look(100, 1'000'000, 0);
    auto reply = db.answer(request);
    db.rows.insert(2);
    reply.writers.clear();
    EXPECT_THAT(w.looked(reply).rows, IsEmpty());
    db.writers.clear();
    EXPECT_THAT(look(), ElementsAre(2));
}

TEST_F(Window, IdsMayBeNegativeFarApartAndAtTheLimits) {
    db.rows = {least, -5, 0, 1'000, 1'000'000'000'000, most - 1, most};
    EXPECT_THAT(look(), ElementsAre(least, -5, 0, 1'000, 1'000'000'000'000, most - 1, most));
    EXPECT_THAT(look(), IsEmpty());
    EXPECT_TRUE(w.gaps().empty());
}

TEST_F(Window, MemoryIsFlatWhateverTheNumberOfGaps) {
    for (std::int64_t i = 0; i < 5'000; ++i)
        db.rows.insert(i * 1'000);
    db.writers = {1};
    EXPECT_EQ(look(10'000).size(), 5'000U);
    EXPECT_LE(w.gaps().size(), 100U);
    db.rows.insert(1'999'500);
    std::vector<std::int64_t> found;
    for (auto page = 0; page < 6; ++page) {  // known rows within merged gaps fill whole pages
        for (const auto id : look())
            found.push_back(id);
    }
    EXPECT_THAT(found, ElementsAre(1'999'500));
}

TEST_F(Window, NamesTheLowestRowsThatAreNotSettled) {
    db.rows = {1, 2, 3, 4};
    (void)look();
    w.gone(row_id{2});
    EXPECT_THAT(w.lowest_known(2), ElementsAre(row_id{1}, row_id{3}));
    EXPECT_THAT(w.lowest_known(20), ElementsAre(row_id{1}, row_id{3}, row_id{4}));
}

TEST_F(Window, ARowThatIsKnownIsNotHandedOutAgainByARebuild) {
    db.rows = {1, 2, 3};
    EXPECT_THAT(look(), ElementsAre(1, 2, 3));
    w.rebuild();
    db.rows.insert(0);
    EXPECT_THAT(look(), ElementsAre(0));
}

TEST_F(Window, ARowDeletedWhileAFetchWithAnOlderSnapshotIsUnderWayIsNotHandedOutAgain) {
    db.rows = {1, 2, 3};
    (void)look();
    w.rebuild();
    const auto reply = db.answer(w.look(100, 1'000'000, 0));
    w.gone(row_id{2});
    EXPECT_THAT(w.looked(reply).rows, IsEmpty());
    EXPECT_EQ(w.known(), 2U);
}

TEST_F(Window, TheSweepRevivesAllBelowWhatItFinds) {
    db.rows = {1, 9};
    (void)look();
    (void)look();
    ASSERT_TRUE(w.gaps().empty());
    db.rows.insert(5);
    const auto page = w.swept(db.answer(w.sweep(100, 1'000'000, {})));
    EXPECT_EQ(page.found, 1U);
    EXPECT_TRUE(page.done);
    db.rows.insert(3);  // committed after the page was read: it must come first
    EXPECT_THAT(look(), ElementsAre(3, 5));
}

TEST_F(Window, ReadAheadGoesOnWhereTheSourceStoppedAndLooksOnceMoreAtWhatWasPassedOver) {
    db.rows = {1};
    auto reply = db.answer(w.look(100, 1'000'000, 0));
    reply.more = true;
    reply.looked_to = row_id{300};
    EXPECT_TRUE(w.looked(reply).more);
    EXPECT_EQ(w.cursor(), row_id{300});
    EXPECT_TRUE(w.gaps().contains(row_id{200}));
    db.rows = {1, 200, 301};
    EXPECT_THAT(look(), ElementsAre(200, 301));
    EXPECT_THAT(look(), IsEmpty());
    EXPECT_TRUE(w.gaps().empty());
}

TEST_F(Window, ASweepGoesOnWhereTheSourceStoppedBetweenTwoRows) {
    db.rows = {1, 900};
    (void)look();
    (void)look();
    db.rows.insert(500);
    auto request = w.sweep(100, 1'000'000, {});
    EXPECT_EQ(request.until, row_id{900});
    auto reply = db.answer(request);
    reply.ahead = table::batch({1});
    reply.more = true;
    reply.looked_to = row_id{300};
    EXPECT_FALSE(w.swept(reply).done);
    request = w.sweep(100, 1'000'000, {});
    EXPECT_EQ(request.after, row_id{300});
    const auto page = w.swept(db.answer(request));
    EXPECT_EQ(page.found, 1U);
    EXPECT_TRUE(page.done);
}

TEST_F(Window, ASweepLooksAtNothingThatWasDeferredNorAboveTheCursor) {
    db.rows = {1, 2, 3, 4};
    (void)look();
    for (const auto id : {3, 4})
        w.forget(row_id{id});
    const auto request = w.sweep(100, 1'000'000, row_id{3});
    EXPECT_EQ(request.until, row_id{2});
    EXPECT_EQ(w.swept(db.answer(request)).found, 0U);
}

TEST_F(Window, AChangeOfTheTableOrAReplayTakesNothingAndIsReported) {
    db.rows = {1};
    (void)look();
    db.generation = 1;
    EXPECT_EQ(w.looked(db.answer(w.look(100, 1'000, 0))).what, window::change::replayed);
    db.identity = "b";
    EXPECT_EQ(w.looked(db.answer(w.look(100, 1'000, 0))).what, window::change::table);
}

// Transactions draw ids, then commit or roll back in any order; rows are deleted some time after they were
// handed out; the window is rebuilt now and then. Every committed row is handed out, and none twice.
TEST(WindowProperty, HandsOutEachCommittedRowOnce) {
    const auto holds = rc::check("each committed row once", [](std::uint64_t seed) {
        sim::rng random(seed);
        table db;
        window w(1 + random.below(20));
        std::map<std::uint64_t, std::int64_t> open;
        std::set<std::int64_t> committed;
        std::map<std::int64_t, int> seen;
        std::vector<std::int64_t> known;
        std::int64_t next = static_cast<std::int64_t>(random.below(100)) - 50;
        std::uint64_t tx = 0;
        const auto round = [&] {
            const auto request = w.look(random.below(10), 1'000 * random.below(6), known.size() * 1'000);
            auto reply = db.answer(request);
            reply.knows_writers = request.wants_writers;
            for (const auto& [writer, id] : open) {
                if (reply.knows_writers) reply.writers.push_back(writer);
            }
            std::int64_t last = least;
            for (const auto& row : w.looked(reply).rows) {
                RC_ASSERT(row.row->id.value() >= last);
                last = row.row->id.value();
                ++seen[last];
                known.push_back(last);
            }
        };
        for (auto i = 0; i < 400; ++i) {
            if (random.chance(60)) {
                open.emplace(++tx, next);
                next +=
                    random.chance(20) ? static_cast<std::int64_t>(random.below(1'000'000'000'000)) + 1 : 1;
            }
            if (!open.empty() && random.chance(60)) {
                const auto which =
                    std::next(open.begin(), static_cast<std::ptrdiff_t>(random.below(open.size())));
                if (random.chance(80)) {
                    db.rows.insert(which->second);
                    committed.insert(which->second);
                }
                open.erase(which);
            }
            if (random.chance(50)) round();
            while (!known.empty() && random.chance(40)) {
                const auto at = known.begin() + static_cast<std::ptrdiff_t>(random.below(known.size()));
                db.rows.erase(*at);
                w.gone(row_id{*at});
                known.erase(at);
            }
            if (random.chance(1)) w.rebuild();
            if (random.chance(2)) w.rewind(row_id{static_cast<std::int64_t>(random.below(50))});
        }
        for (const auto& [writer, id] : open) {
            db.rows.insert(id);
            committed.insert(id);
        }
        open.clear();
        for (auto i = 0; i < 2'000 && (!w.gaps().empty() || seen.size() < committed.size()); ++i) {
            round();
            for (const auto id : std::exchange(known, {})) {
                db.rows.erase(id);
                w.gone(row_id{id});
            }
        }
        for (const auto id : committed)
            RC_ASSERT(seen[id] == 1);
        RC_ASSERT(w.gaps().empty());
    });
    EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace millrace
