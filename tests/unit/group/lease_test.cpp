// Scripts over one row: what the lease asks for, what the store answers, what comes of it.
#include "group/lease.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using M = lease_machine;

const error lost_reply{errc::unavailable, retry_advice::after_delay, true, "no reply"};
const error conflict{errc::conflict, retry_advice::never, false, "refused"};
const error down{errc::unavailable, retry_advice::after_delay, false, "down"};

checkpoint at(std::uint64_t n) {
    return {position{sequence_number{n}, 0}, wall_time{milliseconds{5}}};
}

struct Lease : testing::Test {
    Lease() {
        row.shard = shard_id{"s"};
        row.parents = {shard_id{"p"}};
        row.epoch = epoch{3};
        row.version = version{10};
        row.checkpoint = at(100);
        machine.emplace(row, incarnation{"me"}, [this] { return next_random++; });
    }
    std::vector<M::action> step(const M::event& e) { return machine->step(now += 3s, e); }
    template <class A>
    static const A* find(const std::vector<M::action>& actions) {
        for (const auto& action : actions) {
            if (const auto* found = std::get_if<A>(&action)) return found;
        }
        return nullptr;
    }
    static shard_row written(const std::vector<M::action>& actions) {
        const auto* write = find<M::write>(actions);
        EXPECT_NE(write, nullptr);
        return write == nullptr ? shard_row{} : write->row;
    }
    shard_row hold() {
        auto mine = written(step(M::take{epoch{7}}));
        EXPECT_TRUE(find<M::taken>(step(M::write_done{})));
        return mine;
    }
    static M::event shows(shard_row r) { return M::read_done{std::optional{std::move(r)}}; }
    void advance(std::uint64_t n) { EXPECT_TRUE(machine->advance(now, machine->epoch(), at(n), 1)); }

    mono_time now{};
    std::uint64_t next_random{1};
    shard_row row;
    std::optional<M> machine;
};

TEST_F(Lease, ATakeRaisesTheEpochAboveAllOthersAndKeepsEveryOtherField) {
    const auto mine = hold();
    EXPECT_EQ(mine.owner, incarnation{"me"});
    EXPECT_EQ(mine.epoch, epoch{8});
    EXPECT_EQ(mine.version, version{11});
    EXPECT_EQ(mine.checkpoint, at(100));
    EXPECT_EQ(mine.parents, row.parents);
}

// gosoline read, then overwrote: between the two another worker may acquire, progress, release or finish.
TEST_F(Lease, ATakeThatIsOvertakenChangesNothingAndRewindsNothing) {
    for (const bool finishes : {false, true}) {
        machine.emplace(row, incarnation{"me"}, [this] { return next_random++; });
        EXPECT_EQ(find<M::write>(step(M::take{epoch{7}}))->expected, version{10});
        EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(conflict)})));
        auto other = row;
        other.version = version{13};
        other.epoch = epoch{8};
        other.checkpoint = at(500);
        if (finishes) other.finished_at = wall_time{milliseconds{1}};
        const auto actions = step(shows(other));
        EXPECT_TRUE(find<M::refused>(actions));
        EXPECT_FALSE(find<M::write>(actions));
        EXPECT_EQ(machine->row(), other);
    }
}

TEST_F(Lease, ATakeWhoseReplyWasLostIsFoundByReading) {
    const auto mine = written(step(M::take{epoch{7}}));
    EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(lost_reply)})));
    EXPECT_TRUE(find<M::taken>(step(shows(mine))));
}

TEST_F(Lease, ATakeThatLandsAfterTheReadIsOursAllTheSame) {
    const auto mine = written(step(M::take{epoch{7}}));
    step(M::write_done{tl::unexpected(lost_reply)});
    EXPECT_FALSE(find<M::taken>(step(shows(row))));
    EXPECT_EQ(find<M::write>(step(M::timer{}))->expected, version{10});
    step(M::write_done{tl::unexpected(conflict)});  // the first one has landed
    EXPECT_TRUE(find<M::taken>(step(shows(mine))));
    EXPECT_EQ(machine->epoch(), epoch{8});
}

