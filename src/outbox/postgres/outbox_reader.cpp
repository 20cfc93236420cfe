#include "outbox_reader.hpp"

#include "binary.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

constexpr std::size_t large_row = outbox_sql::small_row / 2;

// A reply of the cheap statement is at most so many times what was asked for, when rows grow all at once.
constexpr std::size_t growth = 3;
constexpr std::size_t small_row_min = 1'024;

// A page of a sweep may meet nothing but entries of deleted rows, each of which costs time. So it spans as
// many ids as were looked through in a moment, and the span grows fast where there is nothing at all.
constexpr std::int64_t sweep_ids_min = 1 << 10;
constexpr std::int64_t sweep_ids_first = 1 << 16;
constexpr std::int64_t sweep_ids_max = std::int64_t{1} << 61;
constexpr milliseconds sweep_page_short{5};
constexpr milliseconds sweep_page_long{20};

constexpr int exact_rounds = 16;              // where one row is large, others are
constexpr std::int64_t gap_rows_max = 4'096;  ///< Of one round; the rest comes in the next.

/// A stable number for a virtual transaction such as "3/6907", which also a prepared one keeps.
std::uint64_t number_of(std::string_view transaction) {
    std::int64_t backend = 0;
    std::uint64_t local = 0;
    const auto slash = transaction.find('/');
    if (slash == std::string_view::npos) return 0;
    std::from_chars(transaction.data(), transaction.data() + slash, backend);
    std::from_chars(transaction.data() + slash + 1, transaction.data() + transaction.size(), local);
    return static_cast<std::uint64_t>(backend) << 32 ^ local;
}

std::vector<std::uint64_t> writers_of(const rows& from) {
    std::vector<std::uint64_t> found;
    std::vector<std::uint64_t> own;
    for (std::size_t i = 0; i < from.size(); ++i) {
        auto& list = from.boolean(i, 1).value_or(false) ? own : found;
        list.push_back(number_of(from.value(i, 0).value_or("")));
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase_if(found, [&](std::uint64_t writer) {
        return std::find(own.begin(), own.end(), writer) != own.end();
    });
    return found;
}

std::vector<std::string> texts_of(std::optional<std::string_view> array) {
    std::vector<std::string> texts;
    auto reader = array_reader::open(array.value_or(""));
    for (std::size_t i = 0; reader && i < reader->size(); ++i) {
        const auto item = reader->next();
        if (item && item->value) texts.emplace_back(*item->value);
    }
    return texts;
}

std::optional<nanoseconds> span_of(std::optional<std::int64_t> millis) {
    if (!millis) return std::nullopt;
    return milliseconds{std::max<std::int64_t>(0, *millis)};
}

struct topics_left_out {
    explicit topics_left_out(const std::vector<std::string>& topics) {
        views.reserve(topics.size());
        for (const auto& topic : topics)
            views.emplace_back(topic);
    }
    [[nodiscard]] text_array array() const { return {views}; }
    std::vector<std::optional<std::string_view>> views;
};

statement ask_writers(const outbox_sql& sql) {
    return {sql.writers, effect::reads, "look for writers of the outbox in", planning::once};
}

}  // namespace

outbox_reader::outbox_reader(table_name table)
    : session_(std::move(table), true), sweep_ids_(sweep_ids_first) {}

template <class T, class F>
result<T> outbox_reader::on_table(connection& db, F work) {
    if (connection_ != db.number()) {
        connection_ = db.number();
        looked_ = false;
        identity_.clear();
        system_.clear();
    }
    if (std::exchange(changed_, false)) session_.forget();
    const auto table = session_.use(db);
    if (!table) return tl::unexpected(table.error());
    result<T> outcome = work(**table);
    if (!outcome) {
        session_.forget();
        looked_ = false;
    }
    return outcome;
}

result<fetched> outbox_reader::fetch(connection& db, const fetch_request& request) {
    return on_table<fetched>(db, [&](const outbox_session::known& table) {
        return request.until ? sweep(db, table, request) : fetch_from(db, table, request);
    });
}

