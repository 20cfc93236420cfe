/// Ceiling probe: libcurl and a reader of CBOR alone, on one thread, with the same replies.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

/// Reads every shard to its end, one reply of each in turn, and copies the data out. Returns the records
/// read.
std::uint64_t probe_kinesis(const std::string& endpoint, std::uint32_t shards);

}  // namespace millrace::bench
