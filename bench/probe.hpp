/// Ceiling probes: plain SQLite doing the same reads, writes and deletes in batches of the same size.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

/// Rows of one read, one append and one delete, as the relay's and the consumer's defaults have them.
struct probe_batches {
    int fetch_rows{8'000};
    int publish_rows{2'000};
    int delete_rows{1'000};
    int read_records{10'000};
};

/// Reads the outbox, appends to the stream's record table, deletes. Returns the rows moved.
std::uint64_t probe_drain(
    const std::string& outbox, const std::string& streams, const probe_batches& batches
);

/// Reads every record of every shard and copies its bytes. Returns the records read.
std::uint64_t probe_consume(const std::string& streams, const probe_batches& batches);

}  // namespace millrace::bench