/// What is paused must be known before the first row is read.
result<void> outbox_reader::look_first(connection& db, const outbox_session::known& table) {
    if (looked_) return {};
    if (system_.empty()) {
        const auto system = db.run(
            {"SELECT system_identifier::text FROM pg_control_system()",
             effect::reads,
             "identify the server of"}
        );
        if (!system) return tl::unexpected(system.error());
        system_ = system->text(0, 0);
    }
    const auto found = db.run({table.sql.status, effect::reads, "look at the outbox in"});
    if (!found) return tl::unexpected(found.error());
    return read_status(db, table, *found).map([](const status&) {});
}

result<outbox_reader::status> outbox_reader::read_status(
    connection& db, const outbox_session::known& table, const rows& from
) {
    if (from.boolean(0, status_column::in_recovery).value_or(true)) {
        return fail(
            errc::unavailable,
            fmt::format("{} is a standby, which takes no writes; name the primary, or promote it", db.name()),
            retry_advice::after_delay
        );
    }
    const auto generation = from.integer(0, status_column::generation);
    if (!generation) {
        return fail(
            errc::not_found,
            fmt::format(
                "the row of {} in millrace_outbox is gone; it is made anew", table.layout.table.shown()
            ),
            retry_advice::now
        );
    }
    status seen;
    seen.table.oid = from.integer(0, status_column::oid).value_or(0);
    seen.table.file = from.integer(0, status_column::file).value_or(0);
    seen.table.sequence_file = from.integer(0, status_column::sequence_file).value_or(0);
    seen.table.lasting = fmt::format(
        "{}/{}/{}/{}/{}",
        system_,
        from.text(0, status_column::timeline),
        seen.table.oid,
        seen.table.file,
        seen.table.sequence_file
    );
    // Behind a pooler the server may change under one connection; no two servers start in one microsecond.
    seen.identity = fmt::format(
        "{}#{}.{}.{}",
        seen.table.lasting,
        db.number(),
        from.integer(0, status_column::server_start).value_or(0),
        from.integer(0, status_column::columns).value_or(0)
    );
    seen.generation = static_cast<std::uint64_t>(*generation);
    seen.paused = texts_of(from.value(0, status_column::paused));
    seen.drawn = row_id{from.integer(0, status_column::drawn).value_or(0)};
    seen.all_paused = !seen.paused.empty() && seen.paused.front().empty();
    paused_ = seen.paused;
    drawn_ = seen.drawn;
    all_paused_ = seen.all_paused;
    looked_ = true;
    if (!identity_.empty() && identity_ != seen.identity) changed_ = true;
    identity_ = seen.identity;
    return seen;
}

/// One round trip: rows ahead first, the gaps in a later snapshot, then what the table was while they were
/// read.
struct outbox_reader::round {
    row_decoder::outcome ahead;
    row_decoder::outcome filled;
    std::optional<status> state;
    std::vector<std::uint64_t> writers;
};

std::size_t outbox_reader::rows_to_ask(std::size_t rows_max, std::size_t bytes_max) const {
    constexpr std::size_t rows_min = 16;
    const std::size_t most = outbox_sql::small_row;
    if (row_bytes_ == 0) return std::min(rows_max, std::max(rows_min, bytes_max / most));
    return std::min(rows_max, bytes_max / row_bytes_ + bytes_max / row_bytes_ / 8 + rows_min);
}

void outbox_reader::learn_size(const row_batch& batch) {
    if (batch.rows().empty()) return;
    const auto now = batch.bytes() / batch.rows().size();
    row_bytes_ = row_bytes_ == 0 ? now : (row_bytes_ + now) / 2;
}