TEST_F(Lease, APersistIsRepeatedUntilTheRowBearsIt) {
    const auto mine = hold();
    advance(101);
    const auto first = written(step(M::persist{}));
    step(M::write_done{tl::unexpected(lost_reply)});
    advance(102);
    step(shows(mine));  // not landed yet
    EXPECT_EQ(written(step(M::timer{})).checkpoint, at(102));
    step(M::write_done{tl::unexpected(conflict)});  // the older one landed after the read
    const auto again = step(shows(first));
    ASSERT_TRUE(find<M::write>(again));
    EXPECT_EQ(find<M::write>(again)->expected, version{12});
    EXPECT_EQ(written(again).checkpoint, at(102));
    const auto done = step(M::write_done{});
    ASSERT_TRUE(find<M::persisted>(done));
    EXPECT_TRUE(find<M::persisted>(done)->outcome.has_value());
    EXPECT_EQ(machine->unwritten_records(), 0U);
}

TEST_F(Lease, APersistWithNothingNewCostsNoRequest) {
    hold();
    const auto actions = step(M::persist{});
    EXPECT_FALSE(find<M::write>(actions));
    EXPECT_TRUE(find<M::persisted>(actions)->outcome.has_value());
}

TEST_F(Lease, APersistThatFailsForSureIsReportedAndTheLeaseGoesOn) {
    hold();
    advance(101);
    step(M::persist{});
    EXPECT_EQ(
        find<M::persisted>(step(M::write_done{tl::unexpected(down)}))->outcome.error().code, errc::unavailable
    );
    EXPECT_TRUE(machine->usable(machine->epoch()));
    EXPECT_TRUE(machine->dirty());
    EXPECT_TRUE(find<M::write>(step(M::persist{})));
}

TEST_F(Lease, CheckpointsNeverGoBack) {
    hold();
    EXPECT_EQ(machine->advance(now, epoch{8}, at(99), 1).error().code, errc::invalid_argument);
    advance(100);
    EXPECT_FALSE(machine->dirty());
}

TEST_F(Lease, AnotherOwnerInTheRowEndsTheLease) {
    auto other = hold();
    advance(101);
    step(M::persist{});
    EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(conflict)})));
    other.owner = incarnation{"you"};
    other.epoch = epoch{9};
    other.version = version{12};
    const auto actions = step(shows(other));
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_NE(find<M::lost>(actions)->why.detail.find("held by session you"), std::string::npos);
    EXPECT_EQ(find<M::persisted>(actions)->outcome.error().code, errc::not_owner);
    EXPECT_EQ(machine->advance(now, epoch{8}, at(102), 1).error().code, errc::not_owner);
}

TEST_F(Lease, AReleaseWritesTheCheckpointAndEndsTheHandle) {
    hold();
    advance(105);
    const auto freed = written(step(M::release{}));
    EXPECT_TRUE(freed.owner.value().empty());
    EXPECT_EQ(freed.checkpoint, at(105));
    EXPECT_EQ(freed.epoch, epoch{8});
    EXPECT_EQ(machine->usable(epoch{8}).error().code, errc::already_released);
    EXPECT_TRUE(find<M::released>(step(M::write_done{})));
    EXPECT_EQ(machine->advance(now, epoch{8}, at(106), 1).error().code, errc::already_released);
    const auto after = step(M::persist{});
    EXPECT_FALSE(find<M::write>(after));
    EXPECT_EQ(find<M::persisted>(after)->outcome.error().code, errc::already_released);
}

TEST_F(Lease, AReleaseInDoubtIsRepeatedOrFoundDone) {
    const auto mine = hold();
    const auto freed = written(step(M::release{}));
    step(M::write_done{tl::unexpected(lost_reply)});
    step(shows(mine));
    EXPECT_TRUE(find<M::write>(step(M::timer{})));
    step(M::write_done{tl::unexpected(conflict)});  // the first has landed
    EXPECT_TRUE(find<M::released>(step(shows(freed))));
}

TEST_F(Lease, AReleaseThatLandedAndWasOvertakenByATakeIsDone) {
    hold();
    auto next = written(step(M::release{}));
    step(M::write_done{tl::unexpected(lost_reply)});
    next.owner = incarnation{"you"};
    next.epoch = epoch{9};
    next.version = version{13};
    EXPECT_TRUE(find<M::released>(step(shows(next))));
}

