#include "kinesis_listing.hpp"

#include "kinesis_error.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

using namespace aws::kinesis;

constexpr int pages_max = 1'000;  // of 1,000 shards each
constexpr int restarts_max = 3;

/// One listing under way; its callbacks keep it alive.
class listing : public std::enable_shared_from_this<listing> {
public:
    listing(
        kinesis_calls& calls,
        kinesis_address stream,
        milliseconds timeout,
        std::function<void(result<kinesis_stream>)> done
    )
        : calls_(calls), stream_(std::move(stream)), how_{.timeout = timeout}, done_(std::move(done)) {}

    void describe() {
        calls_.call<describe_stream_summary_reply>(
            describe_stream_summary{stream_.wire_name()},
            how_,
            [me = shared_from_this()](auto came) {
                if (!came) return me->failed(came.error());
                me->described(std::move(came->first.summary), came->second);
            }
        );
    }

private:
    void described(stream_summary summary, wall_time date) {
        const bool is_there = summary.status == "ACTIVE" || summary.status == "UPDATING";
        if (!is_there || !summary.created) {
            return tell(fail(
                errc::unavailable,
                fmt::format(
                    "{} cannot be read: its status is {}; it is tried again",
                    shown(stream_),
                    summary.status.empty() ? "not told" : summary.status
                ),
                retry_advice::after_delay
            ));
        }
        found_.summary = std::move(summary);
        found_.now = std::chrono::floor<std::chrono::seconds>(date);
        first_page();
    }

    void first_page() {
        found_.shards.clear();
        pages_ = 0;
        page({.stream = stream_.wire_name()});
    }

    void page(list_shards request) {
        calls_.call<list_shards_reply>(std::move(request), how_, [me = shared_from_this()](auto came) {
            if (came) return me->listed(std::move(came->first));
            // ExpiredNextToken: what was listed may have changed meanwhile.
            const bool expired = came.error().why.code == errc::expired_cursor;
            if (expired && ++me->restarts_ <= restarts_max) return me->first_page();
            me->failed(came.error());
        });
    }

    void listed(list_shards_reply reply) {
        for (auto& shard : reply.shards)
            found_.shards.push_back(std::move(shard));
        const bool more = reply.next_token && !reply.next_token->empty();
        if (more && ++pages_ < pages_max) return page({.next_token = std::move(*reply.next_token)});
        if (more || found_.shards.empty()) {
            return tell(fail(
                errc::unavailable,
                fmt::format(
                    "{} lists {}; it is tried again",
                    shown(stream_),
                    more ? fmt::format("more than {} pages of shards", pages_max) : "no shard"
                ),
                retry_advice::after_delay
            ));
        }
        tell(std::move(found_));
    }

    void failed(const aws::api_failure& what) { tell(tl::unexpected(of_stream(what, stream_))); }
    void tell(result<kinesis_stream> how) { std::exchange(done_, nullptr)(std::move(how)); }

    kinesis_calls& calls_;
    const kinesis_address stream_;
    const kinesis_calls::options how_;
    std::function<void(result<kinesis_stream>)> done_;
    kinesis_stream found_;
    int pages_{0};
    int restarts_{0};
};

}  // namespace

void list_kinesis_stream(
    kinesis_calls& calls,
    const kinesis_address& stream,
    milliseconds timeout,
    std::function<void(result<kinesis_stream>)> done
) {
    std::make_shared<listing>(calls, stream, timeout, std::move(done))->describe();
}

stream_listing to_listing(const kinesis_stream& stream) {
    stream_listing out;
    const auto& summary = stream.summary;
    // Read by `relation_of`. Some emulators give no ARN.
    const auto& place = summary.arn.empty() ? summary.name : summary.arn;
    out.identity = fmt::format("{} of {}", place, summary.created->time_since_epoch().count());
    out.now = stream.now;
    if (summary.retention_hours) out.retention = std::chrono::hours{*summary.retention_hours};
    out.shards.reserve(stream.shards.size());
    for (const auto& from : stream.shards) {
        listed_shard shard;
        shard.shard = shard_id{from.id};
        for (const auto* parent : {&from.parent, &from.adjacent_parent})
            if (*parent && !(*parent)->empty()) shard.parents.emplace_back(**parent);
        shard.closed = from.sequences.ending && !from.sequences.ending->empty();
        shard.hash_from = from.hashes.from;
        shard.hash_to = from.hashes.to;
        out.shards.push_back(std::move(shard));
    }
    return out;
}

}  // namespace millrace
