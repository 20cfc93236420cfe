#include "support/group_check.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace::support {
namespace {

using namespace std::chrono_literals;

struct GroupCheck : testing::Test {
    void put(int n, const std::string& key = "k", const std::string& shard = "s") {
        check.put(shard, std::to_string(n), key, static_cast<std::uint64_t>(n));
    }
    void put_all(int last) {
        for (int n = 1; n <= last; ++n)
            put(n);
    }
    void print(int n, int epoch, const std::string& worker = "a", const std::string& shard = "s") {
        check.line(
            R"({"stream":"x","shard":")" + shard + R"(","sequence":")" + std::to_string(n) +
                R"(","sub_sequence":0,"key":"k","data":")" + std::to_string(n) + R"(","worker":")" + worker +
                R"(","epoch":)" + std::to_string(epoch) + "}",
            time
        );
    }
    void print_all(int from, int to, int epoch, const std::string& worker = "a") {
        for (int n = from; n <= to; ++n)
            print(n, epoch, worker);
    }
    static shard_sample row(std::uint64_t epoch, const std::string& checkpoint = {}) {
        shard_sample made{
            .shard = "s", .parents = {}, .owner = "i", .epoch = epoch, .version = epoch, .checkpoint = {}};
        if (!checkpoint.empty()) made.checkpoint = decimal{checkpoint};
        return made;
    }
    void excuse(const std::string& worker, std::uint64_t repeats) {
        check.disturbed({.worker = worker, .from = check.now(), .to = check.now(), .repeats = repeats});
    }
    void expect_only(const std::string& fault, std::uint64_t count = 1) {
        const auto report = check.judge();
        EXPECT_EQ(report.count(fault), count) << report.text();
        EXPECT_EQ(report.faults.size(), 1U) << report.text();
    }
    void expect_clean() {
        const auto report = check.judge();
        EXPECT_TRUE(report.faults.empty()) << report.text();
    }

    group_check check{1s};
    std::chrono::milliseconds time{0};  // of the lines
};

TEST_F(GroupCheck, ComparesSequencesAsNumbers) {
    EXPECT_LT(decimal{"9"}, decimal{"10"});
    EXPECT_LT(decimal{"10"}, decimal{"11"});
    EXPECT_EQ(decimal{"10"}, decimal{"10"});
}

TEST_F(GroupCheck, IsCleanWhenEverythingComesOnce) {
    put_all(3);
    print_all(1, 2, 1);
    check.sample({row(1, "2")});
    print(3, 2, "b");
    check.sample({row(2, "3")});
    expect_clean();
    EXPECT_EQ(check.judge().owners, 2U);
    EXPECT_EQ(check.delivered(), 3U);
    EXPECT_EQ(check.last_of("s"), decimal{"3"});
}

TEST_F(GroupCheck, CountsWhatIsLost) {
    put_all(3);
    print(1, 1);
    print(3, 1);
    expect_only("lost");
}

TEST_F(GroupCheck, CountsWhatNobodyPutAndWhatIsNoLine) {
    print(1, 1);
    expect_only("never put");
    put(1);
    check.line("{\"shard\":\"s\",\"sequ");
    expect_only("not a line of a record");
}

TEST_F(GroupCheck, CountsARecordThatIsNotAsItWasPut) {
    check.put("s", "1", "other", 1);
    print(1, 1);
    expect_only("not as it was put");
}

TEST_F(GroupCheck, CountsAFirstDeliveryBehindALaterOneOfItsKey) {
    put(1, "k", "s");
    put(2, "k", "t");
    print(2, 1, "a", "t");
    print(1, 1, "a", "s");
    expect_only("out of order");
}

TEST_F(GroupCheck, CountsStepsBackUnderOneEpoch) {
    put_all(2);
    print_all(1, 2, 1);
    print(2, 1);
    expect_only("back within an epoch");
}

TEST_F(GroupCheck, ExcusesRepeatsOfAWorkerThatWasDisturbedWhileItHadTheShard) {
    put_all(4);
    print_all(1, 3, 1);
    excuse("a", 2);
    print_all(2, 4, 2, "b");
    expect_clean();
    EXPECT_EQ(check.judge().repeated, 2U);
    EXPECT_EQ(check.judge().most_repeated, 2U);
}

TEST_F(GroupCheck, DoesNotExcuseMoreThanTheFaultAllows) {
    put_all(3);
    print_all(1, 3, 1);
    excuse("", 2);
    print_all(1, 3, 2, "b");
    expect_only("too many again");
}

