#include "group/lapse.hpp"

#include "group/membership.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

process_identity process_of(std::int64_t pid, std::string boot = "boot") {
    return {"host", std::move(boot), "pid:[1]", pid, 7};
}

worker_row worker(std::string name, std::uint64_t counter, nanoseconds lease = 10s, std::int64_t pid = 2) {
    const incarnation session{name};
    return {worker_id{std::move(name)}, session, version{counter}, {}, lease, 0, process_of(pid), {}};
}

struct Lapse : testing::Test {
    std::vector<worker_row> see(nanoseconds sent, nanoseconds replied, std::vector<worker_row> rows) {
        return observer.observe(mono_time{sent}, mono_time{replied}, rows);
    }
    std::int64_t dead{0};
    lapse_observer observer{process_of(1), [this](const process_identity& p) { return p.pid == dead; }};
};

TEST_F(Lapse, CountsFromTheFirstReplyToTheSendingOfTheLatestRequest) {
    EXPECT_TRUE(see(0s, 5s, {worker("a", 1)}).empty());
    EXPECT_TRUE(see(15s, 40s, {worker("a", 1)}).empty()
    );  // sent 10 s after the reply, however late its answer
    EXPECT_EQ(see(15001ms, 15002ms, {worker("a", 1)}).size(), 1U);
    EXPECT_TRUE(observer.lapsed(incarnation{"a"}));
}

TEST_F(Lapse, AHeartbeatBeginsTheCountAnew) {
    EXPECT_TRUE(see(0s, 0s, {worker("a", 1)}).empty());
    EXPECT_TRUE(see(9s, 9s, {worker("a", 2)}).empty());
    EXPECT_TRUE(see(18s, 18s, {worker("a", 2)}).empty());
    EXPECT_EQ(see(20s, 20s, {worker("a", 2)}).size(), 1U);
}

TEST_F(Lapse, TheLeaseTimeIsThatOfTheRow) {
    EXPECT_TRUE(see(0s, 0s, {worker("short", 1, 1s), worker("long", 1, 60s)}).empty());
    const auto over = see(2s, 2s, {worker("short", 1, 1s), worker("long", 1, 60s)});
    ASSERT_EQ(over.size(), 1U);
    EXPECT_EQ(over[0].worker, worker_id{"short"});
}

TEST_F(Lapse, AVanishedSessionIsForgotten) {
    EXPECT_TRUE(see(0s, 0s, {worker("a", 1)}).empty());
    EXPECT_TRUE(see(5s, 5s, {}).empty());
    EXPECT_TRUE(see(20s, 20s, {worker("a", 1)}).empty());
}

TEST_F(Lapse, AProcessOfThisMachineThatIsGoneNeedsNoWaiting) {
    dead = 2;
    EXPECT_EQ(see(0s, 0s, {worker("a", 1)}).size(), 1U);
}

TEST_F(Lapse, AProcessOfAnotherBootOrNamespaceIsNotAskedAbout) {
    dead = 2;
    auto row = worker("a", 1);
    row.process = process_of(2, "another boot");
    EXPECT_TRUE(see(0s, 0s, {row}).empty());
    row.process = process_of(2);
    row.process.pid_namespace = "pid:[2]";
    EXPECT_TRUE(see(1s, 1s, {row}).empty());
    row.process.boot_id.clear();
    row.process.pid_namespace.clear();
    EXPECT_TRUE(see(2s, 2s, {row}).empty());
}

worker_row unreadable(std::string name, std::uint64_t counter, nanoseconds lease) {
    auto row = worker(std::move(name), counter, lease, 0);
    row.unreadable = "a column is not what Millrace writes";
    return row;
}

TEST_F(Lapse, ARowThatCannotBeReadCountsByItsLeaseAsFarAsThatIsKnown) {
    EXPECT_TRUE(see(0s, 0s, {worker("a", 7, 10s)}).empty());
    EXPECT_TRUE(see(1s, 1s, {unreadable("a", 0, 0s), unreadable("b", 0, 5s), unreadable("c", 0, 0s)}).empty()
    );
    const auto at_7s = see(7s, 7s, {unreadable("a", 0, 0s), unreadable("b", 0, 5s), unreadable("c", 0, 0s)});
    ASSERT_EQ(at_7s.size(), 1U);
    EXPECT_EQ(at_7s.front().incarnation, incarnation{"b"}) << "its own column says how long";
    EXPECT_EQ(see(12s, 12s, {unreadable("a", 0, 0s), unreadable("c", 0, 0s)}).size(), 1U)
        << "a: from its last readable row; from c nothing was ever known";
    EXPECT_TRUE(see(3500s, 3500s, {unreadable("c", 0, 0s)}).empty());
    EXPECT_EQ(see(3602s, 3602s, {unreadable("c", 0, 0s)}).size(), 1U);
}

TEST_F(Lapse, AForeignRowIsNobodysSessionAndAnUnreadableProcessIsNotTakenForGone) {
    dead = 0;
    EXPECT_TRUE(see(0s, 0s, {unreadable("", 0, 1s), unreadable("a", 1, 10s)}).empty());
    EXPECT_TRUE(see(100s, 100s, {unreadable("", 0, 1s)}).empty());
}

TEST(Membership, LeavesOutARowThatCannotBeRead) {
    const auto members = membership_of({worker("a", 1), unreadable("b", 1, 10s)}, {}, incarnation{"a"});
    ASSERT_EQ(members.members.size(), 1U);
    EXPECT_EQ(members.members[0].worker, worker_id{"a"});
}

TEST(Membership, OrdersByWorkerThenSessionAndLeavesOutTheLapsed) {
    const std::vector<worker_row> rows{worker("c", 1), worker("a", 1), worker("b", 1)};
    const auto members = membership_of(rows, {worker("a", 1)}, incarnation{"c"});
    ASSERT_EQ(members.members.size(), 2U);
    EXPECT_EQ(members.members[0].worker, worker_id{"b"});
    EXPECT_EQ(members.index, 1U);
    EXPECT_FALSE(membership_of(rows, {}, incarnation{"elsewhere"}).index);
}

}  // namespace
}  // namespace millrace
