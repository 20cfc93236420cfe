#include "group/restored_stream.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds tell_every = std::chrono::minutes{1};

}  // namespace

bool restored_stream::observe(const lineage& traced, mono_time listed) {
    listed_ = listed;
    std::map<shard_id, mono_time> seen;
    for (const auto& standing : traced.shards) {
        if (!standing.open_again) continue;
        const auto before = open_again_.find(standing.shard);
        seen.emplace(standing.shard, before == open_again_.end() ? listed : before->second);
    }
    open_again_ = std::move(seen);
    return std::any_of(open_again_.begin(), open_again_.end(), [&](const auto& one) {
        return one.second == listed;
    });
}

std::optional<error> restored_stream::found() const {
    for (const auto& [shard, since] : open_again_) {
        if (since != listed_)
            return error{errc::conflict, retry_advice::never, false, contradiction_of(shard)};
    }
    return std::nullopt;
}

std::optional<error> restored_stream::news() {
    auto what = found();
    if (!what) {
        told_.reset();
    } else if (told_ && listed_ - *told_ < tell_every) {
        return std::nullopt;
    } else {
        told_ = listed_;
    }
    return what;
}

}  // namespace millrace
