/// A local stream as `stream_admin`.
#pragma once

#include "local_admin.hpp"
#include "port/stream_admin.hpp"

#include <string>
#include <utility>

namespace millrace {

class local_stream_admin final : public stream_admin {
public:
    local_stream_admin(local_admin opened, std::string stream)
        : admin_(std::move(opened)), stream_(std::move(stream)) {}

    result<void> create(std::uint32_t shards, std::optional<milliseconds> retention) override {
        return admin_.create_stream(stream_, shards, retention);
    }
    result<stream_facts> describe() override;
    result<void> check(const event& one) override { return admin_.check(one); }
    result<void> put(std::span<const event> events) override {
        return admin_.put(stream_, events).map([](const auto&) {});
    }
    result<std::pair<shard_id, shard_id>> split(const shard_id& shard, std::optional<hash_key> at) override {
        return admin_.split(stream_, shard, at);
    }
    result<shard_id> merge(const shard_id& one, const shard_id& other) override {
        return admin_.merge(stream_, one, other);
    }

private:
    local_admin admin_;
    std::string stream_;
};

}  // namespace millrace
