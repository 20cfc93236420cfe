#include "group/import.hpp"

#include "group_import.hpp"
#include "group_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr wall_time now{milliseconds{1'000'000}};
constexpr wall_time stream_now{milliseconds{2'000'000}};

shard_id id(const std::string& name) {
    return shard_id{name};
}
imported_shard line(const std::string& shard, std::optional<std::uint64_t> sequence, bool finished = false) {
    return {
        .line = 1,
        .shard = id(shard),
        .reached = sequence ? std::optional(position{sequence_number{*sequence}, 0}) : std::nullopt,
        .finished = finished};
}
shard_row row(const std::string& shard, std::optional<std::uint64_t> sequence, bool finished = false) {
    shard_row r;
    r.shard = id(shard);
    r.epoch = epoch{7};
    r.version = version{3};
    r.owner = incarnation{"over"};
    if (sequence) r.checkpoint = checkpoint{{sequence_number{*sequence}, 0}, wall_time{}};
    if (finished) r.finished_at = wall_time{milliseconds{1}};
    return r;
}

/// A was split into B and C; C and D were merged into E.
struct GroupImportPlan : testing::Test {
    GroupImportPlan() {
        stream.now = stream_now;
        stream.shards = {
            {id("A"), {}, true, "", ""},
            {id("B"), {id("A")}, false, "", ""},
            {id("C"), {id("A")}, true, "", ""},
            {id("D"), {id("trimmed")}, true, "", ""},
            {id("E"), {id("C"), id("D")}, false, "", ""}};
    }
    result<import_plan> plan(std::vector<imported_shard> lines, bool force = false) const {
        std::uint64_t next = 100;
        return plan_import(lines, {stream, group, rows, now}, force, [&] { return next++; });
    }
    std::string why(std::vector<imported_shard> lines) const {
        const auto made = plan(std::move(lines));
        return made ? "there is a plan" : made.error().detail;
    }
    static std::vector<std::string> states(const import_plan& of) {
        std::vector<std::string> out;
        for (const auto& w : of.writes) {
            auto text = w.row.shard.value();
            if (w.row.checkpoint) text += " " + w.row.checkpoint->position.sequence.to_string();
            if (w.row.finished_at) text += " finished";
            out.push_back(text);
        }
        return out;
    }

    stream_listing stream;
    std::optional<group_row> group;
    std::vector<shard_row> rows;
};

TEST_F(GroupImportPlan, RefusesToFinishAShardThatIsOpen) {
    EXPECT_THAT(why({line("B", 5, true)}), HasSubstr("line 1: shard \"B\" cannot be finished: it is open"));
    EXPECT_THAT(why({line("E", std::nullopt, true)}), HasSubstr("is open in the stream"));
    EXPECT_TRUE(plan({line("C", std::nullopt, true), line("trimmed", std::nullopt, true)}));
}

TEST_F(GroupImportPlan, RefusesAnotherStreamThanTheGroupHasCheckpointsOf) {
    stream.identity = "arn:aws:kinesis:eu-west-1:1:stream/s of 5";
    group = group_row{};
    group->stream_identity = "arn:aws:kinesis:us-east-1:1:stream/s of 5";
    EXPECT_THAT(why({line("B", 5)}), HasSubstr("correct the region"));
    group->stream_identity = stream.identity;
    EXPECT_TRUE(plan({line("B", 5)}));
}

TEST_F(GroupImportPlan, MakesRowsAboveTheHighestEpochAndWithTheTimeOfTheStream) {
    group = group_row{};
    group->epoch_floor = epoch{9};
    rows = {row("B", 5)};
    auto first = line("A", 40, true);
    const auto made = plan({first, line("B", 50)});
    ASSERT_TRUE(made);
    ASSERT_EQ(made->writes.size(), 2U);
    const auto& a = made->writes[0];
    EXPECT_EQ(a.expected, std::nullopt);
    EXPECT_EQ(a.row.version, version{1});
    EXPECT_EQ(a.row.epoch, epoch{10});
    EXPECT_EQ(a.row.finished_at, now);
    EXPECT_EQ(a.row.checkpoint, (checkpoint{{sequence_number{40}, 0}, stream_now}));
    const auto& b = made->writes[1];
    EXPECT_EQ(b.expected, version{3});
    EXPECT_EQ(b.row.version, version{4});
    EXPECT_EQ(b.row.epoch, epoch{10});
    EXPECT_EQ(b.row.owner, incarnation{});
    EXPECT_EQ(b.row.checkpoint->position.sequence, sequence_number{50});
    EXPECT_NE(a.row.write_id, b.row.write_id);
}