TEST_F(GroupCheck, DoesNotExcuseRepeatsOfAnotherWorkerOrOfAnotherTime) {
    put_all(3);
    print(1, 1);
    excuse("a", 10);
    print_all(2, 2, 2, "b");
    print_all(2, 3, 3, "c");
    excuse("b", 10);
    expect_only("again for no reason");
}

TEST_F(GroupCheck, DoesNotExcuseRepeatsOfWhatShouldHaveBeenWrittenBeforeTheFault) {
    put_all(4);
    print(1, 1);
    time = 1500ms;
    print_all(2, 3, 1);
    excuse("a", 10);
    time = 5s;
    print_all(2, 4, 2, "b");
    expect_clean();
    excuse("b", 10);
    print_all(1, 4, 3, "c");
    expect_only("again for no reason");
}

TEST_F(GroupCheck, LooksAtWhoDeliveredARepeatedRecordLast) {
    put_all(3);
    print_all(1, 3, 1);
    excuse("a", 10);
    print_all(2, 2, 2, "b");  // and gives back in order
    print_all(3, 3, 3, "c");  // what the first one had not written
    expect_clean();
}

TEST_F(GroupCheck, CountsALineBehindOneOfALaterEpoch) {
    put_all(3);
    print(1, 1);
    excuse("a", 10);
    print(2, 2, "b");
    print(3, 1);
    print(3, 2, "b");
    expect_only("two readers at once");
}

TEST_F(GroupCheck, CountsTwoOwnersOfOneEpoch) {
    put_all(2);
    print(1, 1);
    print(2, 1, "b");
    expect_only("two owners");
}

TEST_F(GroupCheck, CountsTwoOwnersOfOneEpochInTheRow) {
    check.sample({row(1)});
    auto other = row(1);
    other.owner = "j";
    other.version = 2;
    check.sample({other});
    expect_only("two owners");
}

TEST_F(GroupCheck, CountsWhatGoesBackInTheRow) {
    put_all(2);
    print_all(1, 2, 2);
    check.sample({row(2, "2")});
    check.sample({row(1, "1")});
    const auto report = check.judge();
    EXPECT_EQ(report.count("epoch went back"), 1U);
    EXPECT_EQ(report.count("version went back"), 1U);
    EXPECT_EQ(report.count("checkpoint went back"), 1U);
}

TEST_F(GroupCheck, CountsARowThatGoesAndAFinishedOneThatIsNoMore) {
    auto done = row(1);
    done.finished = true;
    check.sample({done});
    check.sample({row(1)});
    expect_only("finished no more");
    check.sample({});
    EXPECT_EQ(check.judge().count("a row is gone"), 1U);
}

TEST_F(GroupCheck, CountsACheckpointAheadOfADelivery) {
    put_all(3);
    print(1, 1);
    check.sample({row(1, "2")});
    print_all(2, 3, 1);
    check.sample({row(1, "3")});
    expect_only("checkpoint ahead of deliveries");
}

TEST_F(GroupCheck, CountsAShardThatIsFinishedBeforeItsLastRecord) {
    put_all(2);
    print(1, 1);
    auto done = row(1, "1");
    done.finished = true;
    check.sample({done});
    print(2, 1);
    expect_only("finished before its last record");
}

TEST_F(GroupCheck, CountsWhatIsReadAgainThoughItsCheckpointWasWritten) {
    put_all(3);
    print_all(1, 2, 1);
    check.sample({row(1, "2")});
    excuse("a", 10);
    print_all(2, 3, 2, "b");
    expect_only("read again before the checkpoint");
}

TEST_F(GroupCheck, CountsARecordOfAParentBehindTheFirstOfItsChild) {
    put(1);
    put(2, "k", "child");
    check.shard("child", {"s"});
    print(2, 1, "a", "child");
    print(1, 1);
    EXPECT_EQ(check.judge().count("child before its parent"), 1U);
}

TEST_F(GroupCheck, CountsATakenChildWhoseParentIsStillNotFinishedInTheNextSample) {
    auto child = row(1);
    child.shard = "child";
    child.parents = {"s"};
    auto parent = row(1);
    check.sample({parent, child});
    auto finished = parent;
    finished.finished = true;
    auto later = check;
    later.sample({finished, child});
    EXPECT_TRUE(later.judge().faults.empty()) << "a listing is no snapshot";
    check.sample({parent, child});
    EXPECT_EQ(check.judge().count("child before its parent"), 1U);
}

}  // namespace
}  // namespace millrace::support
