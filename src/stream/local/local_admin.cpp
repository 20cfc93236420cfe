#include "local_admin.hpp"

#include "database.hpp"
#include "local_catalog.hpp"
#include "local_schema.hpp"
#include "local_trim.hpp"
#include "local_url.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace millrace {

using namespace local;
using sqlite::transaction_kind;

struct local_admin::impl {
    sqlite::database db;
    local_admin_options options;
    routing_cache routes;

    /// The rows of a stream, inside a transaction that is rolled back when this goes out of scope.
    struct change {
        sqlite::transaction open;
        stream_row stream;
        wall_time now;
    };
    result<change> begin(std::string_view stream, transaction_kind kind);
    result<shard_entry> open_shard(const change& in, const shard_id& shard);
    result<shard_id> add_shard(change& in, const hash_range& range, std::span<const std::uint64_t> parents);
    result<void> close(const change& in, const shard_entry& shard);
    result<void> store(const change& in);
};

namespace {

tl::unexpected<error> pass(error& why) {
    return tl::unexpected(std::move(why));
}

/// Tells streams of the same name apart that were made one after the other.
std::string new_identity(wall_time now) {
    std::random_device random;
    const auto high = static_cast<std::uint64_t>(random()) << 32U;
    return fmt::format("{}-{:016x}", to_stored(now), high | random());
}

record_header view(const header& h) {
    return {h.name, h.value ? std::optional<std::string_view>(*h.value) : std::nullopt};
}

local_shard_info describe_shard(const shard_entry& shard, std::optional<std::uint64_t> first) {
    local_shard_info info;
    info.shard = shard_name(shard.number);
    for (const auto parent : shard.parents)
        info.parents.push_back(shard_name(parent));
    info.range = shard.range;
    info.closed = shard.closed_at.has_value();
    info.records = shard.records;
    info.bytes = shard.bytes;
    if (shard.records > 0) {
        info.first_sequence = first;
        info.last_sequence = shard.last_sequence;
    }
    return info;
}

}  // namespace

local_admin::local_admin(std::unique_ptr<impl> made) : impl_(std::move(made)) {}
local_admin::local_admin(local_admin&&) noexcept = default;
local_admin& local_admin::operator=(local_admin&&) noexcept = default;
local_admin::~local_admin() = default;

result<local_admin> local_admin::open(const std::string& file, local_admin_options options) {
    const auto mode = options.only_reads ? sqlite::open_mode::to_read : sqlite::open_mode::must_exist;
    auto db = open_streams(file, mode, options.busy_timeout);
    if (!db) return pass(db.error());
    return local_admin(std::make_unique<impl>(impl{std::move(*db), std::move(options), {}}));
}

result<local_admin> local_admin::open_or_create(const std::string& file, local_admin_options options) {
    auto db = open_streams(file, sqlite::open_mode::create, options.busy_timeout);
    if (!db) return pass(db.error());
    return local_admin(std::make_unique<impl>(impl{std::move(*db), std::move(options), {}}));
}

result<local_admin::impl::change> local_admin::impl::begin(std::string_view stream, transaction_kind kind) {
    auto open = db.begin(kind);
    if (!open) return pass(open.error());
    auto row = find_stream(db, stream);
    if (!row) return pass(row.error());
    const auto now = std::max(options.clock(), row->last_arrival);
    return change{std::move(*open), std::move(*row), now};
}

result<shard_entry> local_admin::impl::open_shard(const change& in, const shard_id& shard) {
    auto entry = find_shard(db, in.stream, shard);
    if (!entry || !entry->closed_at) return entry;
    return fail(
        errc::conflict,
        fmt::format(
            "{} of stream \"{}\" in {} is closed: it was split or merged before; `millrace stream describe` "
            "shows the open ones",
            shard.value(),
            in.stream.name,
            db.name()
        )
    );
}

result<shard_id> local_admin::impl::add_shard(
    change& in, const hash_range& range, std::span<const std::uint64_t> parents
) {
    const auto parent = [&](std::size_t at) {
        return at < parents.size() ? std::optional<std::uint64_t>(parents[at]) : std::nullopt;
    };
    const auto number = in.stream.next_shard++;
    return db
        .run(
            "INSERT INTO millrace_stream_shard (stream, number, parent, second_parent, hash_from, hash_to, "
            "first_sequence) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            in.stream.id,
            number,
            parent(0),
            parent(1),
            range.from.to_string(),
            range.to.to_string(),
            in.stream.next_sequence
        )
        .map([number] { return shard_name(number); });
}

result<void> local_admin::impl::close(const change& in, const shard_entry& shard) {
    return db.run(
        "UPDATE millrace_stream_shard SET closed_at = ?2 WHERE id = ?1", shard.id, to_stored(in.now)
    );
}

result<void> local_admin::impl::store(const change& in) {
    return db.run(
        "UPDATE millrace_stream SET next_shard = ?2, topology = topology + 1 WHERE id = ?1",
        in.stream.id,
        in.stream.next_shard
    );
}

