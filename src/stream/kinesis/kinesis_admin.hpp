/// Makes, describes, fills, splits and merges a stream of Kinesis: what the command line needs.
///
/// Synchronous; one thread at a time. Changes of a stream take AWS seconds to minutes: each call returns when
/// the stream is active again, or with `unavailable` when that takes longer than `wait`.
#pragma once

#include "api.hpp"
#include "kinesis_calls.hpp"
#include "kinesis_listing.hpp"
#include "kinesis_url.hpp"
#include "port/stream_admin.hpp"
#include "record/hash_key.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

struct kinesis_position {
    shard_id shard;
    std::string sequence;
};

class kinesis_admin final : public stream_admin {
public:
    /// The address names a stream. `put_timeout` is that of one call, its retries included.
    kinesis_admin(
        kinesis_address stream,
        std::unique_ptr<aws::api> api,
        milliseconds wait,
        milliseconds put_timeout = milliseconds{10'000}
    );

    [[nodiscard]] result<kinesis_stream> look();
    [[nodiscard]] result<stream_facts> describe() override;

    /// A retention is rounded up to hours, 24 at least.
    [[nodiscard]] result<void> create(std::uint32_t shards, std::optional<milliseconds> retention = {})
        override;

    /// Returns when the stream is gone.
    [[nodiscard]] result<void> remove();

    /// On an error some may be in the stream, and after a lost reply some twice. `invalid_argument` names
    /// what Kinesis cannot hold: headers, tombstones, and some keys.
    [[nodiscard]] result<void> put(std::span<const event> events) override;

    /// The same, with where each came to lie.
    [[nodiscard]] result<std::vector<kinesis_position>> append(std::span<const event> events);

    [[nodiscard]] result<std::pair<shard_id, shard_id>> split(
        const shard_id& shard, std::optional<hash_key> at = std::nullopt
    ) override;
    [[nodiscard]] result<shard_id> merge(const shard_id& one, const shard_id& other) override;

    /// Changes the number of open shards by splits and merges of the service's choice.
    [[nodiscard]] result<void> scale(std::uint32_t shards);

private:
    template <class Reply, class Request>
    [[nodiscard]] kinesis_outcome<Reply> ask(Request request, const kinesis_calls::options& how);
    template <class Request>
    [[nodiscard]] result<void> change(Request request);
    [[nodiscard]] result<kinesis_stream> when_active();
    [[nodiscard]] result<std::vector<shard_id>> children_of(const std::vector<shard_id>& parents);

    kinesis_address stream_;
    milliseconds wait_;
    milliseconds put_timeout_;
    kinesis_calls calls_;
};

}  // namespace millrace
