#include "relay_tables.hpp"

#include "lease_layout.hpp"

#include <fmt/format.h>

namespace millrace::postgres {

relay_tables::relay_tables(std::string_view schema)
    : outbox(table_name{std::string(schema), "millrace_outbox"}.quoted()),
      low_water(table_name{std::string(schema), "millrace_low_water"}.quoted()),
      dead(table_name{std::string(schema), "millrace_dead"}.quoted()),
      parked(table_name{std::string(schema), "millrace_parked"}.quoted()),
      paused(table_name{std::string(schema), "millrace_paused"}.quoted()) {}

std::string lane_sql(std::string_view topic, std::string_view key, std::string_view partition) {
    // No topic holds a zero byte, so no two lanes give the same bytes.
    return fmt::format(
        "sha256(int4send(coalesce({}, -1)::integer) || convert_to({}::text, 'UTF8') || '\\x00'::bytea || {})",
        partition,
        topic,
        key
    );
}

std::vector<std::string> relay_tables_layout(const table_name& outbox) {
    const relay_tables tables(outbox.schema);
    auto made = lease_layout(outbox.schema);
    made.push_back(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (outbox text PRIMARY KEY, schema_version integer NOT NULL, "
        "readable_by "
        "integer NOT NULL, replay_generation bigint NOT NULL DEFAULT 0)",
        tables.outbox
    ));
    made.push_back(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (outbox text PRIMARY KEY, id bigint NOT NULL, epoch bigint NOT NULL, "
        "replay_generation bigint NOT NULL, table_identity text NOT NULL) WITH (fillfactor = 20, "
        "autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0)",
        tables.low_water
    ));
    made.push_back(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (outbox text NOT NULL, id bigint NOT NULL, lane bytea, topic text NOT "
        "NULL, "
        "key bytea, value bytea, header_names text[], header_values bytea[], partition integer, "
        "\"timestamp\" "
        "timestamptz, created_at timestamptz, reason text NOT NULL, error text NOT NULL, attempts integer "
        "NOT "
        "NULL, "
        "first_at timestamptz NOT NULL, last_at timestamptz NOT NULL, PRIMARY KEY (outbox, id))",
        tables.dead
    ));
    made.push_back(fmt::format(
        "CREATE INDEX IF NOT EXISTS millrace_dead_lane ON {} (outbox, lane) WHERE lane IS NOT NULL",
        tables.dead
    ));
    made.push_back(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (outbox text NOT NULL, lane bytea NOT NULL, topic text NOT NULL, key "
        "bytea "
        "NOT NULL, partition integer, parked_at timestamptz NOT NULL, PRIMARY KEY (outbox, lane))",
        tables.parked
    ));
    made.push_back(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (outbox text NOT NULL, topic text NOT NULL, paused_at timestamptz NOT "
        "NULL, "
        "PRIMARY KEY (outbox, topic))",
        tables.paused
    ));
    made.push_back(fmt::format(
        "INSERT INTO {0} AS m (outbox, schema_version, readable_by) VALUES ({1}, {2}, 1) ON CONFLICT "
        "(outbox) "
        "DO "
        "UPDATE SET schema_version = {2} WHERE m.schema_version < {2}",
        tables.outbox,
        quote_literal(outbox.table),
        outbox_schema_known
    ));
    return made;
}

std::vector<std::string> relay_tables_grants(const table_name& outbox, std::string_view role) {
    const relay_tables tables(outbox.schema);
    auto grants = lease_grants(outbox.schema, role);
    grants.push_back(fmt::format(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON {}, {}, {}, {}, {} TO {}",
        tables.outbox,
        tables.low_water,
        tables.dead,
        tables.parked,
        tables.paused,
        quote_identifier(role)
    ));
    return grants;
}

}  // namespace millrace::postgres
