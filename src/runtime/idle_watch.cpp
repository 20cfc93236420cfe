#include "idle_watch.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

bool work_is_open(const std::vector<shard_view>& shards, bool damaged) {
    if (shards.empty()) return true;  // not looked yet, or nothing is known
    return std::any_of(shards.begin(), shards.end(), [damaged](const shard_view& view) {
        if (view.open_again) return !damaged;  // unless it is known for certain, the next listing tells
        if (view.row.finished_at || view.mine || !view.listed) return false;
        if (!view.ready || !view.row.unreadable.empty()) return !damaged;
        return view.row.owner.value().empty() || view.owner_lapsed;
    });
}

bool idle_watch::over(mono_time now, bool quiet, std::uint64_t progress) {
    const bool moved = std::exchange(progress_, progress) != progress;
    if (!quiet || moved) {
        since_.reset();
        if (!quiet) return false;
    }
    if (!since_) since_ = now;
    return now - *since_ >= limit_;
}

}  // namespace millrace
