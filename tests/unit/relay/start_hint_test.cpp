#include "relay_world.hpp"
#include "sim/pass_through.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;

// Notes what a relay asks its outbox for, and gives it a hint of the test's choice.
struct noted_outbox : outbox_through {
    using outbox_through::outbox_through;
    void fetch(fetch_request request, completion<fetch_reply> done) override {
        after.push_back(request.after.value());
        inner_->fetch(std::move(request), std::move(done));
    }
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override {
        marks.push_back(mark.low_water.value());
        inner_->remove(std::move(delivered), mark, mine, std::move(done));
    }
    void start(completion<outbox_start> done) override {
        inner_->start([this, done = std::move(done)](result<outbox_start> from) {
            from->low_water = hint;
            from->replay_generation -= std::min(from->replay_generation, generations_old);
            if (!identity.empty()) from->table_identity = identity;
            done(std::move(from));
        });
    }

    row_id hint;
    std::uint64_t generations_old{0};
    std::string identity;
    std::vector<std::int64_t> after;
    std::vector<std::int64_t> marks;
};

struct StartHint : testing::Test {
    relay_world w;
    noted_outbox source{std::make_unique<fake_outbox>(w.table, w.world, w.host, w.random, w.outbox_faults)};
    relay_driver driver{w.host, source, *w.sink, {}, [] { return true; }};

    void start(std::int64_t hint) {
        source.hint = row_id{hint};
        driver.start(epoch{1});
    }
    // Rows 1 to `count` of one key.
    void rows(std::int64_t count) {
        for (auto i = std::int64_t{0}; i < count; ++i)
            w.put("k");
    }
    void remove(std::int64_t first, std::int64_t last) {
        w.table.observe({});
        w.table.remove({{row_id{first}, row_id{last}}});
    }
};

TEST_F(StartHint, ReadingBeginsAboveIt) {
    rows(100);
    remove(1, 90);
    start(90);
    w.world.run_for(100ms);
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_THAT(source.after, Each(Ge(90)));
}

TEST_F(StartHint, WithoutOneReadingBeginsAtTheHead) {
    rows(10);
    start(0);
    w.world.run_for(100ms);
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_TRUE(driver.empty());
}

TEST_F(StartHint, AHintThatIsTooHighOnlyDelaysTheRowsBelowItUntilTheSweep) {
    rows(100);
    start(90);
    w.world.run_for(100ms);
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_FALSE(driver.empty()) << "the head has not been seen yet";
    w.world.run_for(500ms);
    EXPECT_EQ(w.first_appends.size(), 100U);
    w.world.run_for(500ms);
    EXPECT_THAT(w.table.rows(), IsEmpty());
    EXPECT_TRUE(driver.empty());
}

TEST_F(StartHint, OneOfAnEarlierReplayGenerationIsDroppedBeforeAnyRowIsSent) {
    rows(10);
    (void)w.table.replay({"t", "other", {}});
    source.generations_old = 1;
    start(5);
    w.world.run_for(100ms);
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_THAT(w.broken, IsEmpty()) << "the rows of the key went out by id";
}

TEST_F(StartHint, OneOfAnotherTableIsDroppedBeforeAnyRowIsSent) {
    rows(10);
    source.identity = "another table";
    start(5);
    w.world.run_for(3ms);
    source.identity.clear();
    source.hint = {};
    w.world.run_for(200ms);
    EXPECT_EQ(w.first_appends.size(), 10U);
    EXPECT_THAT(w.broken, IsEmpty());
}

TEST_F(StartHint, TheMarkOfARemovalLiesBelowAllThatMayStillWait) {
    start(0);
    const auto slow = w.table.begin();
    const auto early = w.table.draw(slow);
    rows(20);
    w.world.run_for(200ms);
    ASSERT_EQ(early, row_id{1});
    EXPECT_THAT(source.marks, Each(0)) << "id 1 may still be filled";
    w.table.roll_back(slow);
    w.world.run_for(500ms);
    source.marks.clear();
    rows(1);
    w.world.run_for(100ms);
    rows(1);
    w.world.run_for(100ms);
    EXPECT_THAT(source.marks, ElementsAre(21, 22)) << "below the row that is being deleted";
}

}  // namespace
}  // namespace millrace::sim
