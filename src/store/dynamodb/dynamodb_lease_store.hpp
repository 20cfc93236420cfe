/// Leases and checkpoints in a DynamoDB table.
///
/// Any number of groups can share a table; it is made when it is missing, paid per request. Every write is
/// one conditional request that leaves other attributes of the item as they are; it is not repeated when its
/// reply is lost, but in doubt. Throttling is told at once, for sessions and leases have a pace of their own.
/// Completions come back on the host. The layout is described in docs/state-stores.md.
#pragma once

#include "api.hpp"
#include "group/kept_positions.hpp"
#include "lease_table.hpp"
#include "port/group_key.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <millrace/time.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

struct dynamodb_lease_store_options {
    lease_table_name where;
    group_key group;  ///< Keeps the rows of groups that share a table apart.

    /// How long a request may take before it is `unavailable`; keep it below the lease time.
    milliseconds request_timeout{2'000};

    milliseconds table_timeout{60'000};  ///< How long a table that is being made is waited for.
};

class dynamodb_lease_store final : public lease_store {
public:
    dynamodb_lease_store(host& home, std::unique_ptr<aws::api> service, dynamodb_lease_store_options options);
    ~dynamodb_lease_store() override;

    void list_workers(completion<std::vector<worker_row>> done) override;
    void list_shards(completion<std::vector<shard_row>> done) override;
    void read(lease_key key, completion<std::optional<lease_row>> done) override;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override;
    void remove(lease_key key, version expected, completion<void> done) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// The groups of a stream that were started. Waits for the service; makes no table.
[[nodiscard]] result<std::vector<std::string>> dynamodb_groups(
    aws::api& service, const lease_table_name& where, const std::string& stream
);

/// What another consumer kept in a table of its own, which is only read. Waits likewise.
[[nodiscard]] result<std::vector<kept_row>> dynamodb_positions(
    aws::api& service, const lease_table_name& where, kept_by whom, const std::string& under
);

}  // namespace millrace
