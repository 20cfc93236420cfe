/// An in-memory stream with shards, stricter than any real one.
///
/// `fake_stream` is the service, shared by the world; each host reads it through a `fake_record_source` of
/// its own, over a link that fails.
#pragma once

#include "link.hpp"
#include "port/record_source.hpp"

#include <millrace/event.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::sim {

struct stream_options {
    std::size_t shards{1};
    std::uint64_t first_sequence{9'990};  ///< Soon has one digit more, so that comparing as text goes wrong.
    std::uint32_t aggregate{0};           ///< Per cent of records that share the sequence number before them.
    nanoseconds late_visible_max{0};      ///< A record is visible to readers within so long.
    nanoseconds cursor_life{std::chrono::minutes{5}};
    std::uint32_t partial_page{0};  ///< Per cent of reads that return fewer records than there are.
    std::uint32_t empty_page{0};    ///< Per cent of reads that return none of those there are.
    std::uint32_t hint_lost{0};     ///< Per cent of change signals that never come.
    std::uint32_t denials{0};       ///< Per cent of opens and reads that deny a shard that is there.
    std::uint32_t old_listings{0};  ///< Per cent of listings that show the shards of a moment ago.
    nanoseconds listing_age_max{std::chrono::seconds{2}};  ///< How old those are at most.
    bool trimmed_is_error{true};  ///< Otherwise a trimmed position silently resolves to the horizon.
    std::optional<milliseconds> retention;
    read_rates rates;  ///< Of each shard, over all its readers, by Kinesis's rules.
};

/// A record as the stream keeps it.
struct stored_record {
    millrace::position position;
    std::optional<std::string> key;
    std::optional<std::string> data;
    std::vector<header> headers;
    world_time arrived{0};
    world_time visible{0};
};

struct stored_shard {
    listed_shard listed;
    std::uint64_t hash_from{0};  ///< The upper half of the 128-bit hash; inclusive.
    std::uint64_t hash_to{0};
    std::vector<stored_record> records;
    std::size_t trimmed{0};  ///< So many records at the front can no longer be read.
    bool expired{false};     ///< No longer listed.
    world_time made{0};
    std::optional<world_time> closed_at;
    std::optional<world_time> expired_at;

    std::deque<world_time> reads;  ///< Within the last second.
    world_time paid_at{0};         ///< Replies so far are paid for then.
};

/// Where a key falls; the same on every platform.
[[nodiscard]] std::uint64_t hash_of(std::string_view key);

class fake_stream {
public:
    using observer = std::function<void(const stored_shard& shard, const stored_record& record)>;

    fake_stream(scheduler& world, rng& random, stream_options options = {});

    /// Keyless records go to a shard of the stream's choice.
    position append(
        const std::optional<std::string>& key,
        const std::optional<std::string>& data,
        std::vector<header> headers = {}
    );

    /// Closes the shard; its two children cover its hashes. `invalid_argument` when it is closed or too
    /// narrow.
    result<void> split(const shard_id& shard, std::optional<std::uint64_t> at = std::nullopt);

    /// Closes both; their child covers both. They must be neighbours.
    result<void> merge(const shard_id& left, const shard_id& right);

    /// The first `records` of the shard are gone. A closed shard without records may be taken off the list.
    void trim(const shard_id& shard, std::size_t records);
    void expire(const shard_id& shard);

    [[nodiscard]] const std::vector<std::unique_ptr<stored_shard>>& shards() const noexcept {
        return shards_;
    }
    [[nodiscard]] const stored_shard* find(const shard_id& shard) const;
    [[nodiscard]] const stream_options& options() const noexcept { return options_; }
    void observe(observer what) { observer_ = std::move(what); }

    /// Reads of these shards fail, whatever the link does.
    std::set<shard_id> sick;

    /// From now on it answers every request, and truly.
    void heal();

    // What the service answers.
    [[nodiscard]] result<stream_listing> list() const;
    [[nodiscard]] result<read_cursor> open(const shard_id& shard, const start_position& start) const;
    [[nodiscard]] result<read_reply> read(
        const shard_id& shard, const read_cursor& cursor, const read_limits& limits
    );

    /// Calls `changed` in the world when a record becomes visible, until the token is gone.
    void watch(std::weak_ptr<const char> token, std::function<void()> changed);

private:
    stored_shard& at(const shard_id& shard);
    void close(const shard_id& shard);
    [[nodiscard]] bool denies() const;
    stored_shard& add_shard(std::vector<shard_id> parents, std::uint64_t from, std::uint64_t to);
    [[nodiscard]] std::size_t visible_end(const stored_shard& shard) const;
    [[nodiscard]] read_cursor cursor_at(std::size_t index) const;
    [[nodiscard]] result<void> take_turn(const shard_id& shard);
    void signal(world_time when);

    struct watcher {
        std::weak_ptr<const char> token;
        std::function<void()> changed;
    };

    scheduler& world_;
    rng& random_;
    stream_options options_;
    std::vector<std::unique_ptr<stored_shard>> shards_;
    std::uint64_t sequence_;
    std::uint64_t sub_sequence_{0};
    const stored_shard* last_appended_{nullptr};
    observer observer_;
    std::vector<watcher> watchers_;
};

class fake_record_source final : public record_source {
public:
    fake_record_source(fake_stream& stream, scheduler& world, host& client, rng& random, const faults& plan)
        : stream_(stream), link_(world, client, random, plan, "the stream") {}

    void list_shards(completion<stream_listing> done) override;
    void open(shard_id shard, start_position start, completion<read_cursor> done) override;
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override;
    [[nodiscard]] read_rates allowed() const override { return stream_.options().rates; }
    void watch(std::function<void()> changed) override;

    /// Requests by name: `list_shards`, `open`, `read`.
    void force(std::string_view request, fate what) { link_.force(request, what); }

private:
    fake_stream& stream_;
    link link_;
    std::shared_ptr<const char> watching_;
};

}  // namespace millrace::sim
