/// Where the leases stand in a PostgreSQL database: names, and the SQL that makes the tables.
///
/// Pure functions. The tables are described in docs/lease-protocol.md.
#pragma once

#include "table_name.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace millrace::postgres {

/// The newest layout of the tables that this program reads and writes.
constexpr int lease_schema_known = 1;

/// The tables of a schema, quoted.
struct lease_tables_of {
    explicit lease_tables_of(std::string_view schema);

    std::string meta;    ///< (name text, value int8): the row `lease_schema` is the version of the layout.
    std::string group;   ///< (stream text, group_name text, ...)
    std::string worker;  ///< (stream, group_name, incarnation text, ...)
    std::string shard;   ///< (stream, group_name, shard text, ..., epoch int8, version int8, ...)
};

/// The lease of an outbox is the shard of this name, in a group without a stream, in the outbox's schema.
constexpr const char* outbox_lease_shard = "outbox";
[[nodiscard]] std::string outbox_lease_group(const table_name& outbox);

/// The statements that make the tables that are missing, without semicolons, to be run in one transaction.
[[nodiscard]] std::vector<std::string> lease_layout(std::string_view schema);

/// What a role needs to hold leases in tables that exist.
[[nodiscard]] std::vector<std::string> lease_grants(std::string_view schema, std::string_view role);

}  // namespace millrace::postgres
