// What a relay does when a group elsewhere chooses it: it leads no outbox before it has raised its epoch
// there.
#include "group_leadership.hpp"

#include "adapters.hpp"
#include "fake_lease_store.hpp"
#include "scheduler.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

/// Says what the test tells it to.
class told_leader final : public group_leader {
public:
    struct book {
        group_leader_listener* listener{nullptr};
        int drained{0};
        mono_time deadline{mono_time::min()};
    };
    explicit told_leader(book& notes) : notes_(notes) {}

    result<void> start(group_leader_listener& listener) override {
        notes_.listener = &listener;
        return {};
    }
    void stop(completion<void>) override {}
    void drained() override { ++notes_.drained; }
    void give_way() override {}
    [[nodiscard]] mono_time deadline() const override { return notes_.deadline; }
    [[nodiscard]] bool joined() const override { return true; }
    [[nodiscard]] bool others_wait() const override { return false; }
    [[nodiscard]] std::optional<error> trouble() const override { return std::nullopt; }

private:
    book& notes_;
};

struct noting_holder final : seat_holder {
    void lead(epoch mine) override { led.push_back(mine); }
    void give_back(std::function<void()> done) override { give_back_done = std::move(done); }
    void lost(const error&) override { ++losses; }

    std::vector<epoch> led;
    std::function<void()> give_back_done;
    int losses{0};
};

struct GroupLeadership : testing::Test {
    GroupLeadership() {
        std::vector<seat_setup> seats;
        for (std::size_t i = 0; i < 2; ++i) {
            seats.push_back({"outbox-" + std::to_string(i), &holders[i], [this, i](millrace::host& home) {
                                 return std::make_unique<fake_lease_store>(
                                     tables[i], world, home, random, plans[i]
                                 );
                             }});
        }
        auto made = group_leadership::make(loop, std::make_unique<told_leader>(leader), std::move(seats));
        EXPECT_TRUE(made);
        leads = std::move(*made);
        EXPECT_TRUE(leads->start());
    }
    void choose() {
        leader.deadline = mono_time::max();
        leader.listener->chosen();
        world.run_for(100ms);
    }
    [[nodiscard]] epoch stored(std::size_t i) const {
        const auto* row = tables[i].find(shard_id{outbox_group});
        return row == nullptr ? epoch{} : std::get<shard_row>(*row).epoch;
    }
    /// As another leader would.
    void raise_behind_its_back(std::size_t i) {
        auto row = std::get<shard_row>(*tables[i].find(shard_id{outbox_group}));
        row.epoch = epoch{row.epoch.value() + 10};
        row.version = version{row.version.value() + 1};
        tables[i].put(row);
    }

    scheduler world;
    rng random{7};
    faults plans[2]{{.timeout = 100ms}, {.timeout = 100ms}};
    sim_host loop{world, random};
    lease_table tables[2];
    noting_holder holders[2];
    told_leader::book leader;
    std::unique_ptr<group_leadership> leads;
};

TEST_F(GroupLeadership, LeadsEachOutboxUnderAnEpochThatItHasRaisedThere) {
    choose();
    for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(holders[i].led.size(), 1U);
        EXPECT_EQ(holders[i].led[0], stored(i));
        EXPECT_TRUE(leads->may_act(i));
    }
}

TEST_F(GroupLeadership, NothingMayBeDoneAfterTheGroupsDeadline) {
    choose();
    leader.deadline = loop.now();
    EXPECT_FALSE(leads->may_act(0));
}

TEST_F(GroupLeadership, AnOutboxOutOfReachIsLedLaterAndDoesNotHoldUpTheOther) {
    plans[0].down = true;
    choose();
    EXPECT_EQ(holders[1].led.size(), 1U);
    EXPECT_TRUE(holders[0].led.empty());
    EXPECT_FALSE(leads->may_act(0));
    EXPECT_TRUE(leads->raising_since(0));
    EXPECT_TRUE(leads->trouble(0));
    plans[0].down = false;
    world.run_for(3s);
    EXPECT_EQ(holders[0].led.size(), 1U);
    EXPECT_FALSE(leads->trouble(0));
}

TEST_F(GroupLeadership, WhoIsRefusedByItsOutboxRaisesTheEpochAboveTheOthers) {
    choose();
    raise_behind_its_back(0);
    leads->refused(0);
    EXPECT_FALSE(leads->may_act(0));
    world.run_for(1s);
    ASSERT_EQ(holders[0].led.size(), 2U);
    EXPECT_EQ(holders[0].led[1], stored(0));
    EXPECT_GT(holders[0].led[1].value(), holders[0].led[0].value() + 10);
    EXPECT_EQ(holders[1].led.size(), 1U);
}

TEST_F(GroupLeadership, TwoThatRefuseEachOtherDoItEverMoreSlowly) {
    choose();
    for (int i = 0; i < 200; ++i) {
        if (leads->may_act(0)) {
            raise_behind_its_back(0);
            leads->refused(0);
        }
        world.run_for(100ms);
    }
    EXPECT_LT(holders[0].led.size(), 40U);
    EXPECT_GT(holders[0].led.size(), 3U);
}

TEST_F(GroupLeadership, AnswersTheGroupOnceEveryOutboxIsGivenBack) {
    choose();
    leader.listener->retire();
    holders[0].give_back_done();
    EXPECT_EQ(leader.drained, 0);
    EXPECT_TRUE(leads->may_act(1)) << "what is under way is settled";
    holders[1].give_back_done();
    EXPECT_EQ(leader.drained, 1);
    EXPECT_FALSE(leads->may_act(1));
}

TEST_F(GroupLeadership, ARaiseUnderWayIsNoReasonToWait) {
    plans[0].down = plans[1].down = true;
    choose();
    leader.listener->retire();
    EXPECT_EQ(leader.drained, 1);
    plans[0].down = plans[1].down = false;
    world.run_for(5s);
    EXPECT_TRUE(holders[0].led.empty());
}

TEST_F(GroupLeadership, WhoIsLostWhileItDrainsAnswersNothing) {
    choose();
    leader.listener->retire();
    leader.listener->lost({errc::not_owner, retry_advice::after_delay, false, "fenced"});
    EXPECT_EQ(holders[0].losses, 1);
    holders[0].give_back_done();
    holders[1].give_back_done();
    EXPECT_EQ(leader.drained, 0);
    choose();
    EXPECT_EQ(holders[0].led.size(), 2U);
}

}  // namespace
}  // namespace millrace::sim
