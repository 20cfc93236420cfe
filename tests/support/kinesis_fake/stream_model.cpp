#include "support/kinesis_fake/stream_model.hpp"

#include "support/kinesis_fake/sequence.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace millrace::kinesis_fake {

namespace {

tl::unexpected<refusal> refuse(std::string type, std::string message) {
    return tl::unexpected(refusal{std::move(type), std::move(message)});
}

tl::unexpected<refusal> no_stream(const std::string& stream) {
    return refuse(
        "ResourceNotFoundException", fmt::format("Stream {} under account {} not found.", stream, account)
    );
}

std::uint64_t second_of(wall_time when) {
    return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(when).time_since_epoch().count(
    ));
}

template <class T>
T must(answer<T> outcome) {
    if (!outcome) throw std::invalid_argument(outcome.error().type + ": " + outcome.error().message);
    return *outcome;
}

bool is_open(const stored_shard& shard) {
    return !shard.closed;
}

std::vector<stored_shard*> open_shards(stored_stream& in) {
    std::vector<stored_shard*> open;
    for (auto& shard : in.shards) {
        if (is_open(shard)) open.push_back(&shard);
    }
    std::ranges::sort(open, {}, [](const stored_shard* s) { return s->range.from; });
    return open;
}

}  // namespace

std::string shard_name(std::uint32_t number) {
    return fmt::format("shardId-{:012}", number);
}

hash_key hash_of(std::string_view key) {
    std::array<unsigned char, hash_key::bytes> digest{};
    if (EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_md5(), nullptr) != 1)
        throw std::runtime_error("MD5 failed");
    return hash_key::from_digest(digest);
}

bool is_hash(std::string_view decimal) {
    const auto parsed = hash_key::parse(decimal);
    return parsed && parsed->to_string() == decimal;
}

stream_model::stream_model(clock now, model_limits with) : limits(with), now_(std::move(now)) {}

answer<void> stream_model::create(const std::string& stream, std::uint32_t shards) {
    if (streams_.contains(stream)) {
        return refuse(
            "ResourceInUseException",
            fmt::format("Stream {} under account {} already exists.", stream, account)
        );
    }
    if (shards == 0) return refuse("ValidationException", "ShardCount must be at least 1");
    auto& made = streams_[stream];
    made.name = stream;
    // No two streams share a second, as no two lives of one name do on the service.
    last_creation_ = std::max(now_(), last_creation_ + 1s);
    made.created = last_creation_;
    for (const auto& range : split_evenly(shards))
        add_shard(made, range);
    return {};
}

answer<void> stream_model::remove(const std::string& stream) {
    if (streams_.erase(stream) == 0) return no_stream(stream);
    return {};
}

answer<stored_stream*> stream_model::stream_named(const std::string& stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return no_stream(stream);
    expire(found->second);
    return &found->second;
}

answer<const stored_stream*> stream_model::find(const std::string& stream) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return no_stream(stream);
    return &found->second;
}

answer<stored_shard*> stream_model::shard_named(stored_stream& in, const std::string& shard) {
    for (auto& known : in.shards) {
        if (known.id == shard && known.listed) return &known;
    }
    return refuse(
        "ResourceNotFoundException",
        fmt::format("Shard {} in stream {} under account {} does not exist", shard, in.name, account)
    );
}

stored_shard& stream_model::add_shard(stored_stream& to, const hash_range& range) {
    stored_shard made;
    made.number = static_cast<std::uint32_t>(to.shards.size());
    made.id = shard_name(made.number);
    made.range = range;
    last_birth_ = std::max(second_of(now_()), last_birth_ + 1);
    made.born = last_birth_;
    to.shards.push_back(std::move(made));
    return to.shards.back();
}

/// What is older than the retention is gone, and so is a closed shard that has nothing younger.
void stream_model::expire(stored_stream& in) {
    const auto horizon = now_() - in.retention;
    for (auto& shard : in.shards) {
        while (!shard.records.empty() && shard.records.front().arrived < horizon) {
            shard.records.pop_front();
            ++shard.trimmed;
        }
        if (shard.closed && *shard.closed < horizon && shard.records.empty()) shard.listed = false;
    }
}

answer<void> stream_model::split(const std::string& stream, const std::string& shard, const hash_key& at) {
    const auto in = stream_named(stream);
    if (!in) return tl::unexpected(in.error());
    const auto which = shard_named(**in, shard);
    if (!which) return tl::unexpected(which.error());
    if (!is_open(**which)) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "Shard {} in stream {} under account {} has already been merged or split, and thus is "
                "not eligible for merging or splitting.",
                shard,
                stream,
                account
            )
        );
    }
    if (!split_at((*which)->range, at))
        return refuse("InvalidArgumentException", "NewStartingHashKey is not inside the shard");
    split_shard(**in, (*which)->number, at);
    return {};
}

answer<void> stream_model::merge(
    const std::string& stream, const std::string& shard, const std::string& neighbour
) {
    const auto in = stream_named(stream);
    if (!in) return tl::unexpected(in.error());
    const auto left = shard_named(**in, shard);
    if (!left) return tl::unexpected(left.error());
    const auto right = shard_named(**in, neighbour);
    if (!right) return tl::unexpected(right.error());
    if (!is_open(**left) || !is_open(**right) || !join((*left)->range, (*right)->range)) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "Shards {} and {} in stream {} under account {} are not an adjacent pair of shards eligible "
                "for "
                "merging",
                shard,
                neighbour,
                stream,
                account
            )
        );
    }
    merge_shards(**in, (*left)->number, (*right)->number);
    return {};
}