TEST_F(Lease, AFailedReleaseIsTriedAgain) {
    hold();
    step(M::release{});
    EXPECT_TRUE(step(M::write_done{tl::unexpected(down)}).empty());
    EXPECT_TRUE(find<M::write>(step(M::timer{})));
}

TEST_F(Lease, AFinishIsOneWriteThatAlsoFreesTheRow) {
    hold();
    advance(120);
    const auto done = written(step(M::finish{wall_time{milliseconds{77}}}));
    EXPECT_TRUE(done.owner.value().empty());
    EXPECT_EQ(done.finished_at, wall_time{milliseconds{77}});
    EXPECT_EQ(done.checkpoint, at(120));
    step(M::write_done{tl::unexpected(lost_reply)});
    EXPECT_TRUE(find<M::finished>(step(shows(done))));
    EXPECT_EQ(machine->usable(epoch{8}).error().code, errc::already_finished);
}

TEST_F(Lease, AFinishThatDidNotLandIsRepeated) {
    const auto mine = hold();
    const auto done = written(step(M::finish{wall_time{milliseconds{77}}}));
    step(M::write_done{tl::unexpected(lost_reply)});
    EXPECT_TRUE(step(shows(mine)).empty());
    EXPECT_TRUE(find<M::write>(step(M::timer{})));
    step(M::write_done{tl::unexpected(conflict)});
    EXPECT_TRUE(find<M::finished>(step(shows(done))));
}

TEST_F(Lease, TheEndOfTheSessionEndsTheLeaseWithoutARequest) {
    hold();
    const auto actions = step(M::session_over{{errc::not_owner, {}, false, "ended"}});
    EXPECT_TRUE(find<M::lost>(actions));
    EXPECT_FALSE(find<M::write>(actions));
}

TEST_F(Lease, ARowThatNamesThisSessionIsAdoptedUnderItsEpoch) {
    row.owner = incarnation{"me"};
    row.epoch = epoch{12};
    machine.emplace(row, incarnation{"me"}, [this] { return next_random++; });
    const auto actions = step(M::adopt{});
    EXPECT_TRUE(find<M::taken>(actions));
    EXPECT_FALSE(find<M::write>(actions));
    EXPECT_EQ(machine->epoch(), epoch{12});
}

TEST_F(Lease, WithoutAnOwnerOnlyAWriteIdOfOursProvesThatTheRowIsOurs) {
    machine.emplace(row, incarnation{}, [this] { return next_random++; });
    step(M::adopt{});
    advance(101);
    const auto first = written(step(M::persist{}));
    EXPECT_TRUE(first.owner.value().empty());
    step(M::write_done{tl::unexpected(lost_reply)});
    EXPECT_TRUE(find<M::persisted>(step(shows(first)))->outcome.has_value());

    advance(102);
    auto foreign = written(step(M::persist{}));
    step(M::write_done{tl::unexpected(conflict)});
    foreign.write_id = write_id{424'242};  // version + 1 and the same epoch, and yet not ours
    const auto actions = step(shows(foreign));
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_EQ(find<M::lost>(actions)->why.code, errc::conflict);
}

TEST_F(Lease, WithoutAnOwnerATakeRaisesTheEpochAndOnlyItsWriteIdProvesIt) {
    row.owner = incarnation{"dead"};
    machine.emplace(row, incarnation{}, [this] { return next_random++; });
    const auto mine = written(step(M::take{}));
    EXPECT_TRUE(mine.owner.value().empty());
    EXPECT_GT(mine.epoch, row.epoch);
    step(M::write_done{tl::unexpected(lost_reply)});
    auto foreign = mine;
    foreign.write_id = write_id{424'242};
    machine.emplace(row, incarnation{}, [this] { return next_random++; });
    const auto again = written(step(M::take{}));
    step(M::write_done{tl::unexpected(lost_reply)});
    EXPECT_TRUE(find<M::refused>(step(shows(foreign))));
    machine.emplace(row, incarnation{}, [this] { return next_random++; });
    const auto third = written(step(M::take{}));
    step(M::write_done{tl::unexpected(lost_reply)});
    EXPECT_TRUE(find<M::taken>(step(shows(third))));
    EXPECT_NE(again.write_id, third.write_id);
}

// A handler that writes its checkpoints in transactions of its own moves version and position under the
// lease.

struct LeaseMovedByTheHandler : Lease {
    LeaseMovedByTheHandler() {
        mine = hold();
        moved = mine;
        moved.version = version{14};
        moved.checkpoint = at(300);
        moved.write_id = write_id{999};
    }
    /// What is written after the first try was refused and the row was read.
    M::write again(const std::vector<M::action>& first) {
        EXPECT_EQ(find<M::write>(first)->expected, version{11});
        EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(conflict)})));
        const auto actions = step(shows(moved));
        const auto* write = find<M::write>(actions);
        EXPECT_NE(write, nullptr);
        return write == nullptr ? M::write{} : *write;
    }
    shard_row mine;
    shard_row moved;
};

