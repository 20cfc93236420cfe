#include "shard/lineage.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

listed_shard listed(std::string name, std::vector<std::string> parents = {}) {
    listed_shard shard{.shard = shard_id{std::move(name)}};
    for (auto& parent : parents)
        shard.parents.emplace_back(std::move(parent));
    return shard;
}

shard_row row(std::string name, bool finished = false, std::uint64_t v = 1) {
    shard_row r;
    r.shard = shard_id{std::move(name)};
    r.version = version{v};
    if (finished) r.finished_at = wall_time{milliseconds{5}};
    return r;
}

using stages = std::map<std::string, shard_stage>;

stages stages_of(const lineage& l) {
    stages result;
    for (const auto& s : l.shards)
        result[s.shard.value()] = s.stage;
    return result;
}

std::vector<std::string> waits_for(const lineage& l, const std::string& shard) {
    std::vector<std::string> names;
    for (const auto& s : l.shards)
        if (s.shard.value() == shard)
            for (const auto& parent : s.waits_for)
                names.push_back(parent.value());
    return names;
}

constexpr auto ready = shard_stage::ready;
constexpr auto waiting = shard_stage::waiting;
constexpr auto finished = shard_stage::finished;
constexpr auto gone = shard_stage::gone;

TEST(Lineage, AFinishedShardThatIsListedAsOpenIsOpenAgain) {
    auto closed = listed("a");
    closed.closed = true;
    const std::vector rows{row("a", true), row("b", true), row("c")};
    const auto l = trace_lineage(std::vector{closed, listed("b"), listed("c")}, rows);
    EXPECT_EQ(stages_of(l), (stages{{"a", finished}, {"b", finished}, {"c", ready}}));
    EXPECT_FALSE(l.shards[0].open_again);
    EXPECT_TRUE(l.shards[1].open_again);
    EXPECT_FALSE(l.shards[2].open_again);
}

TEST(Lineage, AChildOfASplitWaitsUntilItsParentIsFinishedAndNotOnlyClosed) {
    const std::vector list{listed("a"), listed("b", {"a"}), listed("c", {"a"})};
    const auto before = trace_lineage(list, std::vector{row("a"), row("b"), row("c")});
    EXPECT_EQ(stages_of(before), (stages{{"a", ready}, {"b", waiting}, {"c", waiting}}));
    EXPECT_EQ(waits_for(before, "b"), std::vector<std::string>{"a"});
    const auto after = trace_lineage(list, std::vector{row("a", true), row("b"), row("c")});
    EXPECT_EQ(stages_of(after), (stages{{"a", finished}, {"b", ready}, {"c", ready}}));
    EXPECT_TRUE(after.problems.empty());
}

