/// Lists a stream: its summary, then all pages of its shards.
///
/// A later page is asked for by its token alone; a token that has expired begins the listing anew, and a part
/// of a list is never given out. Thread-safe; told on the api's thread.
#pragma once

#include "kinesis_calls.hpp"
#include "kinesis_url.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>

namespace millrace {

struct kinesis_stream {
    aws::kinesis::stream_summary summary;
    std::vector<aws::kinesis::shard> shards;
    wall_time now;  ///< By the service's clock, rounded down to a second.
};

/// `calls` must outlive the outcome. `not_found` when there is no such stream, `unavailable` while it is
/// being made or deleted. The time-out is that of each request, its retries included.
void list_kinesis_stream(
    kinesis_calls& calls,
    const kinesis_address& stream,
    milliseconds timeout,
    std::function<void(result<kinesis_stream>)> done
);

/// As the port has it; the identity is its ARN and the moment of its creation.
[[nodiscard]] stream_listing to_listing(const kinesis_stream& stream);

}  // namespace millrace
