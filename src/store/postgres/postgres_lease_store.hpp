/// Leases and checkpoints in a PostgreSQL database.
///
/// Several groups can share a schema; its tables are made when they are missing. Every write is one
/// conditional statement in one round trip, on disk when it completes. Works through a PgBouncer that pools
/// transactions. The work is done on a thread of the store with a connection of its own; completions come
/// back on the host. The tables are described in docs/lease-protocol.md.
#pragma once

#include "port/group_key.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"
#include "server.hpp"

#include <millrace/time.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

struct postgres_lease_store_options {
    postgres::server where;
    group_key group;  ///< Keeps the rows of groups that share a schema apart.

    /// The lease of this outbox: the tables stand in its schema, and the group's name is extended by the
    /// schema and name of the table ("outbox" becomes "outbox:public.outbox"). Otherwise they stand in the
    /// schema of the address
    /// (`?schema=`), which is made when it is missing.
    std::optional<postgres::table_name> outbox{};

    /// How long a request may run or wait for other writers before it is `unavailable`; keep it below the
    /// lease time.
    milliseconds request_timeout{1'000};
};

class postgres_lease_store final : public lease_store {
public:
    static constexpr const char* schema_default = "millrace";

    postgres_lease_store(host& home, postgres_lease_store_options options);
    ~postgres_lease_store() override;

    void list_workers(completion<std::vector<worker_row>> done) override;
    void list_shards(completion<std::vector<shard_row>> done) override;
    void read(lease_key key, completion<std::optional<lease_row>> done) override;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override;
    void remove(lease_key key, version expected, completion<void> done) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// The groups of a stream that have any row. Waits for the server; makes no tables.
[[nodiscard]] result<std::vector<std::string>> postgres_groups(
    const postgres::server& where, const std::string& stream
);

}  // namespace millrace