TEST_F(GroupImportPlan, RefusesShardsThatAreUnknownOrStandTwice) {
    auto unknown = line("X", 1);
    unknown.line = 12;
    EXPECT_THAT(why({line("A", 1), unknown}), HasSubstr("line 12: shard \"X\" is not in the stream"));
    auto twice = line("B", 2);
    twice.line = 13;
    EXPECT_THAT(why({line("B", 1), twice}), HasSubstr("line 13: shard \"B\" stands in line 1, too"));
}

TEST_F(GroupImportPlan, LeavesOutFinishedShardsThatTheStreamNoLongerHas) {
    const auto made = plan({line("X", 1, true)});
    ASSERT_TRUE(made);
    EXPECT_THAT(made->gone, ElementsAre(id("X")));
    EXPECT_THAT(made->writes, IsEmpty());
}

TEST_F(GroupImportPlan, AParentWithoutALineOrCheckpointOfItsOwnIsTakenForFinished) {
    const auto made = plan({line("E", 9)});
    ASSERT_TRUE(made);
    EXPECT_THAT(states(*made), ElementsAre("E 9", "C finished", "D finished", "A finished"));
    EXPECT_THAT(made->inferred, ElementsAre(id("C"), id("D"), id("A")));
}

TEST_F(GroupImportPlan, AParentThatIsHalfReadIsNotTakenForFinished) {
    rows = {row("D", 4)};
    const auto made = plan({line("E", 9), line("C", 3)});
    ASSERT_TRUE(made);
    EXPECT_THAT(states(*made), ElementsAre("E 9", "C 3", "A finished"));
    EXPECT_THAT(made->inferred, ElementsAre(id("A")));
}

TEST_F(GroupImportPlan, NothingIsInferredFromASibling) {
    const auto made = plan({line("A", 1)});
    ASSERT_TRUE(made);
    EXPECT_THAT(states(*made), ElementsAre("A 1"));
}

TEST_F(GroupImportPlan, CheckpointsNeverGoBack) {
    rows = {row("A", 10, true), row("B", 100), row("C", 30)};
    const std::vector lines{line("A", 5), line("B", 99), line("C", 31)};
    const auto made = plan(lines);
    ASSERT_TRUE(made);
    EXPECT_THAT(states(*made), ElementsAre("C 31"));
    EXPECT_THAT(made->kept, ElementsAre(id("A"), id("B")));
    const auto forced = plan(lines, true);
    ASSERT_TRUE(forced);
    EXPECT_THAT(states(*forced), ElementsAre("A 5", "B 99", "C 31"));
    EXPECT_THAT(forced->kept, IsEmpty());
}

TEST_F(GroupImportPlan, AFinishedLineFinishesAndKeepsTheFurtherPosition) {
    rows = {row("A", 10), row("C", 10), row("D", 10, true)};
    const auto made = plan({line("A", 5, true), line("C", std::nullopt, true), line("D", 99, true)});
    ASSERT_TRUE(made);
    EXPECT_THAT(states(*made), ElementsAre("A 10 finished", "C 10 finished"));
    EXPECT_EQ(made->same, 1U);
}

