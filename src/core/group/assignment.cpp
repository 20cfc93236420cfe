#include "group/assignment.hpp"

#include "assert.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace millrace {

namespace {

constexpr auto nobody = static_cast<std::size_t>(-1);

// The number of shards for each worker: all equal, and one more for the largest holders where it does not
// divide.
std::vector<std::size_t> quotas(const std::vector<std::size_t>& held, std::size_t shards) {
    std::vector<std::size_t> by_claim(held.size());
    std::iota(by_claim.begin(), by_claim.end(), std::size_t{0});
    std::stable_sort(by_claim.begin(), by_claim.end(), [&](std::size_t a, std::size_t b) {
        return held[a] > held[b];
    });
    std::vector<std::size_t> quota(held.size(), shards / held.size());
    for (std::size_t i = 0; i < shards % held.size(); ++i)
        ++quota[by_claim[i]];
    return quota;
}

}  // namespace

std::vector<std::size_t> assign_shards(
    std::span<const incarnation> workers, std::span<const assignable_shard> shards
) {
    MILLRACE_ASSERT(!workers.empty());
    std::unordered_map<incarnation, std::size_t> index_of;
    for (std::size_t i = 0; i < workers.size(); ++i)
        index_of.emplace(workers[i], i);

    std::vector<std::size_t> target(shards.size(), nobody);
    std::vector<std::size_t> held(workers.size(), 0);
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const auto owner = index_of.find(shards[i].owner);
        if (owner == index_of.end()) continue;
        target[i] = owner->second;
        ++held[owner->second];
    }

    std::vector<std::size_t> by_id(shards.size());
    std::iota(by_id.begin(), by_id.end(), std::size_t{0});
    std::sort(by_id.begin(), by_id.end(), [&](std::size_t a, std::size_t b) {
        return shards[a].shard < shards[b].shard;
    });

    const auto quota = quotas(held, shards.size());
    std::vector<std::size_t> kept(workers.size(), 0);
    for (const auto i : by_id) {
        if (target[i] == nobody) continue;
        if (kept[target[i]] < quota[target[i]]) {
            ++kept[target[i]];
        } else {
            target[i] = nobody;
        }
    }
    std::size_t next = 0;
    for (const auto i : by_id) {
        if (target[i] != nobody) continue;
        while (kept[next] == quota[next])
            ++next;
        target[i] = next;
        ++kept[next];
    }
    return target;
}

}  // namespace millrace
