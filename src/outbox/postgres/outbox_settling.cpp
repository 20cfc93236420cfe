#include "outbox_settling.hpp"

#include "catalog.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

constexpr std::chrono::seconds remember_every{1};

limits with(limits base, durability commit) {
    base.commit = commit;
    return base;
}

void add(statement& to, const read_from& from) {
    to.add(from.table.file);
    to.add(from.table.sequence_file);
}

void add(statement& to, const lane_key& lane) {
    to.add(lane.topic);
    to.add(bytes_view{*lane.key});
    to.add(lane.partition);
}

/// The ids of a deletion, which must outlive its statement: one by one when they are few, as in steady work.
struct removal {
    explicit removal(const std::vector<id_range>& delivered) {
        constexpr std::int64_t few = 256;
        std::int64_t count = 0;
        for (const auto& range : delivered)
            count += range.last.value() - range.first.value() + 1;
        one_by_one = count <= few;
        for (const auto& range : delivered) {
            if (one_by_one) {
                // There may be no id behind the last.
                for (auto id = range.first.value(); id < range.last.value(); ++id)
                    first.push_back(id);
                first.push_back(range.last.value());
            } else {
                first.push_back(range.first.value());
                last.push_back(range.last.value());
            }
        }
    }

    [[nodiscard]] statement make(const outbox_sql& sql) const {
        constexpr const char* doing = "delete delivered rows of the outbox in";
        if (one_by_one) {
            return statement(sql.remove_ids, effect::writes, doing, planning::once)
                .with(std::span<const std::int64_t>(first));
        }
        return statement(sql.remove_ranges, effect::writes, doing)
            .with(std::span<const std::int64_t>(first), std::span<const std::int64_t>(last));
    }

    bool one_by_one{false};
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> last;
};

bool is_of(const rows& lease, epoch mine) {
    return !lease.empty() && lease.integer(0, 0) == static_cast<std::int64_t>(mine.value());
}

std::string storable(std::string text) {
    std::replace(text.begin(), text.end(), '\0', ' ');  // which no text of PostgreSQL holds
    return text;
}

}  // namespace

template <class T, class F>
result<T> outbox_settling::on_table(connection& db, const read_from& from, F work) {
    auto table = session_.use(db);
    if (table && (*table)->layout.oid != from.table.oid) {
        // What this connection knows may be older than what was read on the other.
        session_.forget();
        table = session_.use(db);
    }
    if (!table) return tl::unexpected(table.error());
    result<T> outcome = work(**table);
    if (outcome || outcome.error().code == errc::not_owner || outcome.error().code == errc::conflict)
        return outcome;
    session_.forget();
    return tl::unexpected(name_blocker(db, std::move(outcome.error()), (*table)->layout.table));
}

result<std::uint64_t> outbox_settling::remove(
    connection& db,
    const read_from& from,
    const std::vector<id_range>& delivered,
    row_id low_water,
    epoch mine
) {
    return on_table<std::uint64_t>(db, from, [&](const outbox_session::known& table) {
        return remove_from(db, table, from, delivered, low_water, mine);
    });
}

bool outbox_settling::is_time_to_remember(row_id low_water, const read_from& from) const {
    if (!remembered_ || remembered_->generation != from.generation ||
        remembered_->lasting != from.table.lasting) {
        return true;
    }
    // A mark that falls is wrong at once; one that rises only saves work.
    if (low_water < remembered_->low_water) return true;
    return low_water > remembered_->low_water &&
           std::chrono::steady_clock::now() - remembered_->at >= remember_every;
}