TEST_F(GroupImportPlan, ASecondImportOfTheSameWritesNothing) {
    const std::vector lines{line("E", 9), line("B", 4), line("D", std::nullopt, true)};
    const auto first = plan(lines);
    ASSERT_TRUE(first);
    for (const auto& w : first->writes)
        rows.push_back(w.row);
    for (const bool force : {false, true}) {
        const auto second = plan(lines, force);
        ASSERT_TRUE(second);
        EXPECT_THAT(second->writes, IsEmpty());
        EXPECT_EQ(second->same, 3U);
    }
}

TEST_F(GroupImportPlan, ComparesNumbersNotText) {
    rows = {row("A", 1, true), row("B", 9)};
    const auto made = plan({line("B", 10)});
    ASSERT_TRUE(made);
    EXPECT_THAT(states(*made), ElementsAre("B 10"));
}

struct listed_stream final : shard_lister {
    listed_stream(host& on, stream_listing of) : home(on), listing(std::move(of)) {}
    void list_shards(completion<stream_listing> done) override {
        home.post([done = std::move(done), this] { done(listing); });
    }
    host& home;
    stream_listing listing;
};

struct GroupImport : sim::GroupWorld {
    std::optional<result<import_report>> import(std::vector<imported_shard> lines, nanoseconds span) {
        std::optional<result<import_report>> outcome;
        sim::sim_host host{world, random};
        sim::fake_lease_store store{table, world, host, random, plan};
        listed_stream lister{host, *stream};
        group_import tool{host, lister, store, std::move(lines), false, {"tool", "b", "n", 1, 1}, {}};
        tool.start([&](const result<import_report>& o) { outcome = o; });
        world.run_for(span);
        return outcome;
    }
};

TEST_F(GroupImport, IsRefusedWhileASessionLives) {
    run("a");
    world.run_for(2s);
    const auto before = row("shard-0000");
    const auto outcome = import({line("shard-0000", 50)}, 5s);
    ASSERT_TRUE(outcome && !*outcome);
    EXPECT_EQ(outcome->error().code, errc::conflict);
    EXPECT_THAT(outcome->error().detail, HasSubstr("worker \"a\""));
    EXPECT_EQ(row("shard-0000"), before);
}

TEST_F(GroupImport, IntoANewGroupIsWhereItsWorkersBegin) {
    stream->shards.at(1).closed = true;
    const auto outcome = import({line("shard-0000", 50), line("shard-0001", 60, true)}, 5s);
    ASSERT_TRUE(outcome && *outcome);
    EXPECT_EQ((*outcome)->written, 2U);
    auto& a = run("a");
    world.run_for(5s);
    EXPECT_EQ(a.held.at(id("shard-0000")).checkpoint->position.sequence, sequence_number{50});
    EXPECT_FALSE(a.held.contains(id("shard-0001")));
    EXPECT_EQ(a.held.size(), 3U);
}

TEST_F(GroupImport, WaitsForADeadWorkerAndOutranksIt) {
    auto& a = run("a");
    world.run_for(3s);
    const auto lease = a.held.at(id("shard-0000"));
    a.crash();
    EXPECT_FALSE(import({line("shard-0000", 50)}, 5s));
    const auto outcome = import({line("shard-0000", 50)}, 15s);
    ASSERT_TRUE(outcome && *outcome);
    EXPECT_GT(row("shard-0000").epoch, lease.epoch);
    EXPECT_EQ(row("shard-0000").owner, incarnation{});
}

TEST_F(GroupImport, SucceedsOnAStoreThatLosesRequestsAndReplies) {
    plan.lost_reply = 15;
    plan.lost_request = 15;
    plan.unavailable = 10;
    for (std::uint64_t i = 1; i <= 20; ++i) {
        std::vector<imported_shard> lines;
        for (const auto& shard : stream->shards)
            lines.push_back(line(shard.shard.value(), i));
        const auto outcome = import(lines, 120s);
        ASSERT_TRUE(outcome && *outcome) << i;
        EXPECT_EQ((*outcome)->written, 4U);
        for (const auto& shard : stream->shards)
            EXPECT_EQ(row(shard.shard.value()).checkpoint->position.sequence, sequence_number{i});
    }
}

}  // namespace
}  // namespace millrace
