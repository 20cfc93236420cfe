/// A stream that is filled at a steady rate on a thread of its own, and whose shards are split, merged and
/// scaled meanwhile. It goes to the server itself, so each put is answered; each key is once in a call, and
/// one call follows the other, so the numbers of a key lie in the stream in their order.
#pragma once

#include "contract/kinesis_streams.hpp"
#include "kinesis_group_watch.hpp"

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace millrace::e2e {

/// An account of kinesis-local.
inline const std::string kinesis_account = "123456789012";

struct load_options {
    std::uint32_t shards{4};
    std::uint32_t shards_max{8};  ///< Open at the same time.
    std::size_t keys{120};
    std::size_t records_of_a_call{20};
    std::chrono::milliseconds between_calls{100};
};

class kinesis_load {
public:
    /// Makes the stream.
    kinesis_load(kinesis_address where, load_options options);
    ~kinesis_load();
    kinesis_load(const kinesis_load&) = delete;
    kinesis_load& operator=(const kinesis_load&) = delete;

    [[nodiscard]] std::string url(std::uint16_t port) const;

    /// Tells the watch of each record.
    void start(group_watch& watch);
    void stop();

    /// So many more, at once; not while the load runs.
    void put(group_watch& watch, std::size_t calls);

    /// Why it ended early; empty: it did not.
    [[nodiscard]] std::string failure() const { return failed_ ? failure_ : std::string(); }

    /// Each tells the watch of the new shards; false: there were too few or too many.
    bool split(group_watch& watch, std::mt19937& random);
    bool merge(group_watch& watch, std::mt19937& random);
    bool scale(group_watch& watch, std::mt19937& random);

    [[nodiscard]] std::vector<shard_facts> shards();

private:
    void fill(group_watch& watch);
    bool call(group_watch& watch);
    void tell(group_watch& watch);
    [[nodiscard]] std::vector<shard_facts> open_shards();

    kinesis_address where_;
    load_options options_;
    kinesis_admin changes_;
    kinesis_admin puts_;
    std::vector<std::uint64_t> numbers_;  // of each key
    std::size_t next_key_{0};
    std::string failure_;
    std::atomic<bool> failed_{false};
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace millrace::e2e
