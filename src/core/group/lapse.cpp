#include "group/lapse.hpp"

#include <utility>

namespace millrace {

std::vector<worker_row> lapse_observer::observe(
    mono_time sent, mono_time replied, const std::vector<worker_row>& rows
) {
    std::map<incarnation, sighting> still;
    std::vector<worker_row> over;
    for (const auto& row : rows) {
        sighting now{row.counter, replied, {row.worker, replied + row.lease}};
        if (const auto known = seen_.find(row.incarnation); known != seen_.end()) {
            if (known->second.counter == row.counter) now = known->second;
        }
        now.over = gone_here(row) || (sent > now.first_shown && sent - now.first_shown > row.lease);
        if (now.over) over.push_back(row);
        still.emplace(row.incarnation, now);
    }
    seen_ = std::move(still);
    return over;
}

bool lapse_observer::lapsed(const incarnation& session) const {
    const auto known = seen_.find(session);
    return known != seen_.end() && known->second.over;
}

std::optional<lease_holder> lapse_observer::holder(const incarnation& session) const {
    const auto known = seen_.find(session);
    if (known == seen_.end() || known->second.over) return std::nullopt;
    return known->second.holder;
}

bool lapse_observer::gone_here(const worker_row& row) const {
    const auto& process = row.process;
    if (process.boot_id.empty() || process.pid_namespace.empty()) return false;
    if (process.boot_id != self_.boot_id || process.pid_namespace != self_.pid_namespace) return false;
    return process != self_ && gone_ && gone_(process);
}

}  // namespace millrace