result<void> local_admin::create_stream(
    std::string_view name, std::uint32_t shards, std::optional<milliseconds> retention
) {
    if (auto usable = check_stream_name(name); !usable) return usable;
    if (shards < 1 || shards > impl_->options.shards_max) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "stream \"{}\" cannot have {} shards; give 1 to {}", name, shards, impl_->options.shards_max
            )
        );
    }
    if (retention && retention->count() <= 0)
        return fail(
            errc::invalid_argument, "the retention must be longer than 0; leave it out to keep records"
        );

    auto& db = impl_->db;
    auto open = db.begin(transaction_kind::immediate);
    if (!open) return pass(open.error());
    const auto now = impl_->options.clock();
    auto made = db.run(
        "INSERT INTO millrace_stream (name, identity, created_at, retention_ms, last_arrival) "
        "VALUES (?1, ?2, ?3, ?4, ?3) ON CONFLICT (name) DO NOTHING",
        name,
        new_identity(now),
        to_stored(now),
        retention ? std::optional<std::int64_t>(retention->count()) : std::nullopt
    );
    if (!made) return made;
    if (db.changes() == 0) {
        return fail(
            errc::already_exists,
            fmt::format("stream \"{}\" exists already in {}; use it, or choose another name", name, db.name())
        );
    }
    auto row = find_stream(db, name);
    if (!row) return pass(row.error());
    impl::change in{std::move(*open), std::move(*row), now};
    for (const auto& range : split_evenly(shards)) {
        if (auto added = impl_->add_shard(in, range, {}); !added) return pass(added.error());
    }
    if (auto stored = impl_->store(in); !stored) return stored;
    return in.open.commit();
}

result<std::vector<std::string>> local_admin::list_streams() {
    return stream_names(impl_->db);
}

result<local_stream_info> local_admin::describe(std::string_view stream) {
    auto& db = impl_->db;
    auto in = impl_->begin(stream, transaction_kind::deferred);
    if (!in) return pass(in.error());
    auto shards = find_shards(db, in->stream);
    if (!shards) return pass(shards.error());
    const auto& row = in->stream;
    local_stream_info info{row.name, row.identity, row.created_at, row.retention, row.next_sequence, {}};
    for (const auto& shard : *shards) {
        auto first = db.prepare("SELECT min(sequence) FROM millrace_stream_record WHERE shard = ?1");
        if (!first) return pass(first.error());
        auto found = first->with(shard.id).step();
        if (!found) return pass(found.error());
        info.shards.push_back(describe_shard(shard, static_cast<std::uint64_t>(first->integer(0))));
    }
    return info;
}

result<void> local_admin::check(const event& one) const {
    std::vector<record_header> headers;
    std::ranges::transform(one.headers, std::back_inserter(headers), view);
    if (auto refused = too_large({one.key, one.value, headers}, impl_->options.limits)) return pass(*refused);
    return {};
}

result<std::vector<local_position>> local_admin::put(std::string_view stream, std::span<const event> events) {
    auto append = append_transaction::begin(impl_->db, impl_->routes, impl_->options.clock);
    if (!append) return pass(append.error());
    if (events.empty())
        return find_stream(impl_->db, stream).map([](const auto&) { return std::vector<local_position>{}; });
    std::vector<local_position> positions;
    positions.reserve(events.size());
    std::vector<record_header> headers;
    for (const auto& one : events) {
        headers.clear();
        std::ranges::transform(one.headers, std::back_inserter(headers), view);
        const new_record record{one.key, one.value, headers};
        if (auto refused = too_large(record, impl_->options.limits)) {
            refused->detail =
                fmt::format("event {} of {}: {}", positions.size() + 1, events.size(), refused->detail);
            return pass(*refused);
        }
        auto where = append->add(stream, record);
        if (!where) return pass(where.error());
        positions.push_back({shard_name(where->shard), where->sequence});
    }
    if (auto done = append->commit(); !done) return pass(done.error());
    return positions;
}

result<std::pair<shard_id, shard_id>> local_admin::split(
    std::string_view stream, const shard_id& shard, std::optional<hash_key> at
) {
    auto in = impl_->begin(stream, transaction_kind::immediate);
    if (!in) return pass(in.error());
    auto parent = impl_->open_shard(*in, shard);
    if (!parent) return pass(parent.error());
    auto halves = at ? split_at(parent->range, *at) : split_in_middle(parent->range);
    if (!halves) {
        return fail(
            halves.error().code,
            fmt::format(
                "{} of stream \"{}\" cannot be split there: {}", shard.value(), stream, halves.error().detail
            )
        );
    }
    if (auto closed = impl_->close(*in, *parent); !closed) return pass(closed.error());
    const std::array parents{parent->number};
    auto first = impl_->add_shard(*in, halves->first, parents);
    if (!first) return pass(first.error());
    auto second = impl_->add_shard(*in, halves->second, parents);
    if (!second) return pass(second.error());
    if (auto stored = impl_->store(*in); !stored) return pass(stored.error());
    if (auto done = in->open.commit(); !done) return pass(done.error());
    return std::pair{*first, *second};
}

result<shard_id> local_admin::merge(std::string_view stream, const shard_id& one, const shard_id& other) {
    auto in = impl_->begin(stream, transaction_kind::immediate);
    if (!in) return pass(in.error());
    auto lower = impl_->open_shard(*in, one);
    if (!lower) return pass(lower.error());
    auto upper = impl_->open_shard(*in, other);
    if (!upper) return pass(upper.error());
    if (upper->range < lower->range) std::swap(*lower, *upper);
    auto whole = join(lower->range, upper->range);
    if (!whole) {
        return fail(
            whole.error().code,
            fmt::format(
                "{} and {} of stream \"{}\" cannot be merged: {}",
                one.value(),
                other.value(),
                stream,
                whole.error().detail
            )
        );
    }
    for (const auto* parent : {&*lower, &*upper}) {
        if (auto closed = impl_->close(*in, *parent); !closed) return pass(closed.error());
    }
    const std::array parents{lower->number, upper->number};
    auto child = impl_->add_shard(*in, *whole, parents);
    if (!child) return child;
    if (auto stored = impl_->store(*in); !stored) return pass(stored.error());
    if (auto done = in->open.commit(); !done) return pass(done.error());
    return child;
}

result<local_trimmed> local_admin::trim(std::string_view stream, const local_trim& what) {
    return trim_stream(impl_->db, stream, what, impl_->options);
}

}  // namespace millrace
