#include "group/missing_shards.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds first_pause = std::chrono::milliseconds{500};

}  // namespace

std::optional<nanoseconds> missing_shards::observe(
    const lineage& traced, mono_time listed, nanoseconds usual
) {
    std::set<shard_id> missing;
    for (const auto& standing : traced.shards)
        if (standing.stage == shard_stage::gone) missing.insert(standing.shard);
    const bool news = !std::includes(missing_.begin(), missing_.end(), missing.begin(), missing.end());
    if (news) {
        pause_ = first_pause;
    } else if (listed != listed_ && pause_ < usual) {
        pause_ *= 2;
    }
    missing_ = std::move(missing);
    listed_ = listed;
    if (missing_.empty() || pause_ >= usual) return std::nullopt;
    return pause_;
}

}  // namespace millrace
