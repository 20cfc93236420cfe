#include "relay_oracle.hpp"

#include <algorithm>

namespace millrace::sim {

void relay_oracle::changed(outbox_table::change what, const stored_row& row) {
    auto& state = rows_[row.id];
    const auto id = row.id.value();
    switch (what) {
        case outbox_table::change::committed:
            trace_.say("outbox", "row {} committed, key {}", id, row.event.key.value_or("-"));
            state = {lane_of(row), ++commits_, world_.now(), 0, true};
            if (row.event.key) lanes_[state.lane].insert(row.id);
            break;
        case outbox_table::change::deleted:
            trace_.say("outbox", "row {} deleted", id);
            if (state.appended == 0) verdicts_.broken("row {} was deleted without having been delivered", id);
            state.in_table = false;
            break;
        case outbox_table::change::buried:
            trace_.say("outbox", "row {} buried", id);
            if (policy_ == poison_policy::stop)
                verdicts_.broken("row {} was buried under the policy `stop`", id);
            if (!culprits_.contains(row.id) &&
                (policy_ == poison_policy::park_row || !lane_has_culprit(state.lane))) {
                verdicts_.broken("the innocent row {} was buried", id);
            }
            if (!asked_to_bury_.contains({row.id, owner_epoch()}))
                verdicts_.broken("row {} was buried, but not by the owner of the outbox", id);
            state.in_table = false;
            state.dead = state.was_dead = true;
            break;
        case outbox_table::change::replayed:
            trace_.say("operator", "row {} put back", id);
            state.in_table = true;
            state.dead = false;
            book_.put_back(row.id);
            break;
        case outbox_table::change::dropped:
            state.dropped = true;
            break;
    }
}

bool relay_oracle::lane_has_culprit(const lane_key& lane) const {
    const auto found = lanes_.find(lane);
    return found != lanes_.end() && std::any_of(found->second.begin(), found->second.end(), [&](row_id id) {
               return culprits_.contains(id);
           });
}

void relay_oracle::appended(const outbox_row& row, epoch under) {
    trace_.say("sink", "row {} appended, epoch {}", row.id.value(), under.value());
    const auto found = rows_.find(row.id);
    if (found == rows_.end()) {
        verdicts_.broken("row {} was published although it was never committed", row.id.value());
        return;
    }
    if (!row.malformed.empty()) verdicts_.broken("the malformed row {} was published", row.id.value());
    auto& state = found->second;
    if (state.appended++ > 0) {
        ++repeated_;
        book_.repeated(row.id);
        return;
    }
    if (!row.key) return;
    for (const auto& other : lanes_[state.lane]) {
        if (other >= row.id) break;
        const auto& earlier = rows_.at(other);
        const auto late = sneaky_.contains(other) || (policy_ == poison_policy::park_row && earlier.was_dead);
        if (earlier.appended == 0 && earlier.in_table && !late && earlier.committed < state.committed)
            verdicts_.broken("row {} overtook row {} of its lane", row.id.value(), other.value());
    }
}

void relay_oracle::buries(const bury_request& request, epoch mine) {
    for (const auto& id : request.rows)
        asked_to_bury_.emplace(id, mine);
    if (request.reason.empty() || request.detail.empty())
        verdicts_.broken("a row is buried without a reason or a detail");
}

std::string relay_oracle::lagging(nanoseconds age) const {
    for (const auto& [id, state] : rows_) {
        const auto waits = state.in_table && state.appended == 0 && state.committed_at + age < world_.now();
        const auto excused = culprits_.contains(id) || sneaky_.contains(id) || lane_has_culprit(state.lane);
        if (waits && !excused) return fmt::format("row {} waits", id.value());
    }
    return {};
}

std::string relay_oracle::missing() const {
    for (const auto& [id, state] : rows_) {
        if (state.dropped || state.dead) continue;
        if (state.appended == 0) return fmt::format("row {} was not delivered", id.value());
        if (state.in_table) return fmt::format("row {} was delivered and not deleted", id.value());
    }
    return {};
}

}  // namespace millrace::sim
