/// Streams, shards and records as the Kinesis API shows them, and nothing of HTTP.
///
/// Stricter than the service where that finds faults: limits are kept to the letter, and what the service
/// would overlook is refused. Time comes from a clock that the owner sets. Not thread-safe.
#pragma once

#include "record/hash_key.hpp"
#include "support/kinesis_fake/shard_pace.hpp"

#include <millrace/time.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace millrace::kinesis_fake {

using namespace std::chrono_literals;

/// What the service says in place of a reply.
struct refusal {
    std::string type;  ///< `ExpiredIteratorException` and so on.
    std::string message;
    int status{400};

    bool operator==(const refusal&) const = default;
};
template <class T>
using answer = tl::expected<T, refusal>;

/// As the service has them; zero lifts a rate.
struct model_limits {
    milliseconds iterator_life{5min};
    milliseconds token_life{5min};
    std::size_t page_shards{1'000};
    pace_limits reads{5, 2 << 20};
    pace_limits iterators{5, 0};
    pace_limits writes{1'000, 1 << 20};
    std::size_t reply_bytes_max{10 << 20};
    std::size_t record_bytes_max{1 << 20};
    std::size_t put_records_max{500};
    std::size_t put_bytes_max{5 << 20};
    bool end_with_records{true};  ///< The reply with a closed shard's last record has no next iterator.
};

struct stored_record {
    std::uint64_t index{0};  ///< Within the stream; see `sequence_parts`.
    wall_time arrived;
    wall_time visible;  ///< Not read before, nor is any record behind it.
    std::string key;
    std::string data;
};

struct stored_shard {
    std::uint32_t number{0};
    std::string id;
    hash_range range;
    std::optional<std::uint32_t> parent;
    std::optional<std::uint32_t> other_parent;  ///< Of a merge.
    std::uint64_t born{0};                      ///< Second; no two shards of a model share one.
    std::optional<wall_time> closed;
    std::deque<stored_record> records;
    std::uint64_t trimmed{0};  ///< So many records before the first are gone.
    bool listed{true};
    pace reads;
    pace iterators;
    pace writes;

    [[nodiscard]] std::uint64_t end() const { return trimmed + records.size(); }
};

struct stored_stream {
    std::string name;
    wall_time created;
    milliseconds retention{24h};
    std::vector<stored_shard> shards;
    std::uint64_t next_index{1};
};

struct shard_page {
    std::vector<const stored_shard*> shards;
    std::optional<std::string> token;
};

struct read_page {
    std::vector<const stored_record*> records;
    const stored_shard* shard{nullptr};
    std::optional<std::string> next;
    std::vector<const stored_shard*> children;  ///< Only without `next`.
    milliseconds behind{0};
};

/// What a read may do differently from the plainest way; all of it happens on the service.
struct read_quirks {
    bool empty{false};      ///< No record although there are some.
    bool one_only{false};   ///< One record although there are more.
    bool childless{false};  ///< The end of a shard without its children.
};

/// Where an iterator begins: the API's types by name.
struct iterator_place {
    std::string type;
    std::optional<std::string> sequence;
    std::optional<wall_time> timestamp;
};

struct written {
    std::string shard;
    std::string sequence;
};

class stream_model {
public:
    using clock = std::function<wall_time()>;

    explicit stream_model(clock now, model_limits limits = {});

    model_limits limits;
    milliseconds late_visible{0};  ///< Records that come from now on can be read only after so long.

    answer<void> create(const std::string& stream, std::uint32_t shards);
    answer<void> remove(const std::string& stream);
    [[nodiscard]] answer<const stored_stream*> find(const std::string& stream) const;

    /// By name or, for later pages, by token.
    [[nodiscard]] answer<shard_page> list(const std::string& stream, std::size_t page_max);
    [[nodiscard]] answer<shard_page> list_on(const std::string& token, std::size_t page_max);

    answer<std::string> iterator(
        const std::string& stream, const std::string& shard, const iterator_place& where
    );
    answer<read_page> read(
        const std::string& iterator, std::size_t records_max, const read_quirks& quirks = {}
    );
    /// The shard of an iterator, whether it is still good or not.
    [[nodiscard]] std::optional<std::string> shard_of_iterator(const std::string& iterator) const;

    /// One record within the limits of its shard. `explicit_hash`: a decimal in place of the key's hash.
    answer<written> put(
        const std::string& stream,
        const std::string& key,
        std::string data,
        const std::optional<std::string>& explicit_hash = std::nullopt
    );

    answer<void> split(const std::string& stream, const std::string& shard, const hash_key& at);
    answer<void> merge(const std::string& stream, const std::string& shard, const std::string& neighbour);
    answer<void> resize(const std::string& stream, std::uint32_t shards);

    // For tests, beyond what the service lets its callers do. They throw for what is not there.

    /// Without limits; `arrived` in place of now. Records of a shard must come in order of arrival.
    written append(
        const std::string& stream,
        const std::string& key,
        std::string data,
        std::optional<wall_time> arrived = std::nullopt
    );
    /// Into a shard, whatever the hash of the key.
    written append_to(const std::string& stream, const std::string& shard, std::string key, std::string data);
    void split_in_middle(const std::string& stream, const std::string& shard);
    void trim(const std::string& stream, const std::string& shard, std::size_t records);
    /// The shard is gone from listings and can no longer be read, as after its retention.
    void forget(const std::string& stream, const std::string& shard);
    [[nodiscard]] stored_shard& shard_at(const std::string& stream, const std::string& shard);
    [[nodiscard]] static std::string sequence_of(const stored_shard& shard, const stored_record& record);
    [[nodiscard]] static std::string first_sequence(const stored_shard& shard);
    [[nodiscard]] static std::string last_sequence(const stored_shard& shard);

private:
    answer<stored_stream*> stream_named(const std::string& stream);
    static answer<stored_shard*> shard_named(stored_stream& in, const std::string& shard);
    stored_shard& add_shard(stored_stream& to, const hash_range& range);
    void split_shard(stored_stream& in, std::uint32_t shard, const hash_key& at);
    void merge_shards(stored_stream& in, std::uint32_t left, std::uint32_t right);
    written store(stored_stream& in, stored_shard& to, std::string key, std::string data, wall_time arrived);
    void expire(stored_stream& in);
    shard_page page(const stored_stream& of, std::uint32_t from, std::size_t page_max);

    answer<std::uint64_t> index_of(
        const stored_stream& in, const stored_shard& shard, const iterator_place& where
    ) const;
    static answer<std::uint64_t> index_of_sequence(
        const stored_stream& in, const stored_shard& shard, const iterator_place& where
    );
    [[nodiscard]] std::string make_iterator(
        const stored_stream& in, const stored_shard& shard, std::uint64_t index
    );
    [[nodiscard]] static std::vector<const stored_shard*> children_of(
        const stored_stream& in, const stored_shard& shard
    );

    clock now_;
    std::map<std::string, stored_stream, std::less<>> streams_;
    std::uint64_t last_birth_{0};
    wall_time last_creation_;
    std::uint64_t serial_{0};  // makes each iterator and token another text
};

/// The number of an account that no one has.
inline constexpr std::string_view account = "000000000000";

/// `shardId-000000000007`.
[[nodiscard]] std::string shard_name(std::uint32_t number);

/// As the service hashes keys: MD5 as a big-endian number.
[[nodiscard]] hash_key hash_of(std::string_view key);

/// A decimal below 2^128 without needless zeros.
[[nodiscard]] bool is_hash(std::string_view decimal);

}  // namespace millrace::kinesis_fake
