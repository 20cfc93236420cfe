/// The relay's own tables in the schema of an outbox: names, and the SQL that makes them.
///
/// One set a schema; a column names the outbox. Pure functions. docs/outbox-schema.md describes the tables
/// for people.
#pragma once

#include "table_name.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace millrace::postgres {

/// The newest layout that this program reads and writes. Columns are only ever added, so an older program
/// works on with a newer layout, until `readable_by` there says otherwise.
constexpr int outbox_schema_known = 2;

/// The tables of a schema, quoted.
struct relay_tables {
    explicit relay_tables(std::string_view schema);

    std::string outbox;     ///< A row for each outbox: version, replay generation.
    std::string low_water;  ///< The hint where to begin; apart, because it is written often.
    std::string dead;
    std::string parked;
    std::string paused;  ///< Topics; an empty one stands for all.
};

/// The lane of topic, key (bytea) and partition, as SQL: 32 bytes that tell lanes apart, NULL without a key.
[[nodiscard]] std::string lane_sql(std::string_view topic, std::string_view key, std::string_view partition);

/// Makes what is missing, the tables of leases included; one statement each, for one transaction.
[[nodiscard]] std::vector<std::string> relay_tables_layout(const table_name& outbox);

/// What the relay's role needs in tables that exist.
[[nodiscard]] std::vector<std::string> relay_tables_grants(const table_name& outbox, std::string_view role);

}  // namespace millrace::postgres
