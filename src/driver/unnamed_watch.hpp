/// Notices a shard of a group that this worker was not told of and that nobody holds: where what is shared is
/// named in each worker's settings, the workers were told different names.
///
/// Shards are only dealt out among those who name them, and each worker counts all workers; so a name that
/// some lack may be left to one that cannot take it. Thread contract: none; one owner.
#pragma once

#include "group_driver.hpp"

#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <map>
#include <vector>

namespace millrace {

class unnamed_watch {
public:
    /// What changes hands is free for a moment.
    explicit unnamed_watch(nanoseconds patience) : patience_(patience) {}

    /// Those that have been seen free for so long, each once while it lasts.
    [[nodiscard]] std::vector<shard_id> look(mono_time now, const std::vector<shard_view>& shards) {
        std::vector<shard_id> found;
        std::map<shard_id, seen> free;
        for (const auto& view : shards) {
            const bool held = !view.row.owner.value().empty() && !view.owner_lapsed;
            if (view.listed || view.row.finished_at || held) continue;
            const auto before = free_.find(view.row.shard);
            auto one = before == free_.end() ? seen{now, false} : before->second;
            if (!one.told && now - one.since >= patience_) {
                one.told = true;
                found.push_back(view.row.shard);
            }
            free.emplace(view.row.shard, one);
        }
        free_ = std::move(free);
        return found;
    }

private:
    struct seen {
        mono_time since;
        bool told;
    };

    nanoseconds patience_;
    std::map<shard_id, seen> free_;
};

}  // namespace millrace
