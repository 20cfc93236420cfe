#include "publish_book.hpp"

#include <algorithm>

namespace millrace::sim {

namespace {

// A DELETE that is due has taken effect within so long when nothing is in its way.
constexpr nanoseconds patience = 1s;

// So long after a table was restored, what was read of the old one may still go out.
constexpr nanoseconds restored_for = 2s;
constexpr nanoseconds held_up_for = 10s;

}  // namespace

void publish_book::handed(const std::string& who, epoch under, const std::vector<row_id>& rows) {
    auto& flying = in_flight_[{who, under}];
    flying += rows.size();
    const auto restored = restored_ && world_.now() < *restored_ + restored_for;
    if (!restored && flying > bounds.client_window_rows)
        verdicts_.broken("{} has {} rows in flight, {} are allowed", who, flying, bounds.client_window_rows);
    for (const auto id : rows) {
        auto& r = rows_[id];
        const auto why = r.handed > 0 ? judge(who, under, id, r) : cause::retry;
        r = {who, under, answer::none, world_.now(), world_.now(), r.handed + 1, false, why};
    }
}

// A relay that was held up may send even later what it has read of the old table.
bool publish_book::read_before_restoration(const row& before) const {
    if (!restored_) return false;
    return before.sent < *restored_ + restored_for ||
           (before.sent < *restored_ + held_up_for && health_.troubled(before.who, before.sent - restored_for)
           );
}

cause publish_book::judge(const std::string& who, epoch under, row_id id, const row& before) const {
    if (before.excused || read_before_restoration(before)) return cause::by_operator;
    if (before.last == answer::failed) return cause::retry;
    if (before.who == who && before.under == under) {
        verdicts_.broken("row {} is published again by {} although nothing went wrong", id.value(), who);
        return cause::retry;
    }
    const auto alive = health_.alive(before.who);
    const auto end = health_.last_moment(before.who);
    if (alive && !health_.troubled(before.who, before.at - bounds.lease - patience))
        verdicts_.broken(
            "row {} is published again by {} although {} lives and had no trouble",
            id.value(),
            who,
            before.who
        );
    const auto overdue = before.last == answer::taken && before.at + bounds.delete_delay + patience < end;
    // An answer that comes after the lease was lost is nobody's; heartbeats that failed before may still cost
    // it.
    if (overdue && !health_.troubled(before.who, alive ? before.sent - bounds.lease : before.at))
        verdicts_.broken(
            "row {} is published again: {} had its acknowledgement for {} ms and did not delete it",
            id.value(),
            before.who,
            (end - before.at) / 1ms
        );
    return alive ? cause::loss : cause::crash;
}

void publish_book::answered(
    const std::string& who,
    epoch under,
    const std::vector<row_id>& rows,
    const result<publish_outcome>& outcome
) {
    in_flight_[{who, under}] -= rows.size();
    for (const auto id : rows) {
        auto& r = rows_[id];
        if (r.who != who || r.under != under) continue;  // somebody else has it now
        if (over_.contains({who, under})) continue;
        const auto refused =
            !outcome || std::any_of(outcome->failures.begin(), outcome->failures.end(), [id](const auto& f) {
                return f.id == id;
            });
        r.last = refused ? answer::failed : answer::taken;
        r.at = world_.now();
    }
}

void publish_book::repeated(row_id id) {
    counted_.count(rows_[id].why);
}

}  // namespace millrace::sim