TEST_F(LeaseMovedByTheHandler, IsReleasedWithTheHandlersCheckpoint) {
    const auto write = again(step(M::release{}));
    EXPECT_EQ(write.expected, version{14});
    EXPECT_EQ(write.row.checkpoint, at(300));
    EXPECT_TRUE(write.row.owner.value().empty());
    EXPECT_TRUE(find<M::released>(step(M::write_done{})));
}

TEST_F(LeaseMovedByTheHandler, IsFinishedWithTheHandlersCheckpoint) {
    const auto write = again(step(M::finish{wall_time{milliseconds{77}}}));
    EXPECT_EQ(write.expected, version{14});
    EXPECT_EQ(write.row.checkpoint, at(300));
    EXPECT_EQ(write.row.finished_at, wall_time{milliseconds{77}});
    EXPECT_TRUE(find<M::finished>(step(M::write_done{})));
}

TEST_F(LeaseMovedByTheHandler, IsNotSetBackByAPersistOfWhatLiesBefore) {
    advance(200);
    const auto first = step(M::persist{});
    EXPECT_EQ(written(first).checkpoint, at(200));
    EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(conflict)})));
    const auto actions = step(shows(moved));
    EXPECT_FALSE(find<M::write>(actions));
    ASSERT_TRUE(find<M::persisted>(actions));
    EXPECT_TRUE(find<M::persisted>(actions)->outcome.has_value());
    EXPECT_FALSE(machine->dirty());
    EXPECT_EQ(machine->row().checkpoint, at(300));
}

TEST_F(LeaseMovedByTheHandler, IsPersistedFromItsVersionWhereTheRuntimeIsAhead) {
    advance(400);
    const auto write = again(step(M::persist{}));
    EXPECT_EQ(write.expected, version{14});
    EXPECT_EQ(write.row.checkpoint, at(400));
}

TEST_F(LeaseMovedByTheHandler, KeepsTheCheckpointThatAListingShows) {
    EXPECT_TRUE(step(M::observed{moved}).empty());
    const auto freed = step(M::release{});
    EXPECT_EQ(find<M::write>(freed)->expected, version{14});
    EXPECT_EQ(written(freed).checkpoint, at(300));
}

TEST_F(LeaseMovedByTheHandler, MayMoveOnBetweenEveryReadAndWrite) {
    auto refused = again(step(M::release{}));
    for (std::uint64_t n = 301; n < 310; ++n) {
        moved.version = version{moved.version.value() + 1};
        moved.checkpoint = at(n);
        EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(conflict)})));
        refused = *find<M::write>(step(shows(moved)));
        EXPECT_EQ(refused.row.checkpoint, at(n));
    }
    EXPECT_TRUE(find<M::released>(step(M::write_done{})));
}

TEST_F(LeaseMovedByTheHandler, ReleasedInDoubtIsFoundDone) {
    const auto freed = again(step(M::release{}));
    EXPECT_TRUE(find<M::read>(step(M::write_done{tl::unexpected(lost_reply)})));
    EXPECT_TRUE(find<M::released>(step(shows(freed.row))));
}

}  // namespace
}  // namespace millrace
