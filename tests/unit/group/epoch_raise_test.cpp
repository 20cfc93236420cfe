// A leader that was chosen elsewhere raises the epoch of an outbox: what it asks for, what the store answers.
#include "group/epoch_raise.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using R = epoch_raise;

const error lost_reply{errc::unavailable, retry_advice::after_delay, true, "no reply"};
const error conflict{errc::conflict, retry_advice::never, false, "refused"};
const error down{errc::unavailable, retry_advice::after_delay, false, "down"};

struct EpochRaise : testing::Test {
    EpochRaise() {
        row.shard = shard_id{"outbox"};
        row.epoch = epoch{7};
        row.version = version{20};
        row.owner = incarnation{"somebody"};
        row.checkpoint = checkpoint{position{sequence_number{4}, 0}, wall_time{5ms}};
    }
    std::optional<R::action> step(const R::event& what) { return raise.step(now, what); }
    static R::event shows(std::optional<shard_row> r) { return R::row_read{std::move(r)}; }
    R::write_row write(const R::event& what) {
        const auto action = step(what);
        const auto* asked = action ? std::get_if<R::write_row>(&*action) : nullptr;
        EXPECT_NE(asked, nullptr);
        return asked == nullptr ? R::write_row{} : *asked;
    }
    void expect(const std::optional<R::action>& action, const R::action& wanted) {
        ASSERT_TRUE(action);
        EXPECT_EQ(*action, wanted);
    }

    mono_time now{1h};
    std::uint64_t next_random{100};
    shard_row row;
    R raise{shard_id{"outbox"}, incarnation{"me"}, epoch{3}, [this] { return next_random++; }};
};

TEST_F(EpochRaise, WritesTheRowItReadWithAnEpochAboveAndKeepsEveryOtherField) {
    EXPECT_EQ(raise.begin(), R::action{R::read_row{}});
    const auto asked = write(shows(row));
    auto wanted = row;
    wanted.owner = incarnation{"me"};
    wanted.epoch = epoch{8};
    wanted.version = version{21};
    wanted.write_id = asked.row.write_id;
    EXPECT_EQ(asked.row, wanted);
    EXPECT_EQ(asked.expected, row.version);
    EXPECT_NE(asked.row.write_id, row.write_id);
    expect(step(R::row_written{}), R::raised{epoch{8}});
}

TEST_F(EpochRaise, MakesARowThatIsMissingAboveTheFloorAndAboveWhatItKnows) {
    expect(step(shows(std::nullopt)), R::read_group{});
    group_row group;
    group.epoch_floor = epoch{11};
    const auto asked = write(R::group_read{std::optional{group}});
    EXPECT_EQ(asked.expected, std::nullopt);
    EXPECT_EQ(asked.row.epoch, epoch{12});
    EXPECT_EQ(asked.row.shard, shard_id{"outbox"});
}

TEST_F(EpochRaise, OfAStoreThatWasMadeAnewTheEpochStaysAboveTheOldOne) {
    step(shows(std::nullopt));
    EXPECT_EQ(write(R::group_read{std::optional<group_row>{}}).row.epoch, epoch{4});
}

TEST_F(EpochRaise, ALostReplyIsSettledByTheWriteIdAlone) {
    const auto asked = write(shows(row));
    expect(step(R::row_written{tl::unexpected(lost_reply)}), R::read_row{});
    expect(step(shows(asked.row)), R::raised{epoch{8}});
}

TEST_F(EpochRaise, ARowOfTheSameEpochAndVersionBySomebodyElseIsNoSuccess) {
    auto other = write(shows(row)).row;
    step(R::row_written{tl::unexpected(lost_reply)});
    other.write_id = write_id{1};
    EXPECT_EQ(write(shows(other)).row.epoch, epoch{9});
}

TEST_F(EpochRaise, AnEarlierWriteThatLandsLateIsASuccessUnderItsEpoch) {
    const auto first = write(shows(row));
    step(R::row_written{tl::unexpected(lost_reply)});
    write(shows(row));  // not there yet
    expect(step(R::row_written{tl::unexpected(conflict)}), R::read_row{});
    expect(step(shows(first.row)), R::raised{first.row.epoch});
}

TEST_F(EpochRaise, WhoIsOvertakenRaisesItAbove) {
    write(shows(row));
    step(R::row_written{tl::unexpected(conflict)});
    row.epoch = epoch{30};
    row.version = version{50};
    const auto asked = write(shows(row));
    EXPECT_EQ(asked.row.epoch, epoch{31});
    EXPECT_EQ(asked.expected, version{50});
}

TEST_F(EpochRaise, AnUnreachableStoreIsTriedAgainForEver) {
    for (int i = 0; i < 100; ++i) {
        expect(step(R::row_read{tl::unexpected(down)}), R::trouble{down});
        ASSERT_TRUE(raise.wake());
        EXPECT_LE(*raise.wake() - now, 2s);
        EXPECT_EQ(raise.step(now - 1ns, R::timer{}), std::nullopt);
        now = *raise.wake();
        expect(step(R::timer{}), R::read_row{});
        EXPECT_EQ(raise.wake(), std::nullopt);
    }
}

TEST_F(EpochRaise, AStoreThatAlwaysRefusesIsAskedInPeace) {
    int at_once = 0;
    for (int i = 0; i < 8; ++i) {
        write(shows(row));
        at_once += *step(R::row_written{tl::unexpected(conflict)}) == R::action{R::read_row{}} ? 1 : 0;
    }
    EXPECT_EQ(at_once, 6);
}

}  // namespace
}  // namespace millrace
