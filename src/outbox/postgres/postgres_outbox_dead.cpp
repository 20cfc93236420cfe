// The dead letters of an outbox: listed, put back and dropped.

#include "header_arrays.hpp"
#include "outbox_insert.hpp"
#include "postgres_outbox_admin.hpp"

#include <utility>

#include <fmt/format.h>

namespace millrace {

using postgres::bytes_view;
using postgres::effect;
using postgres::outbox_layout;
using postgres::rows;
using postgres::statement;

namespace {

using texts = std::vector<std::optional<std::string_view>>;

std::optional<std::string> copy(const std::optional<std::string_view>& bytes) {
    if (!bytes) return std::nullopt;
    return std::string(*bytes);
}

/// A selection as a condition on the dead letters `d`, with its parameters from $1 on.
///
/// An id comes again when the outbox was made anew: what settles dead letters by id takes the oldest of it.
struct chosen {
    explicit chosen(const dead_selection& which) : which_(which) {
        for (const auto id : which.ids)
            ids_.push_back(id.value());
    }
    static std::string oldest(std::string_view dead) {
        return fmt::format(
            "({} AND (cardinality($1::bigint[]) = 0 OR NOT EXISTS ({})))", condition, older_than(dead, "d")
        );
    }
    static std::string older_than(std::string_view dead, std::string_view than) {
        return fmt::format(
            "SELECT 1 FROM {0} e WHERE e.outbox = {1}.outbox AND e.id = {1}.id AND e.first_at < {1}.first_at",
            dead,
            than
        );
    }
    static constexpr const char* condition =
        "(cardinality($1::bigint[]) = 0 OR d.id = ANY ($1)) AND ($2::text IS NULL OR d.topic = $2) AND "
        "($3::bytea IS NULL OR d.key = $3)";
    void add_to(statement& to) const {
        to.add(std::span<const std::int64_t>(ids_));
        to.add(which_.topic);
        if (which_.key) {
            to.add(bytes_view{*which_.key});
        } else {
            to.add(std::nullopt);
        }
    }

private:
    const dead_selection& which_;
    std::vector<std::int64_t> ids_;
};

/// As PostgreSQL writes it, without its quotes; what cannot be read is shown as bytes.
std::string array_text(std::optional<std::string_view> bytes) {
    if (!bytes) return "NULL";
    auto entries = postgres::array_reader::open(*bytes);
    if (!entries) return std::string(*bytes);
    std::vector<std::string_view> shown;
    for (std::size_t left = entries->size(); left > 0; --left) {
        const auto one = entries->next();
        if (!one) return std::string(*bytes);
        shown.push_back(one->value.value_or("NULL"));
    }
    return fmt::format("{{{}}}", fmt::join(shown, ","));
}

dead_event dead_at(const rows& from, std::size_t row) {
    dead_event dead;
    dead.id = row_id{from.integer(row, 0).value_or(0)};
    dead.event.topic = from.text(row, 1);
    dead.event.key = copy(from.value(row, 2));
    dead.event.value = copy(from.value(row, 3));
    dead.broken_headers = postgres::each_header(
        from.value(row, 4),
        from.value(row, 5),
        [&](std::string_view name, std::optional<std::string_view> value) {
            dead.event.headers.push_back({std::string(name), copy(value)});
        }
    );
    if (!dead.broken_headers.empty()) {
        dead.event.headers.clear();
        dead.stored_headers = fmt::format(
            "names {}, values {}", array_text(from.value(row, 4)), array_text(from.value(row, 5))
        );
    }
    if (const auto partition = from.integer(row, 6))
        dead.event.partition = static_cast<std::int32_t>(*partition);
    dead.created_at = from.time(row, 7).value_or(wall_time{});
    dead.reason = from.text(row, 8);
    dead.error = from.text(row, 9);
    dead.attempts = static_cast<std::uint32_t>(from.integer(row, 10).value_or(0));
    dead.first_at = from.time(row, 11).value_or(wall_time{});
    dead.last_at = from.time(row, 12).value_or(wall_time{});
    return dead;
}

/// The lanes of a reply's first column, as an array to bind.
texts lanes_of(const rows& from) {
    texts lanes;
    for (std::size_t i = 0; i < from.size(); ++i)
        lanes.push_back(from.value(i, 0));
    return lanes;
}

/// The statements of one round of putting dead letters back, each on what the one before has locked.
struct putting_back_sql {
    putting_back_sql(
        const outbox_layout& layout, const postgres::relay_tables& tables, const std::string& name
    ) {
        const auto oldest = chosen::oldest(tables.dead);
        // The id is in the outbox again, or names an older dead letter.
        const auto taken = [&](std::string_view dead) {
            return fmt::format(
                "(EXISTS (SELECT 1 FROM {} o WHERE o.id = {}.id) OR EXISTS ({}))",
                layout.table.quoted(),
                dead,
                chosen::older_than(tables.dead, dead)
            );
        };
        const std::string parked_lane = fmt::format(
            "EXISTS (SELECT 1 FROM {} p WHERE p.outbox = d.outbox AND p.lane = d.lane)", tables.parked
        );
        // A relay that moves a row of such a lane holds its lock: the next statement sees that row.
        unpark = fmt::format(
            "DELETE FROM {0} p WHERE p.outbox = {2} AND p.lane IN (SELECT d.lane FROM {1} d WHERE d.outbox = "
            "{2} AND {3}) AND NOT EXISTS (SELECT 1 FROM {1} d WHERE d.outbox = {2} AND d.lane = p.lane AND "
            "{4}) RETURNING p.lane",
            tables.parked,
            tables.dead,
            name,
            oldest,
            taken("d")
        );
        // With whether an id that is taken is why; else a relay parked the key since the statement before.
        stay = fmt::format(
            "SELECT d.id, {3} OR coalesce(d.lane IN (SELECT f.lane FROM {0} f WHERE f.outbox = {1} AND {4}), "
            "false) FROM {0} d WHERE d.outbox = {1} AND {2} AND (d.lane = ANY ($4::bytea[])) IS NOT TRUE AND "
            "({3} OR {5}) ORDER BY d.id",
            tables.dead,
            name,
            oldest,
            taken("d"),
            taken("f"),
            parked_lane
        );
        // What was parked meanwhile stays: a part of a lane would be sent out of order.
        move = fmt::format(
            "WITH moved AS (DELETE FROM {0} d WHERE d.outbox = {1} AND (d.lane = ANY ($4::bytea[]) OR ({2} "
            "AND NOT {3} AND NOT {4})) RETURNING d.*) {5}",
            tables.dead,
            name,
            oldest,
            taken("d"),
            parked_lane,
            postgres::restore_sql(layout, "moved")
        );
    }
    std::string unpark, stay, move;
};

}  // namespace

result<std::vector<dead_event>> postgres_outbox_admin::list_dead(
    const dead_selection& which, std::size_t limit, dead_part part
) {
    const chosen selection(which);
    statement reading(
        fmt::format(
            "SELECT id, topic, key, {}, partition, created_at, reason, error, attempts, first_at, last_at "
            "FROM {} d WHERE outbox = {} AND {} ORDER BY id, first_at LIMIT $4",
            part == dead_part::whole ? "value, header_names, header_values"
                                     : "NULL::bytea, NULL::text[], NULL::bytea[]",
            tables_.dead,
            name_,
            chosen::condition
        ),
        effect::reads,
        "read the dead letters in"
    );
    selection.add_to(reading);
    reading.add(limit);
    const auto found = db_.run(reading);
    if (!found) return tl::unexpected(found.error());
    std::vector<dead_event> dead;
    for (std::size_t i = 0; i < found->size(); ++i)
        dead.push_back(dead_at(*found, i));
    return dead;
}

result<std::uint64_t> postgres_outbox_admin::retry_dead(const dead_selection& which) {
    // A relay that goes on parking keys must not hold up the person who asked.
    constexpr int rounds_max = 10;
    std::uint64_t moved = 0;
    for (int round = 1;; ++round) {
        auto once = put_back(which);
        if (!once) return tl::unexpected(std::move(once.error()));
        moved += once->moved;
        if (once->staying.empty()) return moved;
        if (!once->parked_meanwhile || round == rounds_max)
            return tl::unexpected(dead_that_stay(moved, once->staying));
    }
}

result<postgres_outbox_admin::putting_back> postgres_outbox_admin::put_back(const dead_selection& which) {
    const chosen selection(which);
    const putting_back_sql sql(layout_, tables_, name_);
    auto moving = db_.begin();
    statement unpark(sql.unpark, effect::writes, "un-park keys of the outbox in");
    selection.add_to(unpark);
    const auto unparked = db_.run(unpark);
    if (!unparked) return tl::unexpected(unparked.error());
    const auto lanes = lanes_of(*unparked);
    statement stay(sql.stay, effect::reads, "look for dead letters that do not fit in");
    selection.add_to(stay);
    stay.add(postgres::bytes_array{lanes});
    const auto staying = db_.run(stay);
    if (!staying) return tl::unexpected(staying.error());
    statement move(sql.move, effect::writes, "put dead letters back into the outbox in");
    selection.add_to(move);
    move.add(postgres::bytes_array{lanes});
    const auto moved = db_.run(move);
    if (!moved) return tl::unexpected(moved.error());
    const auto note = note_change();
    const bool changed = moved->affected() > 0 || !lanes.empty();
    const auto done = changed ? moving.commit_with({&note, 1}) : moving.commit_with({});
    if (!done) return tl::unexpected(done.error());
    putting_back outcome{.moved = moved->affected(), .staying = {}, .parked_meanwhile = false};
    for (std::size_t i = 0; i < staying->size(); ++i) {
        outcome.staying.emplace_back(staying->integer(i, 0).value_or(0));
        if (!staying->boolean(i, 1).value_or(true)) outcome.parked_meanwhile = true;
    }
    return outcome;
}

result<std::uint64_t> postgres_outbox_admin::drop_dead(const dead_selection& which) {
    const chosen selection(which);
    auto dropping = db_.begin();
    statement lock(
        fmt::format(
            "SELECT p.lane FROM {0} p WHERE p.outbox = {2} AND p.lane IN (SELECT d.lane FROM {1} d WHERE "
            "d.outbox = {2} AND {3}) FOR UPDATE",
            tables_.parked,
            tables_.dead,
            name_,
            chosen::oldest(tables_.dead)
        ),
        effect::reads,
        "lock parked keys of the outbox in"
    );
    selection.add_to(lock);
    const auto locked = db_.run(lock);
    if (!locked) return tl::unexpected(locked.error());
    const auto lanes = lanes_of(*locked);
    std::vector<statement> batch;
    selection.add_to(batch.emplace_back(
        fmt::format(
            "DELETE FROM {} d WHERE d.outbox = {} AND {}", tables_.dead, name_, chosen::oldest(tables_.dead)
        ),
        effect::writes,
        "drop dead letters of the outbox in"
    ));
    batch
        .emplace_back(
            fmt::format(
                "DELETE FROM {0} p WHERE p.outbox = {2} AND p.lane = ANY ($1::bytea[]) AND NOT EXISTS "
                "(SELECT 1 FROM {1} d WHERE d.outbox = p.outbox AND d.lane = p.lane)",
                tables_.parked,
                tables_.dead,
                name_
            ),
            effect::writes,
            "un-park keys of the outbox in"
        )
        .add(postgres::bytes_array{lanes});
    const auto dropped = db_.run_together(batch);
    if (!dropped) return tl::unexpected(dropped.error());
    const auto note = note_change();
    const auto done =
        dropped->back().affected() > 0 ? dropping.commit_with({&note, 1}) : dropping.commit_with({});
    if (!done) return tl::unexpected(done.error());
    return dropped->front().affected();
}

}  // namespace millrace
