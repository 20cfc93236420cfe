/// The SQL behind `postgres_lease_store`: tables, and rows to and from columns. Called on one connection.
#pragma once

#include "connection.hpp"
#include "group/kept_positions.hpp"
#include "port/group_key.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::postgres {

/// Makes the tables of the schema, and the schema, when they are missing, at once from several processes or
/// not. `wrong_version` when a newer program has made them; `permission_denied` shows the SQL for who may;
/// `not_found` when they are gone and `were_used`: the group would skip, or do again, what it had.
[[nodiscard]] result<void> ensure_lease_tables(
    connection& db, std::string_view schema, bool were_used = false
);

/// The rows of one group.
class lease_rows {
public:
    lease_rows(std::string_view schema, group_key group);

    result<std::vector<worker_row>> list_workers(connection& db) const;
    result<std::vector<shard_row>> list_shards(connection& db) const;
    result<std::optional<lease_row>> read(connection& db, const lease_key& key) const;
    result<void> write(connection& db, const lease_row& row, std::optional<version> expected) const;
    result<void> remove(connection& db, const lease_key& key, version expected) const;

    /// Of one table.
    struct texts {
        table_name table;
        std::string list;
        std::string read;
        std::string insert;
        std::string update;
        std::string remove;
    };

private:
    [[nodiscard]] result<void> change_one(connection& db, const statement& what, const texts& of) const;

    group_key group_;
    texts groups_;
    texts workers_;
    texts shards_;
};

/// What harlow's kinesis-consumer kept under a name in a table of its own, which is only read.
[[nodiscard]] result<std::vector<kept_row>> read_positions(
    connection& db, const table_name& from, std::string_view under
);

/// The groups of a stream that have any row in the schema.
[[nodiscard]] result<std::vector<std::string>> list_groups(
    connection& db, std::string_view schema, std::string_view stream
);

}  // namespace millrace::postgres