/// False when a row is too large for the cheap statement: the round is void and must be read again.
result<bool> outbox_reader::read_round(
    connection& db, const outbox_session::known& table, const fetch_request& request, round& into
) {
    const auto& sql = table.sql;
    const topics_left_out paused(paused_);
    const bool reads_ahead = request.rows_max > 0 && !all_paused_;
    const bool probes = !request.gaps.empty() && !all_paused_;
    const bool exact = exact_rounds_ > 0 || row_bytes_ > large_row;
    const auto asked = rows_to_ask(request.rows_max, request.bytes_max);
    std::vector<statement> batch;
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> last;
    if (reads_ahead) {
        auto& ahead = batch.emplace_back(
            exact ? sql.ahead_exact : sql.ahead_small, effect::reads, "read the outbox in", planning::once
        );
        // One more than wanted tells whether there is more.
        ahead.add(request.after.value());
        ahead.add(static_cast<std::int64_t>(asked + 1));
        ahead.add(paused.array());
        const auto row_max =
            row_bytes_ == 0 ? outbox_sql::small_row
                            : std::clamp(
                                  static_cast<std::int64_t>(std::max(small_row_min, growth * row_bytes_)),
                                  std::int64_t{1},
                                  outbox_sql::small_row
                              );
        ahead.add(exact ? static_cast<std::int64_t>(request.bytes_max) : row_max);
    }
    if (probes) {
        for (const auto& gap : request.gaps) {
            first.push_back(gap.first.value());
            last.push_back(gap.last.value());
        }
        auto& gaps =
            batch.emplace_back(sql.gaps, effect::reads, "probe the gaps of the outbox in", planning::once);
        gaps.add(std::span<const std::int64_t>(first));
        gaps.add(std::span<const std::int64_t>(last));
        gaps.add(paused.array());
        gaps.add(gap_rows_max + 1);
        gaps.add(static_cast<std::int64_t>(request.gap_bytes_max));
    }
    batch.emplace_back(sql.status, effect::reads, "look at the outbox in", planning::once);
    if (request.wants_writers) batch.push_back(ask_writers(sql));

    // Read committed whatever the default is: each statement has a snapshot of its own.
    auto reading = db.begin(isolation::read_committed);
    const auto got = reading.commit_with(batch);
    if (!got) return tl::unexpected(got.error());
    std::size_t at = 0;
    if (reads_ahead) {
        const auto& ahead = (*got)[at++];
        into.ahead = decoder_.decode(ahead, asked, request.bytes_max);
        if (exact_rounds_ > 0) --exact_rounds_;
        if (into.ahead.cut_large && !exact) {
            exact_rounds_ = exact_rounds;
            return false;
        }
        learn_size(*into.ahead.batch);
    } else {
        into.ahead.batch = std::make_shared<row_batch>();
    }
    if (probes) {
        const auto& filled = (*got)[at++];
        into.filled = decoder_.decode(filled, gap_rows_max, request.gap_bytes_max);
    } else {
        into.filled.batch = std::make_shared<row_batch>();
    }
    auto state = read_status(db, table, (*got)[at++]);
    if (!state) return tl::unexpected(std::move(state.error()));
    into.state = std::move(*state);
    if (request.wants_writers) into.writers = writers_of((*got)[at]);
    return true;
}

result<fetched> outbox_reader::fetch_from(
    connection& db, const outbox_session::known& table, const fetch_request& request
) {
    if (auto done = look_first(db, table); !done) return tl::unexpected(std::move(done.error()));
    round got;
    auto whole = read_round(db, table, request, got);
    if (whole && !*whole) whole = read_round(db, table, request, got);
    if (!whole) return tl::unexpected(std::move(whole.error()));

    fetched made;
    auto& reply = made.reply;
    reply.filled = got.filled.batch;
    reply.gaps_more = got.filled.cut;
    reply.ahead = got.filled.cut ? std::make_shared<row_batch>() : got.ahead.batch;
    reply.more = got.ahead.cut;
    reply.writers = std::move(got.writers);
    reply.knows_writers = request.wants_writers;
    reply.table_identity = got.state->identity;
    reply.replay_generation = got.state->generation;
    reply.drawn = got.state->drawn;
    reply.paused = std::move(got.state->paused);
    made.table = std::move(got.state->table);
    return made;
}

/// A range of ids, read as gaps are.
result<fetched> outbox_reader::sweep(
    connection& db, const outbox_session::known& table, const fetch_request& request
) {
    const auto until = request.until->value();
    auto last = until;
    fetch_request page;
    page.rows_max = 0;
    page.gap_bytes_max = request.bytes_max;
    if (request.after.value() < until) {
        const auto first = request.after.value() + 1;
        if (first < 0) {
            last = std::min<std::int64_t>(until, -1);  // where rows are rare
        } else if (until - first > sweep_ids_) {
            last = first + sweep_ids_;
        }
        page.gaps = {{row_id{first}, row_id{last}}};
    }
    const auto began = std::chrono::steady_clock::now();
    auto made = fetch_from(db, table, page);
    if (!made) return made;
    const auto took = std::chrono::steady_clock::now() - began;
    auto& reply = made->reply;
    reply.ahead = std::exchange(reply.filled, reply.ahead);
    if (std::exchange(reply.gaps_more, false)) {
        reply.more = true;
        return made;
    }
    reply.more = last < until;
    reply.looked_to = row_id{last};
    if (took < sweep_page_short) sweep_ids_ = std::min(sweep_ids_ * 2, sweep_ids_max);
    if (took > sweep_page_long) sweep_ids_ = std::max(sweep_ids_ / 2, sweep_ids_min);
    return made;
}

