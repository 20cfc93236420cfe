#include "outbox_tables.hpp"

#include "outbox_headers.hpp"
#include "outbox_pauses.hpp"
#include "outbox_schema.hpp"
#include "sqlite_outbox.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace {

using sqlite::blob_view;
using sqlite::database;
using sqlite::statement;
using sqlite::transaction_kind;
using sqlite::value_type;

result<void> outbox_view::look(database& db) {
    auto state = db.prepare(
        "SELECT identity, replay_generation, (SELECT seq FROM sqlite_sequence WHERE name = 'outbox') "
        "FROM outbox_meta"
    );
    if (!state) return tl::unexpected(std::move(state.error()));
    const auto row = state->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) {
        return fail(
            errc::not_found,
            fmt::format("{} has no outbox any more; create it with `millrace outbox init`", db.name())
        );
    }
    if (stored_ != state->bytes(0)) stored_ = state->bytes(0);
    replay_generation_ = static_cast<std::uint64_t>(state->integer(1));
    // Ids only grow, unless the table was made anew or an older state of the file came back.
    const auto last_id = state->integer(2);
    if (last_id < last_id_) ++lives_;
    last_id_ = last_id;
    return {};
}

std::string outbox_view::identity() const {
    return fmt::format("{}#{}", stored_, lives_);
}

namespace outbox_tables {

namespace {

#define MILLRACE_SQL_ROWS "SELECT id, topic, key, value, headers, partition, created_at FROM outbox WHERE "
#define MILLRACE_SQL_NOT_PAUSED "topic NOT IN (SELECT topic FROM outbox_paused) AND "

constexpr std::string_view read_above = MILLRACE_SQL_ROWS "id > ? ORDER BY id LIMIT ?";
constexpr std::string_view read_between = MILLRACE_SQL_ROWS "id BETWEEN ? AND ? ORDER BY id";

// Only where topics are paused: the condition costs a third of the speed.
constexpr std::string_view read_above_unpaused =
    MILLRACE_SQL_ROWS MILLRACE_SQL_NOT_PAUSED "id > ? AND id <= ? ORDER BY id LIMIT ?";
constexpr std::string_view read_between_unpaused =
    MILLRACE_SQL_ROWS MILLRACE_SQL_NOT_PAUSED "id BETWEEN ? AND ? ORDER BY id";

// Beside a pause one look walks over so many rows at most: some 10 ms.
constexpr std::int64_t walk_max = 10'000;

/// Copies rows into a batch until a limit is met; the first row is taken whatever its size.
class batch_filler {
public:
    explicit batch_filler(std::size_t bytes_max) : bytes_max_(bytes_max) {}

    void reserve(std::size_t rows) { batch_->reserve(rows); }

    /// False when the row does not fit; it is then left out.
    bool take(const statement& row) {
        const auto topic = row.bytes(1);
        const auto key = row.maybe_bytes(2);
        const auto value = row.maybe_bytes(3);
        const auto headers = row.bytes(4);
        const auto size = sizeof(outbox_row) + topic.size() + key.value_or("").size() +
                          value.value_or("").size() + headers.size();
        if (!batch_->rows().empty() && batch_->bytes() + size > bytes_max_) return false;

        outbox_row taken;
        taken.id = row_id{row.integer(0)};
        taken.topic = batch_->store(topic);
        if (key) taken.key = batch_->store(*key);
        if (value) taken.value = batch_->store(*value);
        taken.created_at = wall_time{milliseconds{row.integer(6)}};
        if (topic.empty()) taken.malformed = "the topic is empty";
        read_partition(row, taken);
        if (!headers.empty()) read_headers(headers, taken);
        batch_->add(taken);
        return true;
    }

    [[nodiscard]] std::shared_ptr<const row_batch> finish() { return std::move(batch_); }

private:
    static void read_partition(const statement& row, outbox_row& taken) {
        const auto type = row.type(5);
        if (type == value_type::null) return;
        const auto partition = row.integer(5);
        if (type == value_type::integer && partition >= 0 &&
            partition <= std::numeric_limits<std::int32_t>::max()) {
            taken.partition = static_cast<std::int32_t>(partition);
        } else {
            taken.malformed = "the partition is no number from 0 to 2147483647";
        }
    }