void stream_model::split_shard(stored_stream& in, std::uint32_t shard, const hash_key& at) {
    const auto halves = *split_at(in.shards[shard].range, at);
    in.shards[shard].closed = now_();
    add_shard(in, halves.first).parent = shard;
    add_shard(in, halves.second).parent = shard;
}

void stream_model::merge_shards(stored_stream& in, std::uint32_t left, std::uint32_t right) {
    const auto whole = *join(in.shards[left].range, in.shards[right].range);
    in.shards[left].closed = in.shards[right].closed = now_();
    auto& child = add_shard(in, whole);
    child.parent = left;
    child.other_parent = right;
}

/// By splits at the new bounds, then by merges of what lies between two of them.
answer<void> stream_model::resize(const std::string& stream, std::uint32_t shards) {
    const auto in = stream_named(stream);
    if (!in) return tl::unexpected(in.error());
    const auto open = open_shards(**in).size();
    if (shards == 0 || shards > 2 * open || 2 * shards < open) {
        return refuse(
            "InvalidArgumentException",
            fmt::format(
                "UpdateShardCount cannot scale from {} to {} shards: at most twice, at least half",
                open,
                shards
            )
        );
    }
    const auto wanted = split_evenly(shards);
    for (const auto& range : wanted) {
        for (const auto* shard : open_shards(**in)) {
            if (shard->range.from >= range.from || shard->range.to < range.from) continue;
            split_shard(**in, shard->number, range.from);
            break;  // the pointers are gone
        }
    }
    for (const auto& range : wanted) {
        for (bool merged = true; merged;) {
            merged = false;
            const auto pieces = open_shards(**in);
            for (std::size_t i = 0; i + 1 < pieces.size() && !merged; ++i) {
                if (!range.contains(pieces[i]->range.from) || !range.contains(pieces[i + 1]->range.from))
                    continue;
                merge_shards(**in, pieces[i]->number, pieces[i + 1]->number);
                merged = true;
            }
        }
    }
    return {};
}

answer<written> stream_model::put(
    const std::string& stream,
    const std::string& key,
    std::string data,
    const std::optional<std::string>& explicit_hash
) {
    const auto in = stream_named(stream);
    if (!in) return tl::unexpected(in.error());
    auto hash = hash_of(key);
    if (explicit_hash) {
        if (!is_hash(*explicit_hash)) return refuse("InvalidArgumentException", "Invalid ExplicitHashKey");
        hash = *hash_key::parse(*explicit_hash);
    }
    for (auto* shard : open_shards(**in)) {
        if (!shard->range.contains(hash)) continue;
        const auto bytes = key.size() + data.size();
        if (!shard->writes.allows(limits.writes, now_())) {
            return refuse(
                "ProvisionedThroughputExceededException",
                fmt::format(
                    "Rate exceeded for shard {} in stream {} under account {}.", shard->id, stream, account
                )
            );
        }
        shard->writes.serve(limits.writes, now_(), bytes);
        return store(**in, *shard, key, std::move(data), now_());
    }
    throw std::logic_error("the open shards do not cover all hashes");
}

written stream_model::store(
    stored_stream& in, stored_shard& to, std::string key, std::string data, wall_time arrived
) {
    to.records.push_back({in.next_index++, arrived, arrived + late_visible, std::move(key), std::move(data)});
    return {to.id, sequence_of(to, to.records.back())};
}

written stream_model::append(
    const std::string& stream, const std::string& key, std::string data, std::optional<wall_time> arrived
) {
    auto& in = *must(stream_named(stream));
    for (auto* shard : open_shards(in)) {
        if (shard->range.contains(hash_of(key)))
            return store(in, *shard, key, std::move(data), arrived.value_or(now_()));
    }
    throw std::logic_error("the open shards do not cover all hashes");
}

written stream_model::append_to(
    const std::string& stream, const std::string& shard, std::string key, std::string data
) {
    auto& in = *must(stream_named(stream));
    return store(in, *must(shard_named(in, shard)), std::move(key), std::move(data), now_());
}

void stream_model::split_in_middle(const std::string& stream, const std::string& shard) {
    auto& in = *must(stream_named(stream));
    const auto& which = *must(shard_named(in, shard));
    const auto halves = millrace::split_in_middle(which.range);
    if (!halves || !is_open(which)) throw std::invalid_argument(shard + " cannot be split");
    split_shard(in, which.number, halves->second.from);
}

void stream_model::trim(const std::string& stream, const std::string& shard, std::size_t records) {
    auto& from = shard_at(stream, shard);
    const auto gone = std::min(records, from.records.size());
    from.records.erase(from.records.begin(), from.records.begin() + static_cast<std::ptrdiff_t>(gone));
    from.trimmed += gone;
}

void stream_model::forget(const std::string& stream, const std::string& shard) {
    auto& which = shard_at(stream, shard);
    trim(stream, shard, which.records.size());
    which.listed = false;
}

stored_shard& stream_model::shard_at(const std::string& stream, const std::string& shard) {
    return *must(shard_named(*must(stream_named(stream)), shard));
}

std::string stream_model::sequence_of(const stored_shard& shard, const stored_record& record) {
    return to_sequence({shard.born, record.index, second_of(record.arrived), shard.number});
}

std::string stream_model::first_sequence(const stored_shard& shard) {
    return to_sequence({shard.born, 0, shard.born, shard.number});
}

std::string stream_model::last_sequence(const stored_shard& shard) {
    return to_sequence({shard.born, sequence_index_max, second_of(*shard.closed), shard.number});
}

}  // namespace millrace::kinesis_fake