result<outbox_start> outbox_reader::start(connection& db) {
    return on_table<outbox_start>(db, [&](const outbox_session::known& table) -> result<outbox_start> {
        if (auto done = look_first(db, table); !done) return tl::unexpected(std::move(done.error()));
        // The generation first: what is put back or un-parked meanwhile shows at the first fetch.
        std::vector<statement> batch;
        batch.emplace_back(table.sql.status, effect::reads, "look at the outbox in");
        batch.emplace_back(table.sql.parked, effect::reads, "read the parked keys of the outbox in");
        batch.emplace_back(table.sql.low_water, effect::reads, "read where the outbox begins in");
        auto reading = db.begin(isolation::read_committed);
        const auto got = reading.commit_with(batch);
        if (!got) return tl::unexpected(got.error());
        const auto state = read_status(db, table, (*got)[0]);
        if (!state) return tl::unexpected(state.error());
        outbox_start begin;
        const auto& parked = (*got)[1];
        for (std::size_t i = 0; i < parked.size(); ++i) {
            lane_key lane{parked.text(i, 0), parked.text(i, 1), std::nullopt};
            if (const auto partition = parked.integer(i, 2))
                lane.partition = static_cast<std::int32_t>(*partition);
            begin.parked.push_back(std::move(lane));
        }
        begin.table_identity = state->identity;
        begin.replay_generation = state->generation;
        const auto& hint = (*got)[2];
        if (!hint.empty() && hint.text(0, 3) == state->table.lasting &&
            hint.integer(0, 2) == static_cast<std::int64_t>(state->generation)) {
            begin.low_water = row_id{hint.integer(0, 0).value_or(0)};
        }
        return begin;
    });
}

result<void> outbox_reader::check(connection& db) {
    looked_ = false;
    return on_table<void>(db, [&](const outbox_session::known& table) { return look_first(db, table); });
}

/// Where the mark lies above what the sequence gives, rows wait near that; so few ids that dead entries of
/// the index cost little.
id_range outbox_reader::around_sequence(row_id mark) const {
    constexpr std::int64_t before = 1'000;
    constexpr std::int64_t behind = 9'000;
    if (drawn_ <= row_id{} || drawn_ >= mark) return {row_id{1}, row_id{0}};  // none
    const auto last = mark.value() - drawn_.value() > behind ? drawn_.value() + behind : mark.value();
    return {row_id{std::max<std::int64_t>(1, drawn_.value() - before)}, row_id{last}};
}

result<outbox_look> outbox_reader::look(connection& db, row_id low_water) {
    return on_table<outbox_look>(db, [&](const outbox_session::known& table) -> result<outbox_look> {
        // Rows that are held back may lie below the mark.
        const auto above = paused_.empty() ? low_water : row_id{};
        const auto near = around_sequence(above);
        std::vector<statement> batch;
        batch.push_back(statement(table.sql.look, effect::reads, "count the outbox in", planning::once)
                            .with(above.value(), near.first.value(), near.last.value()));
        batch.emplace_back(
            table.sql.holders, effect::reads, "look for writers of the outbox in", planning::once
        );
        const auto got = db.run_together(batch);
        if (!got) return tl::unexpected(got.error());
        outbox_look seen;
        if (const auto& lowest = got->front(); !lowest.empty()) {
            seen.backlog =
                static_cast<std::uint64_t>(std::max<std::int64_t>(0, lowest.integer(0, 0).value_or(0)));
            seen.oldest_age = span_of(lowest.integer(0, 1));
        }
        const auto& holders = got->back();
        for (std::size_t i = 0; i < holders.size(); ++i) {
            seen.holders.push_back(
                {holders.integer(i, 0).value_or(0),
                 span_of(holders.integer(i, 1)),
                 span_of(holders.integer(i, 2))}
            );
        }
        return seen;
    });
}

}  // namespace millrace::postgres
