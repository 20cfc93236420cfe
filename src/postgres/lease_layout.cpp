#include "lease_layout.hpp"

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

// Few rows, each written many times: room in the page keeps the writes off the index, and the dead versions
// are cleared early, at full speed.
constexpr std::string_view storage =
    "WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, "
    "autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0, autovacuum_vacuum_cost_delay "
    "= 0)";

constexpr std::string_view group_of =
    "stream text COLLATE \"C\" NOT NULL, group_name text COLLATE \"C\" NOT NULL";

}  // namespace

lease_tables_of::lease_tables_of(std::string_view schema)
    : meta(table_name{std::string(schema), "millrace_meta"}.quoted()),
      group(table_name{std::string(schema), "millrace_group"}.quoted()),
      worker(table_name{std::string(schema), "millrace_worker"}.quoted()),
      shard(table_name{std::string(schema), "millrace_shard"}.quoted()) {}

std::string outbox_lease_group(const table_name& outbox) {
    return fmt::format("outbox:{}.{}", outbox.schema, outbox.table);
}

std::vector<std::string> lease_layout(std::string_view schema) {
    const lease_tables_of tables(schema);
    return {
        fmt::format(
            "CREATE TABLE IF NOT EXISTS {} (name text PRIMARY KEY, value bigint NOT NULL)", tables.meta
        ),
        fmt::format(
            "INSERT INTO {} (name, value) VALUES ('lease_schema', {}) ON CONFLICT DO NOTHING",
            tables.meta,
            lease_schema_known
        ),
        fmt::format(
            "CREATE TABLE IF NOT EXISTS {} ({}, format integer NOT NULL, version bigint NOT NULL, write_id "
            "bigint NOT NULL, stream_identity text NOT NULL, start text NOT NULL, start_at timestamptz, "
            "epoch_floor bigint NOT NULL, PRIMARY KEY (stream, group_name)) {}",
            tables.group,
            group_of,
            storage
        ),
        fmt::format(
            "CREATE TABLE IF NOT EXISTS {} ({}, incarnation text COLLATE \"C\" NOT NULL, worker text NOT "
            "NULL, counter bigint NOT NULL, write_id bigint NOT NULL, lease_ns bigint NOT NULL, changes "
            "bigint NOT NULL, host text NOT NULL, boot_id text NOT NULL, pid_namespace text NOT NULL, pid "
            "bigint NOT NULL, start_time bigint NOT NULL, updated_at timestamptz NOT NULL, PRIMARY KEY "
            "(stream, group_name, incarnation)) {}",
            tables.worker,
            group_of,
            storage
        ),
        fmt::format(
            "CREATE TABLE IF NOT EXISTS {} ({}, shard text COLLATE \"C\" NOT NULL, parents text[] NOT NULL, "
            "owner text NOT NULL, epoch bigint NOT NULL, version bigint NOT NULL, write_id bigint NOT NULL, "
            "sequence text, sub_sequence bigint, arrival timestamptz, finished_at timestamptz, updated_at "
            "timestamptz NOT NULL, PRIMARY KEY (stream, group_name, shard)) {}",
            tables.shard,
            group_of,
            storage
        )};
}

std::vector<std::string> lease_grants(std::string_view schema, std::string_view role) {
    const lease_tables_of tables(schema);
    const auto to = quote_identifier(role);
    return {
        fmt::format("GRANT USAGE ON SCHEMA {} TO {}", quote_identifier(schema), to),
        fmt::format("GRANT SELECT ON {} TO {}", tables.meta, to),
        fmt::format(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {}, {}, {} TO {}",
            tables.group,
            tables.worker,
            tables.shard,
            to
        )};
}

}  // namespace millrace::postgres
