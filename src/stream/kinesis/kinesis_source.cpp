#include "kinesis_source.hpp"

#include "kinesis_calls.hpp"
#include "kinesis_cursor.hpp"
#include "kinesis_error.hpp"
#include "kinesis_listing.hpp"
#include "record/hash_key.hpp"
#include "record/kpl.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

using namespace aws::kinesis;

/// What a listing said of a shard.
struct known_shard {
    std::optional<hash_range> range;
    bool closed{false};
};
using known_shards = std::unordered_map<shard_id, known_shard>;

known_shards known_of(const stream_listing& listing) {
    known_shards known;
    known.reserve(listing.shards.size());
    for (const auto& shard : listing.shards) {
        const auto from = hash_key::parse(shard.hash_from);
        const auto to = hash_key::parse(shard.hash_to);
        auto& entry = known[shard.shard];
        if (from && to) entry.range = hash_range{*from, *to};
        entry.closed = shard.closed;
    }
    return known;
}

get_shard_iterator request_for(
    const kinesis_address& stream, const shard_id& shard, const start_position& start
) {
    get_shard_iterator request{.stream = stream.wire_name(), .shard = shard.value(), .type = "TRIM_HORIZON"};
    if (std::holds_alternative<from::latest>(start)) {
        request.type = "LATEST";
    } else if (const auto* moment = std::get_if<from::timestamp>(&start)) {
        if (moment->at <= wall_time{}) return request;
        request.type = "AT_TIMESTAMP";
        request.at = moment->at;
    } else if (const auto* after = std::get_if<from::after>(&start)) {
        request.type = "AT_SEQUENCE_NUMBER";
        request.sequence = after->last.sequence.to_string();
    }
    return request;
}

error cancelled() {
    return {errc::cancelled, retry_advice::never, false, "the request was given up because the source ended"};
}

/// A reply, before it is known what the end of its iterators means.
struct decoded {
    read_reply reply;
    std::size_t record_bytes{0};  // on average; 0: not known
    bool children{false};
    std::uint64_t foreign{0};  // records that were left out
    position first_foreign;    // of the record that held them
};

/// What one read needs to know on the api's thread.
struct read_job {
    shard_id shard;
    kinesis_cursor cursor;
    kpl_opener::filter wanted;
};

struct totals {
    std::atomic<std::uint64_t> aggregates{0};
    std::atomic<std::uint64_t> sub_records{0};
    std::atomic<std::uint64_t> foreign{0};

    void add(const kpl_opener::counters& of) {
        if (of.aggregates == 0) return;
        aggregates += of.aggregates;
        sub_records += of.sub_records;
        foreign += of.foreign;
    }
};

result<decoded> decode(kinesis_reply came, read_job job, totals& count) {
    auto batch = std::make_shared<record_batch>(job.shard);
    thread_local kpl_opener opener;  // keeps its memory
    const auto before = opener.totals();
    std::size_t records = 0;
    decoded out;
    auto reply = decode_records(std::move(came.body), came.format, *batch, [&](const record& one) {
        const auto foreign_before = opener.totals().foreign;
        opener.add(*batch, one, job.wanted);
        const bool first = opener.totals().foreign > foreign_before && foreign_before == before.foreign;
        if (first) out.first_foreign = one.position;
        ++records;
        out.reply.bytes += one.data->size() + one.key->size();
        return true;
    });
    if (!reply)
        return tl::unexpected(kinesis_calls::garbled(get_records::operation, std::move(reply.error())).why);
    const auto& now = opener.totals();
    count.add(
        {now.aggregates - before.aggregates,
         now.sub_records - before.sub_records,
         now.foreign - before.foreign}
    );

    out.foreign = now.foreign - before.foreign;
    out.children = !reply->children.empty();
    out.reply.behind = milliseconds{std::max<std::int64_t>(reply->millis_behind.value_or(0), 0)};
    if (reply->next_iterator && !reply->next_iterator->empty()) {
        job.cursor.record_bytes = next_average(job.cursor.record_bytes, records, batch->bytes());
        if (records > 0) job.cursor.after.reset();  // the first record was at that position or behind it
        job.cursor.iterator = std::move(*reply->next_iterator);
        out.record_bytes = job.cursor.record_bytes;
        out.reply.next = to_text(job.cursor);
    }
    out.reply.records = std::move(batch);
    return out;
}

}  // namespace

