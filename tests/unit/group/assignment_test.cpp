#include "group/assignment.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

std::vector<incarnation> workers_named(std::size_t count) {
    std::vector<incarnation> all;
    for (std::size_t i = 0; i < count; ++i)
        all.emplace_back(fmt::format("w{:03}", i));
    return all;
}

// Shards with owners drawn from the workers, nobody, and somebody who is no longer there.
std::vector<assignable_shard> some_shards(std::size_t workers) {
    const auto owners =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, workers + 2));
    std::vector<assignable_shard> all;
    for (std::size_t i = 0; i < owners.size(); ++i) {
        auto owner = owners[i] < workers ? incarnation{fmt::format("w{:03}", owners[i])} : incarnation{};
        if (owners[i] == workers + 1) owner = incarnation{"gone"};
        all.push_back({shard_id{fmt::format("s{:04}", i)}, owner});
    }
    return all;
}

std::vector<assignable_shard> applied(
    std::vector<assignable_shard> shards,
    const std::vector<incarnation>& workers,
    const std::vector<std::size_t>& target
) {
    for (std::size_t i = 0; i < shards.size(); ++i)
        shards[i].owner = workers[target[i]];
    return shards;
}

std::vector<std::size_t> loads(const std::vector<std::size_t>& target, std::size_t workers) {
    std::vector<std::size_t> load(workers, 0);
    for (const auto worker : target)
        ++load[worker];
    return load;
}

RC_GTEST_PROP(Assignment, BalancesToWithinOne, ()) {
    const auto workers = workers_named(*rc::gen::inRange<std::size_t>(1, 12));
    const auto shards = some_shards(workers.size());
    const auto load = loads(assign_shards(workers, shards), workers.size());
    RC_ASSERT(*std::max_element(load.begin(), load.end()) <= *std::min_element(load.begin(), load.end()) + 1);
}

RC_GTEST_PROP(Assignment, ChangesNothingWhenAppliedToItsOwnResult, ()) {
    const auto workers = workers_named(*rc::gen::inRange<std::size_t>(1, 12));
    const auto shards = some_shards(workers.size());
    const auto target = assign_shards(workers, shards);
    RC_ASSERT(assign_shards(workers, applied(shards, workers, target)) == target);
}

RC_GTEST_PROP(Assignment, DoesNotDependOnTheOrderOfTheShards, ()) {
    const auto workers = workers_named(*rc::gen::inRange<std::size_t>(1, 12));
    auto shards = some_shards(workers.size());
    const auto target = assign_shards(workers, shards);
    std::map<shard_id, std::size_t> by_id;
    for (std::size_t i = 0; i < shards.size(); ++i)
        by_id[shards[i].shard] = target[i];
    std::reverse(shards.begin(), shards.end());
    const auto again = assign_shards(workers, shards);
    for (std::size_t i = 0; i < shards.size(); ++i)
        RC_ASSERT(again[i] == by_id[shards[i].shard]);
}

// With the quotas given to the largest holders, only what exceeds a quota moves.
RC_GTEST_PROP(Assignment, MovesTheFewestShardsThatBalanceAllows, ()) {
    const auto workers = workers_named(*rc::gen::inRange<std::size_t>(1, 12));
    const auto shards = some_shards(workers.size());
    const auto target = assign_shards(workers, shards);
    std::vector<std::size_t> held(workers.size(), 0);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const auto owner = std::find(workers.begin(), workers.end(), shards[i].owner);
        if (owner == workers.end()) continue;
        ++held[static_cast<std::size_t>(owner - workers.begin())];
        if (workers[target[i]] != shards[i].owner) ++moved;
    }
    std::sort(held.rbegin(), held.rend());
    std::size_t least = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
        const auto quota = shards.size() / held.size() + (i < shards.size() % held.size() ? 1 : 0);
        least += held[i] > quota ? held[i] - quota : 0;
    }
    RC_ASSERT(moved == least);
}

TEST(Assignment, GivesTheLargerShareToTheLargerHolderThenToTheFirst) {
    const auto workers = workers_named(2);
    std::vector<assignable_shard> shards{
        {shard_id{"a"}, workers[1]}, {shard_id{"b"}, workers[1]}, {shard_id{"c"}, incarnation{}}};
    EXPECT_EQ(assign_shards(workers, shards), (std::vector<std::size_t>{1, 1, 0}));
    for (auto& shard : shards)
        shard.owner = incarnation{};
    EXPECT_EQ(assign_shards(workers, shards), (std::vector<std::size_t>{0, 0, 1}));
}

TEST(Assignment, AJoinAndALeaveOfAHundredWorkersMoveOneShareOnly) {
    const auto all = workers_named(100);
    std::vector<assignable_shard> shards;
    for (std::size_t i = 0; i < 2000; ++i)
        shards.push_back({shard_id{fmt::format("s{:04}", i)}, incarnation{}});
    const std::vector<incarnation> fewer(all.begin(), all.end() - 1);
    shards = applied(shards, fewer, assign_shards(fewer, shards));
    const auto joined = assign_shards(all, shards);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < shards.size(); ++i)
        moved += all[joined[i]] != shards[i].owner ? 1 : 0;
    EXPECT_EQ(moved, 20U);
}

}  // namespace
}  // namespace millrace
