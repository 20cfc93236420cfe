#include "fake_stream.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace millrace::sim {

namespace {

constexpr auto hash_max = std::numeric_limits<std::uint64_t>::max();

// Decimal of high * 2^64 + low.
std::string decimal(std::uint64_t high, std::uint64_t low) {
    __extension__ typedef unsigned __int128 wide;
    auto value = (wide{high} << 64U) | low;
    std::string digits;
    do {
        digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value != 0);
    std::reverse(digits.begin(), digits.end());
    return digits;
}

std::uint64_t number_in(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// A cursor says where it points to and when it was made: `index@nanoseconds`.
struct cursor_parts {
    std::size_t index;
    world_time made;
};

std::optional<cursor_parts> parse(const read_cursor& cursor) {
    const std::string_view text = cursor.value();
    const auto at = text.find('@');
    if (at == std::string_view::npos) return std::nullopt;
    return cursor_parts{
        number_in(text.substr(0, at)), world_time{static_cast<std::int64_t>(number_in(text.substr(at + 1)))}};
}

tl::unexpected<error> no_shard(const shard_id& shard) {
    return fail(
        errc::not_found,
        fmt::format("shard {} is not in the stream; it never was, or it has expired", shard.value())
    );
}

}  // namespace

std::uint64_t hash_of(std::string_view key) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : key)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return rng{hash}.next();
}

fake_stream::fake_stream(scheduler& world, rng& random, stream_options options)
    : world_(world), random_(random), options_(options), sequence_(options.first_sequence) {
    const auto width = hash_max / options_.shards;
    for (std::size_t i = 0; i < options_.shards; ++i) {
        const auto from = width * i + (i > 0 ? 1 : 0);
        add_shard({}, from, i + 1 == options_.shards ? hash_max : width * (i + 1));
    }
}

stored_shard& fake_stream::add_shard(std::vector<shard_id> parents, std::uint64_t from, std::uint64_t to) {
    auto shard = std::make_unique<stored_shard>();
    shard->listed = {
        shard_id{fmt::format("shardId-{:012}", shards_.size())},
        std::move(parents),
        false,
        decimal(from, 0),
        decimal(to, hash_max)};
    shard->made = world_.now();
    shard->hash_from = from;
    shard->hash_to = to;
    return *shards_.emplace_back(std::move(shard));
}

const stored_shard* fake_stream::find(const shard_id& shard) const {
    const auto found = std::find_if(shards_.begin(), shards_.end(), [&](const auto& candidate) {
        return candidate->listed.shard == shard && !candidate->expired;
    });
    return found == shards_.end() ? nullptr : found->get();
}

stored_shard& fake_stream::at(const shard_id& shard) {
    return **std::find_if(shards_.begin(), shards_.end(), [&](const auto& candidate) {
        return candidate->listed.shard == shard;
    });
}

position fake_stream::append(
    const std::optional<std::string>& key, const std::optional<std::string>& data, std::vector<header> headers
) {
    const auto hash = key ? hash_of(*key) : random_.next();
    const auto found = std::find_if(shards_.begin(), shards_.end(), [&](const auto& shard) {
        return !shard->listed.closed && shard->hash_from <= hash && hash <= shard->hash_to;
    });
    auto& shard = **found;
    if (last_appended_ == &shard && random_.chance(options_.aggregate)) {
        ++sub_sequence_;
    } else {
        sequence_ += 1 + random_.below(3);
        sub_sequence_ = 0;
    }
    last_appended_ = &shard;
    const auto spread = static_cast<std::uint64_t>(options_.late_visible_max.count());
    auto visible = world_.now() + nanoseconds{static_cast<std::int64_t>(random_.below(spread + 1))};
    if (!shard.records.empty()) visible = std::max(visible, shard.records.back().visible);
    shard.records.push_back(
        {{sequence_number{sequence_}, sub_sequence_}, key, data, std::move(headers), world_.now(), visible}
    );
    if (observer_) observer_(shard, shard.records.back());
    signal(visible);
    return shard.records.back().position;
}

result<void> fake_stream::split(const shard_id& shard, std::optional<std::uint64_t> at_hash) {
    const auto* parent = find(shard);
    if (parent == nullptr) return no_shard(shard);
    const auto from = parent->hash_from;
    const auto to = parent->hash_to;
    const auto cut = at_hash.value_or(from + (to - from) / 2 + 1);
    if (parent->listed.closed || cut <= from || cut > to) {
        return fail(
            errc::invalid_argument, fmt::format("shard {} is closed, or the cut is outside it", shard.value())
        );
    }
    close(shard);
    add_shard({shard}, from, cut - 1);
    add_shard({shard}, cut, to);
    return {};
}