struct kinesis_source::impl : std::enable_shared_from_this<impl> {
    impl(host& on, kinesis_address address, std::unique_ptr<aws::api> api, kinesis_source_options given)
        : home(on), stream(std::move(address)), options(given), calls(std::move(api)) {}
    ~impl();

    /// Of iterators and records: readers have a pace of their own.
    [[nodiscard]] kinesis_calls::options reading() const {
        return {.repeatable = true, .wait_when_throttled = false, .timeout = options.request_timeout};
    }

    /// A function for the host that calls `then` with this object, or completes `done` when it is gone.
    template <class T, class F>
    [[nodiscard]] auto here(completion<T> done, F then) {
        return [weak = weak_from_this(), done = std::move(done), then = std::move(then)](auto&&... with) {
            if (const auto me = weak.lock()) return then(*me, done, std::forward<decltype(with)>(with)...);
            done(tl::unexpected(cancelled()));
        };
    }

    /// From the api's thread to the host.
    template <class T>
    void tell(completion<T> done, result<T> how) {
        home.post([done = std::move(done), how = std::move(how)]() mutable { done(std::move(how)); });
    }

    using listing_done = std::function<void(const result<stream_listing>&)>;
    void list(listing_done told);
    void begin_listing();
    void end_listing(const std::vector<listing_done>& all, const result<stream_listing>& how);
    void look_closer(const shard_id& shard, completion<known_shard> done);
    void open_listed(const shard_id& shard, const start_position& start, completion<read_cursor> done);
    void opened(
        const shard_id& shard,
        kinesis_cursor cursor,
        kinesis_outcome<std::pair<get_shard_iterator_reply, wall_time>> came,
        completion<read_cursor> done
    );
    void get(read_job job, read_limits limits, completion<read_reply> done);
    void got(read_job job, kinesis_outcome<kinesis_reply> came, completion<read_reply> done);
    void got_records(const shard_id& shard, decoded what, completion<read_reply> done);
    void warn_of_foreign(const shard_id& shard, std::uint64_t left_out, const position& first_of_them);
    template <class T>
    void refused(const shard_id& shard, error why, completion<T> done);
    [[nodiscard]] error not_listed(const shard_id& shard) const;

    host& home;
    const kinesis_address stream;
    const kinesis_source_options options;
    known_shards known;  // of the latest listing
    std::unordered_set<shard_id> told_foreign;
    std::vector<listing_done> asking;  // for a listing that begins after they asked
    bool listing_now{false};           // one is under way
    mono_time list_after{mono_time::min()};
    std::optional<host::timer> timer;  // until then
    lifetime alive;
    std::atomic<std::size_t> average{0};  // bytes of a record in the latest reply: a new reader's first guess
    totals count;
    kinesis_calls calls;  // the last one: its end completes requests, which use the others
};

error kinesis_source::impl::not_listed(const shard_id& shard) const {
    return {
        errc::not_found,
        retry_advice::never,
        false,
        fmt::format("{} has no shard {}, or no longer", shown(stream), shard.value())};
}

kinesis_source::impl::~impl() {
    if (timer) home.cancel(*timer);
    for (auto& told : asking)
        home.post([told = std::move(told)] { told(tl::unexpected(cancelled())); });
}

// An account may describe 20 streams a second in all. So one listing serves everybody who asked before it
// began: all the shards of a stream that was deleted ask at once, again and again.
void kinesis_source::impl::list(listing_done told) {
    asking.push_back(std::move(told));
    begin_listing();
}

void kinesis_source::impl::begin_listing() {
    if (listing_now || timer || asking.empty()) return;
    if (home.now() < list_after) {
        timer = home.call_at(list_after, alive.guard([this] {
            timer.reset();
            begin_listing();
        }));
        return;
    }
    listing_now = true;
    list_kinesis_stream(
        calls,
        stream,
        options.listing_timeout,
        [this, weak = weak_from_this(), all = std::exchange(asking, {})](result<kinesis_stream> came
        ) mutable {
            result<stream_listing> how = tl::unexpected(error{});
            if (came) {
                how = to_listing(*came);
            } else {
                how = tl::unexpected(std::move(came.error()));
            }
            home.post([weak, all = std::move(all), how = std::move(how)] {
                if (const auto me = weak.lock()) return me->end_listing(all, how);
                for (const auto& told : all)
                    told(tl::unexpected(cancelled()));
            });
        }
    );
}

