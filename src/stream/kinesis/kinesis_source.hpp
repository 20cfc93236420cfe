/// Reads one stream of Kinesis: `record_source` over an `aws::api`.
///
/// Replies are decoded, and KPL aggregates opened, on the api's thread; completions come on the host. A reply
/// cannot be limited in bytes, only in records: how many are asked for follows from the size of those before,
/// so a reply may pass `read_limits::bytes_max`, up to the 10 MiB that the service sends at once. A position
/// is (sequence number, place in the aggregate); sub-records outside the shard's hash range are left out.
///
/// A shard has ended when its iterator is null and the reply names its children, or the stream lists it as
/// closed. Lives on its host and is only touched there, `unpacked` from any thread. Completions after its end
/// are `cancelled`.
#pragma once

#include "api.hpp"
#include "kinesis_url.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace millrace {

struct kinesis_source_options {
    /// Of one request for an iterator or for records, its retries included.
    milliseconds request_timeout{15'000};

    /// Of one request of a listing, likewise: room for one attempt that hangs, so that it is soon said.
    milliseconds listing_timeout{6'000};
};

class kinesis_source final : public record_source {
public:
    /// The address names a stream. The host must outlive the source.
    kinesis_source(
        host& home, kinesis_address stream, std::unique_ptr<aws::api> api, kinesis_source_options options = {}
    );
    ~kinesis_source() override;

    void list_shards(completion<stream_listing> done) override;
    void open(shard_id shard, start_position start, completion<read_cursor> done) override;
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override;

    /// 5 reads and 2 MiB a second of each shard.
    [[nodiscard]] read_rates allowed() const override;

    /// Kinesis tells nothing by itself: `changed` is never called.
    void watch(std::function<void()> changed) override;

    [[nodiscard]] unpacked_counters unpacked() const override;

private:
    struct impl;
    std::shared_ptr<impl> impl_;  // weakly held by what is under way
};

}  // namespace millrace
