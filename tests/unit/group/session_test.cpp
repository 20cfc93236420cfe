// Scripts: at this time this happened; the session answers with these actions.
#include "group/session.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using M = session_machine;

const error lost_reply{errc::unavailable, retry_advice::after_delay, true, "no reply"};
const error refused{errc::conflict, retry_advice::never, false, "refused"};
const error down{errc::unavailable, retry_advice::after_delay, false, "down"};

// Lease 10 s, margin 2 s, heartbeat every 2 s.
struct Session : testing::Test {
    std::vector<M::action> at(nanoseconds t, const M::event& e) {
        machine.loop_turned(mono_time{loop_stalls ? 0s : t});
        return machine.step(mono_time{t}, e);
    }
    template <class A>
    static const A* find(const std::vector<M::action>& actions) {
        for (const auto& action : actions) {
            if (const auto* found = std::get_if<A>(&action)) return found;
        }
        return nullptr;
    }
    worker_row written(const std::vector<M::action>& actions) {
        const auto* write = find<M::write>(actions);
        EXPECT_NE(write, nullptr);
        return write == nullptr ? worker_row{} : write->row;
    }
    /// Nobody has the id.
    std::vector<M::action> begin() {
        EXPECT_TRUE(find<M::list>(at(0s, M::begin{})));
        return at(0s, M::list_done{std::vector<worker_row>{}});
    }
    std::vector<M::action> registers_anew(nanoseconds t, const std::vector<M::action>& before) {
        EXPECT_TRUE(find<M::list>(before));
        return at(t, M::list_done{std::vector<worker_row>{}});
    }
    /// Registered at 0 s, confirmed at 1 s, the listing of namesakes done.
    worker_row live() {
        auto row = written(begin());
        EXPECT_TRUE(find<M::started>(at(1s, M::write_done{})));
        at(1s, M::list_done{std::vector<worker_row>{row}});
        return row;
    }
    static M::event read_shows(std::optional<worker_row> row) { return M::read_done{std::move(row)}; }

    bool loop_stalls{false};
    std::uint64_t next_random{1};
    std::int64_t gone_pid{0};
    M machine{
        {.worker = worker_id{"w"}, .lease = 10s},
        {"here", "boot", "ns", 42, 1},
        [this](const process_identity& which) { return which.pid == gone_pid; },
        [this] { return next_random++; }};
};

TEST_F(Session, RegistersByCreatingARowUnderANewIncarnation) {
    const auto actions = begin();
    const auto* write = find<M::write>(actions);
    ASSERT_NE(write, nullptr);
    EXPECT_FALSE(write->expected);
    EXPECT_EQ(write->row.counter, version{1});
    EXPECT_EQ(write->row.lease, nanoseconds{10s});
    EXPECT_FALSE(machine.deadline());
}

TEST_F(Session, WhoseRowCannotBeReadIsOverByItsDeadlineAndBeginsAnewBesideIt) {
    const error damaged{errc::corrupt, retry_advice::after_delay, false, "column counter is damaged"};
    const auto row = live();
    at(2s, M::timer{});
    EXPECT_TRUE(find<M::read>(at(2s, M::write_done{tl::unexpected(refused)})));
    at(3s, M::read_done{tl::unexpected(damaged)});
    const auto over = at(8s, M::timer{});
    ASSERT_TRUE(find<M::lost>(over));
    EXPECT_NE(find<M::lost>(over)->why.detail.find("column counter"), std::string::npos);
    EXPECT_FALSE(machine.deadline());
    EXPECT_TRUE(find<M::read>(at(10s, M::timer{})));
    const auto anew = registers_anew(10s, at(10s, M::read_done{tl::unexpected(damaged)}));
    EXPECT_NE(written(anew).incarnation, row.incarnation);
}

TEST_F(Session, DoesNotWaitForANamesakeWhoseRowCannotBeRead) {
    worker_row elder{.worker = worker_id{"w"}, .incarnation = incarnation{"old"}};
    elder.unreadable = "column counter is damaged";
    at(0s, M::begin{});
    EXPECT_TRUE(find<M::write>(at(0s, M::list_done{std::vector<worker_row>{elder}})));
}

TEST_F(Session, TheDeadlineCountsFromTheSendingOfTheLastConfirmedHeartbeat) {
    live();
    EXPECT_EQ(machine.deadline(), mono_time{8s});
    const auto beat = at(2s, M::timer{});
    EXPECT_EQ(find<M::write>(beat)->expected, version{1});
    EXPECT_EQ(machine.deadline(), mono_time{8s});
    at(5s, M::write_done{});
    EXPECT_EQ(machine.deadline(), mono_time{10s});
}