void kinesis_source::impl::end_listing(
    const std::vector<listing_done>& all, const result<stream_listing>& how
) {
    constexpr auto pause_after_failure = std::chrono::seconds{1};
    listing_now = false;
    if (how) known = known_of(*how);
    if (!how) list_after = home.now() + pause_after_failure;
    for (const auto& told : all)
        told(how);
    begin_listing();
}

/// Lists the stream for what it says of the shard; `not_found` when it is not listed.
void kinesis_source::impl::look_closer(const shard_id& shard, completion<known_shard> done) {
    list(here(std::move(done), [shard](impl& me, const auto& told, const result<stream_listing>& listing) {
        if (listing) {
            const auto found = me.known.find(shard);
            if (found == me.known.end()) return told(tl::unexpected(me.not_listed(shard)));
            return told(found->second);
        }
        auto why = listing.error();
        if (why.code == errc::not_found) {  // the stream, which may come back: not the end of a shard
            why.code = errc::unavailable;
            why.retry = retry_advice::after_delay;
        }
        told(tl::unexpected(std::move(why)));
    }));
}

/// On the api's thread: the service knows no such shard, or no such stream. The listing tells which.
template <class T>
void kinesis_source::impl::refused(const shard_id& shard, error why, completion<T> done) {
    why.code = errc::unavailable;
    why.retry = retry_advice::after_delay;
    home.post(here(std::move(done), [shard, why = std::move(why)](impl& me, const auto& told) {
        me.look_closer(shard, [why, told](const result<known_shard>& listed) {
            told(tl::unexpected(listed ? why : listed.error()));
        });
    }));
}

void kinesis_source::impl::open_listed(
    const shard_id& shard, const start_position& start, completion<read_cursor> done
) {
    kinesis_cursor cursor{.record_bytes = average.load()};
    if (const auto* after = std::get_if<from::after>(&start)) cursor.after = after->last;
    calls.call<get_shard_iterator_reply>(
        request_for(stream, shard, start),
        reading(),
        [this, shard, cursor = std::move(cursor), done = std::move(done)](auto came) {
            opened(shard, cursor, std::move(came), done);
        }
    );
}

void kinesis_source::impl::opened(
    const shard_id& shard,
    kinesis_cursor cursor,
    kinesis_outcome<std::pair<get_shard_iterator_reply, wall_time>> came,
    completion<read_cursor> done
) {
    if (came && !came->first.iterator.empty()) {
        cursor.iterator = std::move(came->first.iterator);
        return tell<read_cursor>(std::move(done), to_text(cursor));
    }
    constexpr auto operation = get_shard_iterator::operation;
    const auto failure =
        came ? kinesis_calls::garbled(
                   operation, {errc::unavailable, retry_advice::after_delay, false, "no iterator"}
               )
             : std::move(came.error());
    auto why = of_shard(failure, stream, shard, true);
    switch (kind_of(failure)) {
        case refusal::shard_end:
            return tell<read_cursor>(std::move(done), to_text({.at_end = true}));
        case refusal::look_closer:
            return refused(shard, std::move(why), std::move(done));
        case refusal::plain:
            return tell<read_cursor>(std::move(done), tl::unexpected(std::move(why)));
    }
}

void kinesis_source::impl::get(read_job job, read_limits limits, completion<read_reply> done) {
    get_records request{.iterator = job.cursor.iterator};
    request.limit = static_cast<std::int64_t>(records_to_ask(job.cursor.record_bytes, limits));
    if (stream.by_arn()) request.stream_arn = stream.stream;
    calls.send(
        std::move(request),
        reading(),
        [this, job = std::move(job), done = std::move(done)](kinesis_outcome<kinesis_reply> came) mutable {
            got(std::move(job), std::move(came), std::move(done));
        }
    );
}