result<void> fake_stream::merge(const shard_id& left, const shard_id& right) {
    const auto* a = find(left);
    const auto* b = find(right);
    if (a == nullptr) return no_shard(left);
    if (b == nullptr) return no_shard(right);
    if (a->listed.closed || b->listed.closed || a->hash_to == hash_max || a->hash_to + 1 != b->hash_from) {
        return fail(
            errc::invalid_argument,
            fmt::format("shards {} and {} are closed or no neighbours", left.value(), right.value())
        );
    }
    close(left);
    close(right);
    add_shard({left, right}, a->hash_from, b->hash_to);
    return {};
}

void fake_stream::trim(const shard_id& shard, std::size_t records) {
    auto& stored = at(shard);
    stored.trimmed = std::min(stored.records.size(), stored.trimmed + records);
}

void fake_stream::close(const shard_id& shard) {
    at(shard).listed.closed = true;
    at(shard).closed_at = world_.now();
}

void fake_stream::expire(const shard_id& shard) {
    at(shard).expired = true;
    at(shard).expired_at = world_.now();
}

void fake_stream::heal() {
    sick.clear();
    options_.denials = options_.old_listings = 0;
}

result<stream_listing> fake_stream::list() const {
    stream_listing listing{"created-1", wall_at(world_.now()), options_.retention, {}};
    auto as_of = world_.now();
    if (options_.old_listings > 0 && random_.chance(options_.old_listings)) {
        const auto span = static_cast<std::uint64_t>(options_.listing_age_max.count());
        as_of -= nanoseconds{static_cast<std::int64_t>(random_.below(span + 1))};
    }
    for (const auto& shard : shards_) {
        if (shard->made > std::max(as_of, world_time{0})) continue;
        if (shard->expired_at && *shard->expired_at <= as_of) continue;
        listing.shards.push_back(shard->listed);
        listing.shards.back().closed = shard->closed_at && *shard->closed_at <= as_of;
    }
    return listing;
}

bool fake_stream::denies() const {
    return options_.denials > 0 && random_.chance(options_.denials);
}

std::size_t fake_stream::visible_end(const stored_shard& shard) const {
    const auto end = std::partition_point(shard.records.begin(), shard.records.end(), [&](const auto& r) {
        return r.visible <= world_.now();
    });
    return static_cast<std::size_t>(end - shard.records.begin());
}

read_cursor fake_stream::cursor_at(std::size_t index) const {
    return read_cursor{fmt::format("{}@{}", index, world_.now().count())};
}

result<read_cursor> fake_stream::open(const shard_id& shard, const start_position& start) const {
    const auto* stored = find(shard);
    if (stored == nullptr || denies()) return no_shard(shard);
    const auto& records = stored->records;
    const auto index_where = [&](auto is_before) {
        const auto found = std::partition_point(records.begin(), records.end(), is_before);
        return static_cast<std::size_t>(found - records.begin());
    };
    auto index = stored->trimmed;
    if (std::holds_alternative<from::latest>(start)) index = records.size();
    if (const auto* timestamp = std::get_if<from::timestamp>(&start)) {
        index = index_where([&](const auto& r) { return wall_at(r.arrived) < timestamp->at; });
    }
    if (const auto* after = std::get_if<from::after>(&start)) {
        index = index_where([&](const auto& r) { return r.position <= after->last; });
        if (index < stored->trimmed && options_.trimmed_is_error) {
            return fail(
                errc::position_trimmed,
                fmt::format("shard {} no longer holds the position; go on at its horizon", shard.value())
            );
        }
    }
    return cursor_at(std::max(index, stored->trimmed));
}

/// A read of the shard, if it is not one too many.
result<void> fake_stream::take_turn(const shard_id& shard) {
    auto& stored = at(shard);
    const auto now = world_.now();
    const auto most = options_.rates.reads_per_second;
    while (!stored.reads.empty() && now - stored.reads.front() >= 1s)
        stored.reads.pop_front();
    if (now < stored.paid_at || (most != 0 && stored.reads.size() >= most)) {
        return fail(
            errc::throttled,
            fmt::format("shard {} is read too often or too much", shard.value()),
            retry_advice::after_delay
        );
    }
    if (most != 0) stored.reads.push_back(now);
    return {};
}

