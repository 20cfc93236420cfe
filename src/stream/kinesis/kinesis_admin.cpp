#include "kinesis_admin.hpp"

#include "kinesis_error.hpp"
#include "put_entry.hpp"

#include <algorithm>
#include <future>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>

namespace millrace {

namespace {

using namespace aws::kinesis;
using steady = std::chrono::steady_clock;

constexpr milliseconds look_every{100};
constexpr std::chrono::hours default_retention{24};  // and the shortest
constexpr std::chrono::hours longest_retention{8'760};
constexpr std::size_t call_bytes_max = 4 << 20;
constexpr kinesis_calls::options patiently{.timeout = milliseconds{20'000}};

/// An event as a row, with the memory of its headers.
struct event_row {
    explicit event_row(const event& e) {
        row.topic = e.topic;
        row.key = e.key;
        row.value = e.value;
        for (const auto& h : e.headers)
            headers.push_back({h.name, h.value ? std::optional<std::string_view>(*h.value) : std::nullopt});
        row.headers = headers;
    }
    event_row(event_row&&) = default;

    std::vector<record_header> headers;
    outbox_row row;
    std::string key_room;
    std::optional<kinesis_position> position;
};

/// The next call: what has no position yet, in order, each key once.
std::vector<event_row*> next_call(std::vector<event_row>& rows) {
    std::vector<event_row*> call;
    std::set<std::string_view> keys;
    std::size_t bytes = 0;
    for (auto& one : rows) {
        if (one.position) continue;
        const auto size = one.row.bytes() + kinesis_record_overhead;
        if (call.size() == kinesis_call_records_max || (!call.empty() && bytes + size > call_bytes_max))
            break;
        if (one.row.key && !keys.insert(*one.row.key).second) continue;
        bytes += size;
        call.push_back(&one);
    }
    return call;
}

}  // namespace

kinesis_admin::kinesis_admin(
    kinesis_address stream, std::unique_ptr<aws::api> api, milliseconds wait, milliseconds put_timeout
)
    : stream_(std::move(stream)), wait_(wait), put_timeout_(put_timeout), calls_(std::move(api)) {}

template <class Reply, class Request>
kinesis_outcome<Reply> kinesis_admin::ask(Request request, const kinesis_calls::options& how) {
    std::promise<kinesis_outcome<Reply>> told;
    calls_.call<Reply>(std::move(request), how, [&told](auto came) {
        if (came) return told.set_value(std::move(came->first));
        told.set_value(tl::unexpected(std::move(came.error())));
    });
    return told.get_future().get();
}

/// A change that must not be made twice: in doubt it is looked at, and then it is the caller's to judge.
template <class Request>
result<void> kinesis_admin::change(Request request) {
    const auto how =
        ask<empty_reply>(std::move(request), {.repeatable = false, .timeout = milliseconds{20'000}});
    if (!how) return tl::unexpected(of_stream(how.error(), stream_));
    return {};
}

result<kinesis_stream> kinesis_admin::look() {
    std::promise<result<kinesis_stream>> told;
    list_kinesis_stream(calls_, stream_, patiently.timeout, [&told](result<kinesis_stream> how) {
        told.set_value(std::move(how));
    });
    return told.get_future().get();
}

result<kinesis_stream> kinesis_admin::when_active() {
    const auto end = steady::now() + wait_;
    while (true) {
        auto seen = look();
        const bool done = seen && seen->summary.status == "ACTIVE";
        const bool may_come =
            seen || seen.error().code == errc::unavailable || seen.error().code == errc::not_found;
        if (done || !may_come) return seen;
        if (steady::now() >= end) {
            if (!seen) return seen;
            return fail(
                errc::unavailable,
                fmt::format("{} is not active after {} ms; look at it later", shown(stream_), wait_.count()),
                retry_advice::after_delay
            );
        }
        std::this_thread::sleep_for(look_every);
    }
}

result<void> kinesis_admin::create(std::uint32_t shards, std::optional<milliseconds> retention) {
    if (stream_.by_arn()) {
        return fail(
            errc::invalid_argument,
            fmt::format("{}: a stream is made by its name, not by an ARN", shown(stream_))
        );
    }
    // Before anything is made: the service takes the retention only of a stream that is there.
    if (retention && (*retention < default_retention || *retention > longest_retention)) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "{}: Kinesis keeps records for {} to {} h; give a retention between them, or none",
                shown(stream_),
                default_retention.count(),
                longest_retention.count()
            )
        );
    }
    const auto made = ask<empty_reply>(create_stream{stream_.stream, shards}, {.repeatable = false});
    if (!made) {
        auto why = of_stream(made.error(), stream_);
        if (made.error().type.starts_with("ResourceInUse")) why.code = errc::already_exists;
        return tl::unexpected(std::move(why));
    }
    if (auto active = when_active(); !active) return tl::unexpected(std::move(active.error()));
    const auto hours = std::chrono::ceil<std::chrono::hours>(retention.value_or(default_retention));
    if (hours == default_retention) return {};
    return change(increase_retention{stream_.wire_name(), hours.count()});
}

result<void> kinesis_admin::remove() {
    if (auto asked = change(delete_stream{stream_.wire_name()}); !asked) return asked;
    const auto end = steady::now() + wait_;
    while (true) {
        const auto seen = look();
        if (!seen && seen.error().code == errc::not_found) return {};
        if (steady::now() >= end) {
            return fail(
                errc::unavailable,
                fmt::format("{} is still there after {} ms", shown(stream_), wait_.count()),
                retry_advice::after_delay
            );
        }
        std::this_thread::sleep_for(look_every);
    }
}

result<std::vector<kinesis_position>> kinesis_admin::append(std::span<const event> events) {
    std::vector<event_row> rows;
    rows.reserve(events.size());
    for (const auto& e : events) {
        const auto& added = rows.emplace_back(e);
        if (auto why = why_refused(added.row, {.drop_headers = false}, false)) {
            why->code = errc::invalid_argument;
            return tl::unexpected(std::move(*why));
        }
    }
    // Whoever puts the batch again puts those twice that the calls before have stored.
    const auto ended_with = [&](error why) -> tl::unexpected<error> {
        const auto stored =
            std::ranges::count_if(rows, [](const event_row& one) { return one.position.has_value(); });
        if (stored > 0) {
            why.in_doubt = true;
            why.detail += fmt::format("; {} of the {} events of this batch are stored", stored, rows.size());
        }
        return tl::unexpected(std::move(why));
    };
    std::mt19937_64 random{std::random_device{}()};
    const auto end = steady::now() + wait_;
    for (auto call = next_call(rows); !call.empty(); call = next_call(rows)) {
        put_records request{stream_.wire_name(), {}};
        for (auto* one : call)
            request.records.push_back(entry_of(one->row, random(), one->key_room));
        auto how = ask<put_records_reply>(std::move(request), {.repeatable = true, .timeout = put_timeout_});
        if (!how) return ended_with(of_stream(how.error(), stream_));
        if (how->results.size() != call.size()) {
            return ended_with(
                {errc::unavailable,
                 retry_advice::never,
                 true,
                 fmt::format("{} answered for other records than were put", shown(stream_))}
            );
        }
        for (std::size_t i = 0; i < call.size(); ++i) {
            auto& result = how->results[i];
            if (result.error_code || !result.sequence || !result.shard) continue;
            call[i]->position = kinesis_position{shard_id{*result.shard}, std::move(*result.sequence)};
        }
        if (how->failed == 0) continue;
        if (steady::now() >= end) {
            return ended_with(
                {errc::throttled,
                 retry_advice::after_delay,
                 false,
                 fmt::format(
                     "{} refused {} records for too long: it is throttled", shown(stream_), how->failed
                 )}
            );
        }
        std::this_thread::sleep_for(look_every);
    }
    std::vector<kinesis_position> positions;
    positions.reserve(rows.size());
    for (auto& one : rows)
        positions.push_back(std::move(*one.position));
    return positions;
}

result<void> kinesis_admin::put(std::span<const event> events) {
    return append(events).map([](const auto&) {});
}

result<stream_facts> kinesis_admin::describe() {
    const auto seen = look();
    if (!seen) return tl::unexpected(seen.error());
    const auto listing = to_listing(*seen);
    stream_facts facts{seen->summary.name, *seen->summary.created, listing.retention, {}};
    for (const auto& shard : listing.shards) {
        const auto from = hash_key::parse(shard.hash_from);
        const auto to = hash_key::parse(shard.hash_to);
        if (!from || !to) return tl::unexpected(from ? to.error() : from.error());
        facts.shards.push_back({shard.shard, shard.parents, {*from, *to}, shard.closed, {}, {}, {}, {}});
    }
    return facts;
}

result<std::vector<shard_id>> kinesis_admin::children_of(const std::vector<shard_id>& parents) {
    auto active = when_active();
    if (!active) return tl::unexpected(std::move(active.error()));
    std::vector<shard_id> children;
    for (const auto& shard : to_listing(*active).shards) {
        if (std::ranges::is_permutation(shard.parents, parents)) children.push_back(shard.shard);
    }
    if (!children.empty()) return children;
    return fail(
        errc::unavailable, fmt::format("{} lists no children yet", shown(stream_)), retry_advice::after_delay
    );
}

result<std::pair<shard_id, shard_id>> kinesis_admin::split(
    const shard_id& shard, std::optional<hash_key> at
) {
    if (!at) {
        const auto seen = look();
        if (!seen) return tl::unexpected(seen.error());
        const auto found = std::ranges::find(seen->shards, shard.value(), &aws::kinesis::shard::id);
        if (found == seen->shards.end()) {
            return fail(errc::not_found, fmt::format("{} has no shard {}", shown(stream_), shard.value()));
        }
        const auto from = hash_key::parse(found->hashes.from);
        const auto to = hash_key::parse(found->hashes.to);
        if (!from || !to) return tl::unexpected(from ? to.error() : from.error());
        const auto halves = split_in_middle({*from, *to});
        if (!halves) return tl::unexpected(halves.error());
        at = halves->second.from;
    }
    if (auto done = change(split_shard{stream_.wire_name(), shard.value(), at->to_string()}); !done)
        return tl::unexpected(std::move(done.error()));
    auto children = children_of({shard});
    if (!children) return tl::unexpected(std::move(children.error()));
    return std::pair{children->front(), children->back()};
}

result<shard_id> kinesis_admin::merge(const shard_id& one, const shard_id& other) {
    if (auto done = change(merge_shards{stream_.wire_name(), one.value(), other.value()}); !done)
        return tl::unexpected(std::move(done.error()));
    auto children = children_of({one, other});
    if (!children) return tl::unexpected(std::move(children.error()));
    return children->front();
}

result<void> kinesis_admin::scale(std::uint32_t shards) {
    if (auto done = change(update_shard_count{stream_.wire_name(), shards}); !done) return done;
    return when_active().map([](const kinesis_stream&) {});
}

}  // namespace millrace