    void read_headers(std::string_view json, outbox_row& taken) {
        const auto parsed = headers_from_json(json);
        if (!parsed) {
            taken.malformed = batch_->store(parsed.error().detail);
            return;
        }
        std::vector<record_header> views;
        views.reserve(parsed->size());
        for (const auto& [name, value] : *parsed) {
            views.push_back({batch_->store(name), std::nullopt});
            if (value) views.back().value = batch_->store(*value);
        }
        taken.headers = batch_->store(std::move(views));
    }

    std::size_t bytes_max_;
    std::shared_ptr<row_batch> batch_ = std::make_shared<row_batch>();
};

/// Takes what the statement gives; true when a row did not fit.
result<bool> fill(statement& rows, batch_filler& into, std::size_t rows_max) {
    for (std::size_t taken = 0;; ++taken) {
        const auto more = rows.step();
        if (!more) return tl::unexpected(more.error());
        if (!*more) return false;
        if (taken == rows_max || !into.take(rows)) return true;
    }
}

result<void> read_gaps(database& db, const fetch_request& request, bool paused, fetch_reply& reply) {
    batch_filler into(request.gap_bytes_max);
    if (!request.gaps.empty()) {
        auto rows = db.prepare(paused ? read_between_unpaused : read_between);
        if (!rows) return tl::unexpected(std::move(rows.error()));
        for (const auto& gap : request.gaps) {
            rows->reset();
            rows->with(gap.first.value(), gap.last.value());
            const auto cut = fill(*rows, into, std::numeric_limits<std::size_t>::max());
            if (!cut) return tl::unexpected(cut.error());
            reply.gaps_more = *cut;
            if (*cut) break;
        }
    }
    reply.filled = into.finish();
    return {};
}

result<void> read_ahead(database& db, const fetch_request& request, fetch_reply& reply) {
    batch_filler into(request.bytes_max);
    if (request.rows_max > 0) {
        into.reserve(std::min<std::size_t>(request.rows_max, 4'096));
        auto rows = db.prepare(read_above);
        if (!rows) return tl::unexpected(std::move(rows.error()));
        // One more than wanted tells whether there is more.
        rows->with(request.after.value(), request.rows_max + 1);
        const auto cut = fill(*rows, into, request.rows_max);
        if (!cut) return tl::unexpected(cut.error());
        reply.more = *cut;
    }
    reply.ahead = into.finish();
    return {};
}

/// As `read_ahead`, of the topics that are not paused. What is passed over on the way is not walked again by
/// the next look: a pause that ends changes the generation.
result<void> read_ahead_of_paused(database& db, const fetch_request& request, fetch_reply& reply) {
    if (request.rows_max == 0) return {};
    auto bound = db.prepare(
        "SELECT (SELECT id FROM outbox WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2), "
        "(SELECT max(id) FROM outbox)"
    );
    if (!bound) return tl::unexpected(std::move(bound.error()));
    if (auto row = bound->with(request.after.value(), walk_max - 1).step(); !row)
        return tl::unexpected(std::move(row.error()));
    const auto stop = bound->maybe_integer(0);
    const auto last = bound->maybe_integer(1);
    if (!last || *last <= request.after.value()) return {};
    const auto to = stop.value_or(*last);

    batch_filler into(request.bytes_max);
    auto rows = db.prepare(read_above_unpaused);
    if (!rows) return tl::unexpected(std::move(rows.error()));
    rows->with(request.after.value(), to, request.rows_max + 1);
    const auto cut = fill(*rows, into, request.rows_max);
    if (!cut) return tl::unexpected(cut.error());
    reply.more = *cut || to < *last;
    if (!*cut) reply.looked_to = row_id{to};
    reply.ahead = into.finish();
    return {};
}

result<void> read_rows(database& db, const fetch_request& request, fetch_reply& reply) {
    reply.ahead = reply.filled = std::make_shared<row_batch>();
    auto pauses = outbox_pauses::read(db);
    if (!pauses) return tl::unexpected(std::move(pauses.error()));
    const bool paused = !pauses->topics.empty();
    reply.paused = std::move(pauses->topics);
    if (pauses->everything) {
        reply.paused.emplace_back();
        return {};
    }
    // In one snapshot the order of the two does not matter, and gaps that were cut make reading ahead
    // useless.
    auto done = read_gaps(db, request, paused, reply);
    if (!done || reply.gaps_more) return done;
    return paused ? read_ahead_of_paused(db, request, reply) : read_ahead(db, request, reply);
}

/// Whether the lease row of this outbox bears this epoch, within the transaction of `db`.
result<bool> owned_under(database& db, epoch mine) {
    auto lease =
        db.prepare("SELECT epoch FROM millrace_shard WHERE stream = '' AND group_name = ? AND shard = ?");
    if (!lease && lease.error().code == errc::not_found) return false;  // nobody has ever held it
    if (!lease) return tl::unexpected(std::move(lease.error()));
    const auto row = lease->with(sqlite_outbox::lease_group, sqlite_outbox::lease_shard).step();
    if (!row) return tl::unexpected(row.error());
    return *row && static_cast<std::uint64_t>(lease->integer(0)) == mine.value();
}

/// Nothing that a stale owner, or the owner of a former table, decides may be carried out.
result<bool> may_write(database& db, outbox_view& view, epoch mine) {
    auto owned = owned_under(db, mine);
    if (!owned || !*owned) return owned;
    if (auto seen = view.look(db); !seen) return tl::unexpected(std::move(seen.error()));
    return view.is_as_reported();
}

blob_view key_of(const lane_key& lane) {
    return {*lane.key};
}

result<void> park(database& db, const lane_key& lane) {
    if (!lane.key) return fail(errc::invalid_argument, "a row without a key has no lane to be parked");
    return db.run(
        "INSERT OR IGNORE INTO outbox_parked (topic, key, partition, parked_at) VALUES (?, ?, "
        "?, " MILLRACE_SQL_NOW ")",
        lane.topic,
        key_of(lane),
        lane.partition
    );
}

result<bool> is_parked(database& db, const lane_key& lane) {
    if (!lane.key) return false;
    auto found =
        db.prepare("SELECT 1 FROM outbox_parked WHERE topic = ? AND key = ? AND IFNULL(partition, -1) = ?");
    if (!found) return tl::unexpected(std::move(found.error()));
    return found->with(lane.topic, key_of(lane), lane.partition.value_or(-1)).step();
}

result<void> move_to_dead(database& db, row_id id, const bury_request& request) {
    auto moved = db.run(
        "INSERT INTO outbox_dead (id, topic, key, value, headers, partition, created_at, reason, error, "
        "attempts, first_at, last_at) SELECT id, topic, key, value, headers, CASE WHEN typeof(partition) = "
        "'integer' AND partition BETWEEN 0 AND 2147483647 THEN partition END, created_at, ?1, ?2, "
        "?3, " MILLRACE_SQL_NOW " - ?5, " MILLRACE_SQL_NOW " FROM outbox WHERE id = ?4",
        request.reason,
        request.detail,
        request.attempts,
        id.value(),
        std::chrono::duration_cast<milliseconds>(request.tried_for).count()
    );
    if (!moved) return moved;
    return db.run("DELETE FROM outbox WHERE id = ?", id.value());
}

result<void> bury_within(database& db, outbox_view& view, const bury_request& request, epoch mine) {
    const auto may = may_write(db, view, mine);
    if (!may) return tl::unexpected(may.error());
    if (!*may) {
        return fail(
            errc::not_owner,
            "the outbox's lease is held under another epoch, or its table was made anew; nothing was moved"
        );
    }
    if (request.when == bury_request::condition::park_lane) {
        if (auto done = park(db, request.lane); !done) return done;
    }
    if (request.when == bury_request::condition::lane_is_parked) {
        const auto parked = is_parked(db, request.lane);
        if (!parked) return tl::unexpected(parked.error());
        if (!*parked) return fail(errc::conflict, "the lane is no longer parked; nothing was moved");
    }
    for (const auto id : request.rows) {
        if (auto done = move_to_dead(db, id, request); !done) return done;
    }
    return {};
}

/// A lost DELETE is a duplicate, but a lost verdict could let a later row of the lane pass.
class durable_while {
public:
    explicit durable_while(database& db) : db_(db), begun_(db.set_durability(sqlite::durability::full)) {}
    durable_while(const durable_while&) = delete;
    durable_while& operator=(const durable_while&) = delete;
    ~durable_while() {
        (void)db_.set_durability(sqlite::durability::normal);  // staying durable would only cost time
    }
    [[nodiscard]] const result<void>& begun() const noexcept { return begun_; }

private:
    database& db_;
    result<void> begun_;
};

}  // namespace

result<fetch_reply> fetch(database& db, outbox_view& view, const fetch_request& request) {
    auto snapshot = db.begin(transaction_kind::deferred);
    if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
    fetch_reply reply;
    auto done = view.look(db);
    if (done) done = read_rows(db, request, reply);
    if (done) done = snapshot->commit();
    if (!done) return tl::unexpected(std::move(done.error()));
    reply.table_identity = view.identity();
    reply.replay_generation = view.replay_generation();
    return reply;
}

result<std::uint64_t> remove(
    database& db, outbox_view& view, const std::vector<id_range>& delivered, epoch mine
) {
    if (delivered.empty()) return 0;
    auto writing = db.begin(transaction_kind::immediate);
    if (!writing) return tl::unexpected(std::move(writing.error()));
    const auto owned = owned_under(db, mine);
    if (!owned) return tl::unexpected(owned.error());
    if (!*owned) {
        return fail(errc::not_owner, "the outbox's lease is held under another epoch; nothing was deleted");
    }
    if (auto seen = view.look(db); !seen) return tl::unexpected(std::move(seen.error()));
    if (!view.is_as_reported()) return 0;
    auto deletion = db.prepare("DELETE FROM outbox WHERE id BETWEEN ? AND ?");
    if (!deletion) return tl::unexpected(std::move(deletion.error()));
    std::uint64_t deleted = 0;
    for (const auto& range : delivered) {
        deletion->reset();
        if (auto done = deletion->with(range.first.value(), range.last.value()).run(); !done) {
            return tl::unexpected(std::move(done.error()));
        }
        deleted += db.changes();
    }
    return writing->commit().map([&] { return deleted; });
}

result<void> bury(database& db, outbox_view& view, const bury_request& request, epoch mine) {
    const durable_while durable(db);
    if (!durable.begun()) return durable.begun();
    auto writing = db.begin(transaction_kind::immediate);
    if (!writing) return tl::unexpected(std::move(writing.error()));
    if (auto done = bury_within(db, view, request, mine); !done) return done;
    return writing->commit();
}

result<std::vector<lane_key>> parked_lanes(database& db) {
    auto found = db.prepare("SELECT topic, key, partition FROM outbox_parked ORDER BY topic, key, partition");
    if (!found) return tl::unexpected(std::move(found.error()));
    std::vector<lane_key> lanes;
    for (;;) {
        const auto row = found->step();
        if (!row) return tl::unexpected(row.error());
        if (!*row) return lanes;
        lane_key lane{found->text(0), found->text(1), std::nullopt};
        if (!found->is_null(2)) lane.partition = static_cast<std::int32_t>(found->integer(2));
        lanes.push_back(std::move(lane));
    }
}

result<void> check(database& db) {
    auto any = db.prepare(
        "SELECT (SELECT 1 FROM outbox LIMIT 1), (SELECT 1 FROM outbox_parked LIMIT 1), (SELECT 1 FROM "
        "outbox_meta)"
    );
    if (!any) return tl::unexpected(std::move(any.error()));
    const auto row = any->step();
    if (!row) return tl::unexpected(row.error());
    return {};
}

result<outbox_look> look(database& db) {
    // Each half alone is a step in the index; min and max together would read the whole table.
    auto found = db.prepare(
        "SELECT IFNULL((SELECT max(id) FROM outbox) - (SELECT min(id) FROM outbox) + 1, 0), "
        "(SELECT " MILLRACE_SQL_NOW " - created_at FROM outbox ORDER BY id LIMIT 1)"
    );
    if (!found) return tl::unexpected(std::move(found.error()));
    const auto row = found->step();
    if (!row) return tl::unexpected(row.error());
    outbox_look seen;
    seen.backlog = static_cast<std::uint64_t>(found->integer(0));
    if (!found->is_null(1)) seen.oldest_age = milliseconds{std::max<std::int64_t>(0, found->integer(1))};
    return seen;
}

}  // namespace outbox_tables

}  // namespace millrace