result<read_reply> fake_stream::read(
    const shard_id& shard, const read_cursor& cursor, const read_limits& limits
) {
    const auto* stored = find(shard);
    if (stored == nullptr || denies()) return no_shard(shard);
    if (sick.contains(shard)) {
        return fail(
            errc::unavailable,
            fmt::format("shard {} does not answer", shard.value()),
            retry_advice::after_delay
        );
    }
    if (auto turn = take_turn(shard); !turn) return tl::unexpected(turn.error());
    const auto from = parse(cursor);
    if (!from) return fail(errc::invalid_argument, "the cursor was not made by this stream");
    if (world_.now() - from->made > options_.cursor_life) {
        return fail(errc::expired_cursor, "the cursor is too old; open a new one", retry_advice::now);
    }
    const auto end = visible_end(*stored);
    const auto begin = std::max(from->index, stored->trimmed);
    auto wanted = std::min(end - std::min(begin, end), limits.records_max);
    if (wanted > 0 && random_.chance(options_.empty_page)) {
        wanted = 0;
    } else if (wanted > 1 && random_.chance(options_.partial_page)) {
        wanted = 1 + random_.below(wanted);
    }
    auto batch = std::make_shared<record_batch>(shard);
    auto next = begin;
    for (; next < begin + wanted; ++next) {
        const auto& r = stored->records[next];
        const auto bytes = sizeof(record) + r.key.value_or("").size() + r.data.value_or("").size();
        if (next > begin && batch->bytes() + bytes > limits.bytes_max) break;
        std::vector<record_header> headers;
        for (const auto& h : r.headers) {
            headers.push_back(
                {batch->store(h.name), h.value ? std::optional(batch->store(*h.value)) : std::nullopt}
            );
        }
        batch->add(
            {r.position,
             r.key ? std::optional(batch->store(*r.key)) : std::nullopt,
             r.data ? std::optional(batch->store(*r.data)) : std::nullopt,
             batch->store(std::move(headers)),
             wall_at(r.arrived)}
        );
    }
    if (const auto rate = options_.rates.bytes_per_second; rate != 0) {
        const auto cost = batch->bytes() * 1'000'000'000 / rate;
        at(shard).paid_at = world_.now() + nanoseconds{static_cast<std::int64_t>(cost)};
    }
    read_reply reply{batch, std::nullopt, milliseconds{0}};
    if (!stored->listed.closed || next < stored->records.size()) reply.next = cursor_at(next);
    if (next < end) {
        const auto behind = stored->records[end - 1].arrived - stored->records[next].arrived;
        reply.behind = milliseconds{1} + std::chrono::floor<milliseconds>(behind);
    }
    return reply;
}

void fake_stream::watch(std::weak_ptr<const char> token, std::function<void()> changed) {
    std::erase_if(watchers_, [](const auto& w) { return w.token.expired(); });
    watchers_.push_back({std::move(token), std::move(changed)});
}

void fake_stream::signal(world_time when) {
    for (const auto& w : watchers_) {
        if (random_.chance(options_.hint_lost)) continue;
        world_.at(when, [w] {
            if (!w.token.expired()) w.changed();
        });
    }
}

void fake_record_source::list_shards(completion<stream_listing> done) {
    link_.ask<stream_listing>(
        "list_shards", [&stream = stream_] { return stream.list(); }, std::move(done)
    );
}

void fake_record_source::open(shard_id shard, start_position start, completion<read_cursor> done) {
    link_.ask<read_cursor>(
        "open",
        [&stream = stream_, shard = std::move(shard), start] { return stream.open(shard, start); },
        std::move(done)
    );
}

void fake_record_source::read(
    shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done
) {
    link_.ask<read_reply>(
        "read",
        [&stream = stream_, shard = std::move(shard), cursor = std::move(cursor), limits] {
            return stream.read(shard, cursor, limits);
        },
        std::move(done)
    );
}

void fake_record_source::watch(std::function<void()> changed) {
    watching_.reset();
    if (!changed) return;
    watching_ = std::make_shared<const char>();
    stream_.watch(watching_, [this, changed = std::move(changed)] {
        link_.client().post([token = std::weak_ptr(watching_), changed] {
            if (!token.expired()) changed();
        });
    });
}

}  // namespace millrace::sim