result<std::uint64_t> outbox_settling::remove_from(
    connection& db,
    const outbox_session::known& table,
    const read_from& from,
    const std::vector<id_range>& delivered,
    row_id low_water,
    epoch mine
) {
    if (table.layout.oid != from.table.oid) {
        session_.forget();
        return 0;
    }
    const bool remember = is_time_to_remember(low_water, from);
    const removal which(delivered);
    std::vector<statement> batch;
    if (!delivered.empty()) {
        batch.emplace_back(table.sql.mark_own, effect::reads, "mark a deletion in", planning::once);
        auto& deletion = batch.emplace_back(which.make(table.sql));
        deletion.add(mine.value());
        add(deletion, from);
    }
    if (remember) {
        auto& hint = batch.emplace_back(
            table.sql.remember, effect::writes, "remember where the outbox begins in", planning::once
        );
        hint.add(low_water.value());
        hint.add(mine.value());
        hint.add(from.generation);
        hint.add(from.table.lasting);
    }
    if (batch.empty()) return 0;
    // A crash of the server may bring rows back, which are sent again: no commit of a writer waits for these.
    db.set_limits(with(db.present_limits(), durability::relaxed));
    auto deleting = db.begin();
    const auto got = deleting.commit_with(batch);
    if (!got) return tl::unexpected(got.error());
    if (remember)
        remembered_ = {low_water, from.generation, from.table.lasting, std::chrono::steady_clock::now()};
    if (delivered.empty()) return 0;
    const auto deleted = (*got)[1].affected();
    if (deleted > 0) return deleted;
    const auto lease =
        db.run(statement(table.sql.lock_lease, effect::reads, "look at the lease of the outbox in"));
    if (!lease) return tl::unexpected(lease.error());
    if (!is_of(*lease, mine)) {
        return fail(errc::not_owner, "the outbox's lease is held under another epoch; nothing was deleted");
    }
    return 0;
}

result<void> outbox_settling::bury(
    connection& db, const read_from& from, const bury_request& request, epoch mine
) {
    if (request.when != bury_request::condition::none && !request.lane.key) {
        return fail(errc::invalid_argument, "a row without a key has no lane to be parked");
    }
    return on_table<void>(db, from, [&](const outbox_session::known& table) {
        return bury_from(db, table, from, request, mine);
    });
}

result<void> outbox_settling::bury_from(
    connection& db,
    const outbox_session::known& table,
    const read_from& from,
    const bury_request& request,
    epoch mine
) {
    using condition = bury_request::condition;
    const auto refuse = [] {
        return fail(
            errc::not_owner,
            "the outbox's lease is held under another epoch, or its table was made anew; nothing was moved"
        );
    };
    if (table.layout.oid != from.table.oid) {
        session_.forget();
        return refuse();
    }
    const bool only_parked = request.when == condition::lane_is_parked;
    const auto reason = storable(request.reason);
    const auto detail = storable(request.detail);
    std::vector<std::int64_t> ids;
    for (const auto id : request.rows)
        ids.push_back(id.value());
    std::vector<statement> batch;
    // The locks come first, each in a statement before those that rely on it.
    batch.emplace_back(table.sql.mark_own, effect::reads, "mark a burial in");
    batch.emplace_back(table.sql.lock_lease, effect::reads, "lock the lease of the outbox in");
    add(batch.emplace_back(table.sql.same_table, effect::reads, "look at the outbox in"), from);
    if (request.when == condition::park_lane) {
        auto& park = batch.emplace_back(table.sql.park, effect::writes, "park a key of the outbox in");
        add(park, request.lane);
        park.add(mine.value());
    }
    if (only_parked) {
        add(batch.emplace_back(table.sql.lock_parked, effect::reads, "look for a parked key in"),
            request.lane);
    }
    auto& move = batch.emplace_back(
        only_parked ? table.sql.bury_parked : table.sql.bury,
        effect::writes,
        "move rows to the dead letters in"
    );
    move.add(std::span<const std::int64_t>(ids));
    move.add(mine.value());
    add(move, from);
    move.add(reason);
    move.add(detail);
    move.add(request.attempts);
    if (only_parked) add(move, request.lane);
    move.add(std::chrono::duration_cast<std::chrono::microseconds>(request.tried_for).count());

    db.set_limits(with(db.present_limits(), durability::durable));
    auto burying = db.begin();
    const auto got = burying.commit_with(batch);
    if (!got) return tl::unexpected(got.error());
    if (!is_of((*got)[1], mine)) return refuse();
    if (!(*got)[2].boolean(0, 0).value_or(false)) return refuse();
    if (only_parked && (*got)[3].empty()) {
        return fail(errc::conflict, "the lane is no longer parked; nothing was moved");
    }
    return {};
}

}  // namespace millrace::postgres