TEST_F(Session, ARefusedHeartbeatOfAVanishedRowEndsTheSessionAndRegistersAnew) {
    const auto row = live();
    at(2s, M::timer{});
    EXPECT_TRUE(find<M::read>(at(3s, M::write_done{tl::unexpected(refused)})));
    const auto actions = at(3s, read_shows(std::nullopt));
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_EQ(find<M::lost>(actions)->session, row.incarnation);
    const auto anew = registers_anew(3s, actions);
    EXPECT_FALSE(find<M::write>(anew)->expected);
    EXPECT_NE(written(anew).incarnation, row.incarnation);
    EXPECT_FALSE(machine.deadline());
}

TEST_F(Session, InDoubtOnlyAWriteIdOfOursConfirmsAndFromItsOwnSending) {
    live();
    const auto beat = written(at(2s, M::timer{}));
    EXPECT_TRUE(find<M::read>(at(5s, M::write_done{tl::unexpected(lost_reply)})));
    const auto next = written(at(6s, read_shows(beat)));
    EXPECT_EQ(machine.deadline(), mono_time{10s});

    // Version + 1 alone is no proof.
    EXPECT_EQ(next.counter, version{3});
    at(7s, M::write_done{tl::unexpected(lost_reply)});
    auto foreign = beat;
    foreign.counter = version{3};
    foreign.write_id = write_id{999'999};
    at(7s, read_shows(foreign));
    EXPECT_EQ(machine.deadline(), mono_time{10s});
}

TEST_F(Session, AHeartbeatThatLandsAfterTheRowWasReadAgainStillCounts) {
    const auto row = live();
    const auto first = written(at(2s, M::timer{}));
    at(3s, M::write_done{tl::unexpected(lost_reply)});
    at(3s, read_shows(row));  // not there yet
    const auto second = at(3200ms, M::timer{});
    EXPECT_EQ(find<M::write>(second)->expected, version{1});
    // The first lands now and the second is refused.
    EXPECT_TRUE(find<M::read>(at(4s, M::write_done{tl::unexpected(refused)})));
    at(4s, read_shows(first));
    EXPECT_EQ(machine.deadline(), mono_time{10s});
    EXPECT_EQ(find<M::write>(at(5200ms, M::timer{}))->expected, version{2});
}

TEST_F(Session, ARegistrationInDoubtIsSettledByReading) {
    const auto row = written(begin());
    EXPECT_TRUE(find<M::read>(at(1s, M::write_done{tl::unexpected(lost_reply)})));
    at(1s, read_shows(std::nullopt));
    const auto again = at(2s, M::timer{});
    EXPECT_EQ(written(again).incarnation, row.incarnation);
    at(3s, M::write_done{tl::unexpected(refused)});  // the first has landed
    EXPECT_TRUE(find<M::started>(at(3s, read_shows(row))));
    EXPECT_EQ(machine.deadline(), mono_time{8s});
}

TEST_F(Session, EachAttemptToRegisterIsToldFromTheOneBefore) {
    const auto first = written(begin());
    at(300ms, M::write_done{tl::unexpected(lost_reply)});
    at(20s, read_shows(std::nullopt));  // it may have landed, been seen, and been ended
    const auto second = written(at(21s, M::timer{}));
    EXPECT_EQ(second.incarnation, first.incarnation);
    EXPECT_GT(second.counter, first.counter) << "an observer takes it for the same, silent for 20 s";
    const auto actions = at(22s, M::write_done{});
    EXPECT_TRUE(find<M::started>(actions));
    at(22s, M::list_done{std::vector<worker_row>{}});
    const auto beat = at(25s, M::timer{});
    ASSERT_TRUE(find<M::write>(beat));
    EXPECT_EQ(find<M::write>(beat)->expected, second.counter);
}

TEST_F(Session, AnOldRegistrationThatLandsAfterTheEndBringsNothingBack) {
    const auto first = written(begin());
    at(300ms, M::write_done{tl::unexpected(lost_reply)});
    at(500ms, read_shows(std::nullopt));
    at(1s, M::timer{});
    const auto second = at(1500ms, M::write_done{});
    EXPECT_TRUE(find<M::started>(second));
    at(1500ms, M::list_done{std::vector<worker_row>{}});
    at(4s, M::timer{});
    // Meanwhile it was ended, and the first attempt landed.
    at(5s, M::write_done{tl::unexpected(refused)});
    const auto actions = at(5s, read_shows(first));
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_EQ(find<M::lost>(actions)->session, first.incarnation);
}

TEST_F(Session, WithoutAConfirmedHeartbeatItEndsAtTheDeadlineAndClearsItsOwnRow) {
    const auto row = live();
    at(2s, M::timer{});
    at(2s, M::write_done{tl::unexpected(down)});
    EXPECT_FALSE(find<M::lost>(at(7999ms, M::timer{})));
    at(7999ms, M::write_done{tl::unexpected(down)});
    EXPECT_TRUE(find<M::lost>(at(8s, M::timer{})));
    // What was begun before the deadline has the margin to end.
    EXPECT_TRUE(at(9900ms, M::timer{}).empty());
    EXPECT_TRUE(find<M::read>(at(10s, M::timer{})));
    EXPECT_TRUE(find<M::remove>(at(10s, read_shows(row))));
    EXPECT_FALSE(find<M::write>(registers_anew(10s, at(10s, M::remove_done{})))->expected);
}

TEST_F(Session, TheEndOfASessionSaysWhyItsHeartbeatsFailed) {
    live();
    at(2s, M::timer{});
    at(3s,
       M::write_done{tl::unexpected(error{errc::out_of_space, retry_advice::after_delay, false, "full"})});
    const auto actions = at(8s, M::timer{});
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_NE(find<M::lost>(actions)->why.detail.find("(full)"), std::string::npos);
}

TEST_F(Session, StopsRenewingWhenTheLoopHasNotTurnedForALeaseTime) {
    live();
    loop_stalls = true;
    nanoseconds t = 2s;
    for (; t <= 12s; t += 2s) {
        const auto actions = at(t, M::timer{});
        if (find<M::lost>(actions)) break;
        ASSERT_TRUE(find<M::write>(actions)) << t.count();
        at(t, M::write_done{});
    }
    EXPECT_EQ(t, nanoseconds{12s});
    EXPECT_FALSE(machine.deadline());
    EXPECT_TRUE(machine.waits_for_loop(mono_time{60s}));
    EXPECT_TRUE(at(60s, M::timer{}).empty());
    loop_stalls = false;
    EXPECT_TRUE(find<M::read>(at(61s, M::timer{})));
    EXPECT_TRUE(find<M::write>(registers_anew(61s, at(61s, read_shows(std::nullopt)))));
}

TEST_F(Session, AChangeIsToldWithAHeartbeatAtOnce) {
    live();
    const auto row = written(at(1100ms, M::rows_changed{}));
    EXPECT_EQ(row.changes, 1U);
    EXPECT_TRUE(at(1200ms, M::rows_changed{}).empty());  // one write at a time
    EXPECT_EQ(written(at(1300ms, M::write_done{})).changes, 2U);
}

TEST_F(Session, NothingIsRegisteredUnderAnIdThatLives) {
    worker_row old{worker_id{"w"}, incarnation{"z"}, version{5}, {}, 10s, 0, {"there", "b", "n", 7, 1}, {}};
    const auto see = [&](nanoseconds t) {
        EXPECT_TRUE(find<M::list>(at(t, M::timer{}))) << t.count();
        return at(t, M::list_done{std::vector<worker_row>{old}});
    };
    at(0s, M::begin{});
    const auto first = at(0s, M::list_done{std::vector<worker_row>{old}});
    ASSERT_TRUE(find<M::waits>(first));
    EXPECT_EQ(find<M::waits>(first)->elder, old);
    EXPECT_FALSE(find<M::write>(first));
    EXPECT_TRUE(at(500ms, M::timer{}).empty());
    EXPECT_EQ(machine.wake(mono_time{500ms}), mono_time{1s});
    old.counter = version{6};  // may be the last heartbeat of a dead process, landing late
    EXPECT_TRUE(see(1s).empty());
    old.counter = version{7};
    const auto actions = see(2s);
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_EQ(find<M::lost>(actions)->why.code, errc::worker_id_taken);
    EXPECT_NE(find<M::lost>(actions)->why.detail.find("process 7 on host \"there\""), std::string::npos);
    EXPECT_FALSE(machine.wake(mono_time{2s}));
    EXPECT_TRUE(find<M::stopped>(at(3s, M::end{})));
}

TEST_F(Session, RegistersOnceTheOldSessionOfTheSameIdHasEnded) {
    const worker_row old{
        worker_id{"w"}, incarnation{"z"}, version{5}, {}, 10s, 0, {"there", "b", "n", 7, 1}, {}};
    at(0s, M::begin{});
    EXPECT_FALSE(find<M::write>(at(0s, M::list_done{std::vector<worker_row>{old}})));
    EXPECT_TRUE(find<M::list>(at(11s, M::timer{})));
    EXPECT_TRUE(find<M::write>(at(11s, M::list_done{std::vector<worker_row>{}})));
}

TEST_F(Session, AProcessThatIsGoneFromThisMachineDoesNotHoldTheId) {
    const worker_row old{
        worker_id{"w"}, incarnation{"z"}, version{5}, {}, 10s, 0, {"here", "boot", "ns", 7, 1}, {}};
    gone_pid = 7;
    at(0s, M::begin{});
    EXPECT_TRUE(find<M::write>(at(0s, M::list_done{std::vector<worker_row>{old}})));
}

TEST_F(Session, EndsWhileItLooksForOthersOfItsId) {
    at(0s, M::begin{});
    EXPECT_TRUE(at(1s, M::end{}).empty());
    const auto actions = at(2s, M::list_done{std::vector<worker_row>{}});
    ASSERT_TRUE(find<M::stopped>(actions));
    EXPECT_TRUE(find<M::stopped>(actions)->outcome.has_value());
    EXPECT_FALSE(find<M::write>(actions));
}

TEST_F(Session, OneThatRegistersAtTheSameMomentIsNoErrorUnlessItMoves) {
    worker_row old{worker_id{"w"}, incarnation{"0"}, version{5}, {}, 10s, 0, {"there", "b", "n", 7, 1}, {}};
    begin();
    EXPECT_TRUE(find<M::list>(at(0s, M::write_done{})));
    const auto see = [&](nanoseconds t) {
        const auto asked = at(t, M::timer{});
        if (!find<M::list>(asked)) at(t, M::write_done{});
        return at(t, M::list_done{std::vector<worker_row>{old}});
    };
    EXPECT_FALSE(find<M::lost>(at(0s, M::list_done{std::vector<worker_row>{old}})));
    EXPECT_FALSE(find<M::lost>(see(1s)));
    old.counter = version{6};  // may be the last heartbeat of a dead process, landing late
    EXPECT_FALSE(find<M::lost>(see(2s)));
    old.counter = version{7};
    const auto actions = see(3s);
    ASSERT_TRUE(find<M::lost>(actions));
    EXPECT_EQ(find<M::lost>(actions)->why.code, errc::worker_id_taken);
    EXPECT_NE(find<M::lost>(actions)->why.detail.find("process 7 on host \"there\""), std::string::npos);
    EXPECT_NE(find<M::lost>(actions)->why.detail.find("process 42 on host \"here\""), std::string::npos);
    EXPECT_TRUE(find<M::remove>(actions));
    EXPECT_FALSE(machine.deadline());
}

TEST_F(Session, TheElderOfTwoNewcomersWaitsUntilTheOtherMustHaveStopped) {
    worker_row other{worker_id{"w"}, incarnation{"z"}, version{1}, {}, 10s, 0, {"there", "b", "n", 7, 1}, {}};
    begin();
    EXPECT_TRUE(find<M::list>(at(0s, M::write_done{})));
    at(0s, M::list_done{std::vector<worker_row>{other}});
    for (int moves = 1; moves <= 6; ++moves) {
        const auto t = std::chrono::seconds{2 * moves};
        other.counter = version{other.counter.value() + 1};
        if (!find<M::list>(at(t, M::timer{}))) at(t, M::write_done{});
        const auto actions = at(t, M::list_done{std::vector<worker_row>{other}});
        EXPECT_EQ(find<M::lost>(actions) != nullptr, moves == 6) << moves;
    }
}

TEST_F(Session, DeregistersAndSettlesADoubtfulRemovalByReading) {
    const auto row = live();
    const auto actions = at(1500ms, M::end{});
    ASSERT_TRUE(find<M::remove>(actions));
    EXPECT_EQ(find<M::remove>(actions)->expected, version{1});
    EXPECT_TRUE(find<M::read>(at(2s, M::remove_done{tl::unexpected(lost_reply)})));
    EXPECT_TRUE(find<M::remove>(at(2s, read_shows(row))));
    at(2s, M::remove_done{tl::unexpected(refused)});
    const auto last = at(2s, read_shows(std::nullopt));
    ASSERT_TRUE(find<M::stopped>(last));
    EXPECT_TRUE(find<M::stopped>(last)->outcome.has_value());
}

TEST_F(Session, IsDeregisteredWhereTheTableIsGone) {
    live();
    at(1500ms, M::end{});
    const error no_table{errc::not_found, retry_advice::after_delay, false, "there is no table"};
    const auto last = at(1600ms, M::remove_done{tl::unexpected(no_table)});
    ASSERT_TRUE(find<M::stopped>(last));
    EXPECT_TRUE(find<M::stopped>(last)->outcome.has_value());
}

TEST_F(Session, GivesUpDeregisteringAfterALeaseTime) {
    live();
    at(2s, M::end{});
    at(2s, M::remove_done{tl::unexpected(down)});
    const auto actions = at(12s, M::timer{});
    ASSERT_TRUE(find<M::stopped>(actions));
    EXPECT_EQ(find<M::stopped>(actions)->outcome.error().code, errc::unavailable);
}

}  // namespace
}  // namespace millrace
