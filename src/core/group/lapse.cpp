#include "group/lapse.hpp"

#include <chrono>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds lease_max = std::chrono::hours{1};  // as `session_options` has it

}  // namespace

std::vector<worker_row> lapse_observer::observe(
    mono_time sent, mono_time replied, const std::vector<worker_row>& rows
) {
    std::map<incarnation, sighting> still;
    std::vector<worker_row> over;
    for (const auto& row : rows) {
        if (row.incarnation.value().empty()) continue;  // foreign: nobody's session
        const auto known = seen_.find(row.incarnation);
        const auto lease = lease_of(row, known == seen_.end() ? nullptr : &known->second);
        sighting now{row.counter, lease, replied, {row.worker, replied + lease}};
        if (known != seen_.end() && known->second.counter == row.counter) now = known->second;
        now.over = gone_here(row) || (sent > now.first_shown && sent - now.first_shown > now.lease);
        if (now.over) over.push_back(row);
        still.emplace(row.incarnation, now);
    }
    seen_ = std::move(still);
    return over;
}

nanoseconds lapse_observer::lease_of(const worker_row& row, const sighting* known) {
    if (row.unreadable.empty() || row.lease > nanoseconds{0}) return row.lease;
    return known != nullptr ? known->lease : lease_max;
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
    if (!row.unreadable.empty() || process.boot_id.empty() || process.pid_namespace.empty()) return false;
    if (process.boot_id != self_.boot_id || process.pid_namespace != self_.pid_namespace) return false;
    return process != self_ && gone_ && gone_(process);
}

}  // namespace millrace