void kinesis_source::impl::got(
    read_job job, kinesis_outcome<kinesis_reply> came, completion<read_reply> done
) {
    const auto shard = job.shard;
    if (came) {
        auto read = decode(std::move(*came), std::move(job), count);
        if (!read) return tell<read_reply>(std::move(done), tl::unexpected(std::move(read.error())));
        if (read->record_bytes > 0) average = read->record_bytes;
        if (read->foreign > 0) {
            home.post(
                [weak = weak_from_this(), shard, left_out = read->foreign, begins = read->first_foreign] {
                    if (const auto me = weak.lock()) me->warn_of_foreign(shard, left_out, begins);
                }
            );
        }
        return got_records(shard, std::move(*read), std::move(done));
    }
    auto why = of_shard(came.error(), stream, shard, false);
    if (kind_of(came.error()) == refusal::look_closer) return refused(shard, std::move(why), std::move(done));
    tell<read_reply>(std::move(done), tl::unexpected(std::move(why)));
}

// The producer library sends such records again, to their shard. Others that aggregate do not.
void kinesis_source::impl::warn_of_foreign(
    const shard_id& shard, std::uint64_t left_out, const position& first_of_them
) {
    if (!told_foreign.insert(shard).second) return;
    home.log().write(
        log_level::warning,
        "kinesis.foreign_records",
        {{"shard", shard.value()},
         {"position", first_of_them.sequence.to_string()},
         {"detail",
          fmt::format(
              "{} records of an aggregate were left out, for the hashes of their keys are of other shards, "
              "and so it may be with later ones; that is right for aggregates of the Kinesis Producer "
              "Library, which sends them there again, but a producer that aggregates all keys under one must "
              "stop that, or they are not processed",
              left_out
          )}}
    );
}

void kinesis_source::impl::got_records(const shard_id& shard, decoded what, completion<read_reply> done) {
    if (what.reply.next || what.children) return tell<read_reply>(std::move(done), std::move(what.reply));
    // No iterator, and no children: the end only if the stream says so, too.
    home.post(here(std::move(done), [shard, reply = std::move(what.reply)](impl& me, const auto& told) {
        me.look_closer(shard, [&stream = me.stream, shard, reply, told](const result<known_shard>& listed) {
            if (!listed) return told(tl::unexpected(listed.error()));
            if (listed->closed) return told(reply);
            told(fail(
                errc::unavailable,
                fmt::format(
                    "shard {} of {} gave no further iterator though it is open; it is read again",
                    shard.value(),
                    shown(stream)
                ),
                retry_advice::after_delay
            ));
        });
    }));
}

kinesis_source::kinesis_source(
    host& home, kinesis_address stream, std::unique_ptr<aws::api> api, kinesis_source_options options
)
    : impl_(std::make_shared<impl>(home, std::move(stream), std::move(api), options)) {}

kinesis_source::~kinesis_source() = default;

void kinesis_source::list_shards(completion<stream_listing> done) {
    impl_->list([done = std::move(done)](const result<stream_listing>& how) { done(how); });
}

void kinesis_source::open(shard_id shard, start_position start, completion<read_cursor> done) {
    if (impl_->known.contains(shard)) return impl_->open_listed(shard, start, std::move(done));
    // Its range is not known yet, by which the sub-records of aggregates are told apart.
    auto listed = impl_->here(std::move(done), [shard, start](impl& me, const auto& told, const auto& found) {
        if (!found) return told(tl::unexpected(found.error()));
        me.open_listed(shard, start, told);
    });
    impl_->look_closer(shard, std::move(listed));
}

void kinesis_source::read(
    shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done
) {
    auto parsed = parse_kinesis_cursor(cursor.value());
    const auto known = impl_->known.find(shard);
    if (!parsed || known == impl_->known.end()) {
        auto why = parsed ? impl_->not_listed(shard) : std::move(parsed.error());
        return impl_->tell<read_reply>(std::move(done), tl::unexpected(std::move(why)));
    }
    if (parsed->at_end) {
        return impl_->tell<read_reply>(
            std::move(done), read_reply{std::make_shared<const record_batch>(std::move(shard)), std::nullopt}
        );
    }
    kpl_opener::filter wanted{known->second.range, parsed->after};
    impl_->get({std::move(shard), std::move(*parsed), wanted}, limits, std::move(done));
}

read_rates kinesis_source::allowed() const {
    return {.reads_per_second = 5, .bytes_per_second = 2 << 20};
}

void kinesis_source::watch(std::function<void()> /*changed*/) {}

unpacked_counters kinesis_source::unpacked() const {
    const auto& count = impl_->count;
    return {count.aggregates, count.sub_records, count.foreign};
}

}  // namespace millrace
