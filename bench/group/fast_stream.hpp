/// A stream of the Kinesis API that costs next to nothing to serve: the same records from pre-rendered
/// replies.
///
/// Knows no limits, checks no signature, speaks CBOR over HTTP/1.1 on a free port of this machine. Each
/// connection has a thread of this process, so what the server costs is not counted to the program that is
/// measured, which is another process. `visible` and `reads` may be used from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace millrace::bench {

struct fast_stream_options {
    std::uint32_t shards{8};
    std::uint64_t records{125'000};  ///< Of each shard.
    std::size_t record_bytes{1'000};
    std::size_t reply_records{1'000};  ///< At most, whatever is asked for.
};

class fast_stream {
public:
    explicit fast_stream(fast_stream_options options);
    ~fast_stream();
    fast_stream(const fast_stream&) = delete;
    fast_stream& operator=(const fast_stream&) = delete;

    [[nodiscard]] std::string endpoint() const;
    [[nodiscard]] std::string url() const;  ///< `kinesis://us-east-1/bench?endpoint=…`

    /// Calls of GetRecords so far.
    [[nodiscard]] std::uint64_t reads() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::bench