TEST(Lineage, AChildOfAMergeWaitsForBothParents) {
    const std::vector list{listed("m", {"a", "b"}), listed("b"), listed("a")};
    EXPECT_EQ(waits_for(trace_lineage(list, {}), "m"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(
        waits_for(trace_lineage(list, std::vector{row("a", true)}), "m"), std::vector<std::string>{"b"}
    );
    EXPECT_EQ(stages_of(trace_lineage(list, std::vector{row("a", true), row("b", true)}))["m"], ready);
}

TEST(Lineage, EveryListedShardWithoutARowIsToGetOneAndOthersAreNot) {
    const auto l = trace_lineage(std::vector{listed("a"), listed("b", {"a"})}, std::vector{row("a")});
    ASSERT_EQ(l.shards.size(), 2U);
    EXPECT_TRUE(l.shards[0].has_row);
    EXPECT_FALSE(l.shards[1].has_row);
    EXPECT_EQ(l.shards[1].parents, std::vector{shard_id{"a"}});
}

TEST(Lineage, AListedParentWithoutARowHoldsItsChildBack) {
    const auto l = trace_lineage(std::vector{listed("a"), listed("b", {"a"})}, std::vector{row("b")});
    EXPECT_EQ(stages_of(l)["b"], waiting);
}

TEST(Lineage, AnUnknownParentWasTrimmedLongAgo) {
    const auto l = trace_lineage(std::vector{listed("b", {"trimmed"})}, {});
    EXPECT_EQ(stages_of(l), (stages{{"b", ready}}));
    EXPECT_TRUE(l.problems.empty());
}

TEST(Lineage, ATrimmedUnfinishedParentDoesNotBlockItsChildrenForEver) {
    const auto l = trace_lineage(std::vector{listed("b", {"a"})}, std::vector{row("a"), row("b")});
    EXPECT_EQ(stages_of(l), (stages{{"a", gone}, {"b", ready}}));
}

TEST(Lineage, CompletionIsNotInferredFromAChildThatHasACheckpointOrIsFinished) {
    auto child = row("b");
    child.checkpoint = checkpoint{{sequence_number{9}, 0}, wall_time{}};
    const std::vector list{listed("a"), listed("b", {"a"}), listed("c", {"a"})};
    EXPECT_EQ(
        stages_of(trace_lineage(list, std::vector{row("a"), child})),
        (stages{{"a", ready}, {"b", waiting}, {"c", waiting}})
    );
    EXPECT_EQ(
        stages_of(trace_lineage(list, std::vector{row("a"), row("b", true)})),
        (stages{{"a", ready}, {"b", finished}, {"c", waiting}})
    );
}

TEST(Lineage, AGrandchildWaitsForItsParentThoughTheGrandparentIsFinished) {
    const std::vector list{listed("a"), listed("b", {"a"}), listed("c", {"b"})};
    const auto l = trace_lineage(list, std::vector{row("a", true), row("b"), row("c")});
    EXPECT_EQ(stages_of(l), (stages{{"a", finished}, {"b", ready}, {"c", waiting}}));
}

TEST(Lineage, ASelfParentIsIgnoredAndNamed) {
    const auto l = trace_lineage(std::vector{listed("a", {"a"})}, {});
    EXPECT_EQ(stages_of(l), (stages{{"a", ready}}));
    ASSERT_EQ(l.problems.size(), 1U);
    EXPECT_NE(l.problems[0].find("shard a is listed as its own parent"), std::string::npos);
}

TEST(Lineage, AShardListedTwiceCountsOnce) {
    const auto l = trace_lineage(std::vector{listed("p"), listed("a", {"p"}), listed("a")}, {});
    EXPECT_EQ(stages_of(l), (stages{{"p", ready}, {"a", waiting}}));
    EXPECT_EQ(l.shards.size(), 2U);
    ASSERT_EQ(l.problems.size(), 1U);
    EXPECT_NE(l.problems[0].find("more than once"), std::string::npos);
}

TEST(Lineage, OfARowListedTwiceTheHigherVersionCounts) {
    const std::vector list{listed("a"), listed("b", {"a"})};
    const auto l = trace_lineage(list, std::vector{row("a", true, 8), row("a", false, 7)});
    EXPECT_EQ(stages_of(l), (stages{{"a", finished}, {"b", ready}}));
    const auto unlisted = trace_lineage({}, std::vector{row("a", false, 7), row("a", true, 8)});
    ASSERT_EQ(unlisted.shards.size(), 1U);
    EXPECT_EQ(unlisted.shards[0].stage, finished);
}

TEST(Lineage, AParentNamedTwiceIsWaitedForOnce) {
    const auto l = trace_lineage(std::vector{listed("a"), listed("b", {"a", "a"})}, {});
    EXPECT_EQ(waits_for(l, "b"), std::vector<std::string>{"a"});
}

TEST(Lineage, MoreThanTwoParentsAreAllWaitedForAndNamed) {
    const std::vector list{listed("a"), listed("b"), listed("c"), listed("m", {"a", "b", "c"})};
    const auto l = trace_lineage(list, std::vector{row("a", true), row("b", true)});
    EXPECT_EQ(waits_for(l, "m"), std::vector<std::string>{"c"});
    EXPECT_EQ(l.problems.size(), 1U);
}

TEST(Lineage, ACycleWaitsWithAllBehindItAndOnlyItsMembersAreNamed) {
    const std::vector list{
        listed("a", {"c"}), listed("b", {"a"}), listed("c", {"b"}), listed("behind", {"c"}), listed("free")};
    const auto l = trace_lineage(list, {});
    EXPECT_EQ(
        stages_of(l),
        (stages{{"a", waiting}, {"b", waiting}, {"c", waiting}, {"behind", waiting}, {"free", ready}})
    );
    ASSERT_EQ(l.problems.size(), 1U);
    EXPECT_NE(
        l.problems[0].find("3 shards are listed as ancestors of each other (a, b, c)"), std::string::npos
    );
}

TEST(Lineage, ACycleEndsWhenOneOfItsShardsIsFinished) {
    const std::vector list{listed("a", {"b"}), listed("b", {"a"})};
    const auto l = trace_lineage(list, std::vector{row("a", true)});
    EXPECT_EQ(stages_of(l), (stages{{"a", finished}, {"b", ready}}));
    EXPECT_TRUE(l.problems.empty());
}

TEST(Lineage, TheStartFollowsFromTheGroupAlone) {
    const wall_time pinned{milliseconds{1'000}};
    EXPECT_EQ(start_of({}), start_position{from::trim_horizon{}});
    EXPECT_EQ(
        start_of({.start = start_policy::latest, .start_at = pinned}), start_position{from::timestamp{pinned}}
    );
    EXPECT_EQ(
        start_of({.start = start_policy::at_timestamp, .start_at = pinned}),
        start_position{from::timestamp{pinned}}
    );
}

// Any graph, cycles and unknown names included, against the definition spelled out slowly.
RC_GTEST_PROP(LineageProperty, AgreesWithItsDefinition, ()) {
    const auto name = [] { return std::string(1, static_cast<char>('a' + *rc::gen::inRange(0, 12))); };
    std::vector<listed_shard> list;
    std::vector<shard_row> rows;
    for (int i = *rc::gen::inRange(0, 14); i > 0; --i) {
        std::vector<std::string> parents;
        for (int p = *rc::gen::inRange(0, 4); p > 0; --p)
            parents.push_back(name());
        list.push_back(listed(name(), parents));
    }
    for (int i = *rc::gen::inRange(0, 10); i > 0; --i)
        rows.push_back(row(name(), *rc::gen::arbitrary<bool>(), static_cast<std::uint64_t>(i)));

    std::map<std::string, const listed_shard*> first;
    for (const auto& s : list)
        first.try_emplace(s.shard.value(), &s);
    std::map<std::string, const shard_row*> newest;
    for (const auto& r : rows)
        newest.try_emplace(r.shard.value(), &r);  // versions fall along the list
    const auto done = [&](const std::string& s) { return newest.contains(s) && newest[s]->finished_at; };

    const auto l = trace_lineage(list, rows);
    std::set<std::string> all;
    for (const auto& s : l.shards) {
        const auto& id = s.shard.value();
        RC_ASSERT(all.insert(id).second);
        RC_ASSERT(s.listed == first.contains(id));
        RC_ASSERT(s.has_row == newest.contains(id));
        bool blocked = false;
        if (s.listed)
            for (const auto& p : first[id]->parents)
                blocked = blocked || (p.value() != id && first.contains(p.value()) && !done(p.value()));
        const auto expected = done(id) ? finished : !s.listed ? gone : blocked ? waiting : ready;
        RC_ASSERT(s.stage == expected);
        RC_ASSERT(s.waits_for.empty() == (s.stage != waiting));
    }
    RC_ASSERT(all.size() == [&] {
        std::set<std::string> names;
        for (const auto& [n, s] : first)
            names.insert(n);
        for (const auto& [n, r] : newest)
            names.insert(n);
        return names.size();
    }());
}

}  // namespace
}  // namespace millrace
