#include "outbox_insert.hpp"

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

/// The columns of a table and their values, which stand in the same order.
struct columns {
    std::string names;
    std::string values;
    void add(const std::string& name, const std::string& value) {
        names += (names.empty() ? "" : ", ") + name;
        values += (values.empty() ? "" : ", ") + value;
    }
};

std::string partition_value(const outbox_layout& layout, const std::string& from) {
    if (layout.of == outbox_layout::kind::native) return from;
    return fmt::format("coalesce({}, -1)", from);
}

}  // namespace

std::string turn_sql(const table_name& outbox, std::string_view topic, std::string_view key) {
    return fmt::format(
        "pg_advisory_xact_lock({}::regclass::oid::integer, hashtext({} || ' ' || encode({}, 'hex')))",
        quote_literal(outbox.quoted()),
        topic,
        key
    );
}

std::string insert_event_sql(const outbox_layout& layout, bool serialise) {
    columns all;
    all.add(layout.topic.name, "$1::text");
    all.add(layout.key.name, layout.key.from_bytes("$2::bytea"));
    all.add(layout.value.name, layout.value.from_bytes("$3::bytea"));
    if (layout.names) {
        all.add(layout.names->name, "$4::text[]");
        all.add(layout.values->name, layout.values->from_bytes("$5::bytea[]"));
    }
    if (layout.partition) {
        all.add(layout.partition->name, partition_value(layout, layout.names ? "$6::bigint" : "$4::bigint"));
    }
    if (layout.created) all.add(layout.created->name, "clock_timestamp()");
    const auto turn = serialise ? fmt::format(
                                      "WITH turn AS MATERIALIZED (SELECT {}) ",
                                      turn_sql(layout.table, "$1::text", "$2::bytea")
                                  )
                                : std::string();
    return fmt::format(
        "{}INSERT INTO {} ({}) SELECT {}{} RETURNING id::bigint",
        turn,
        layout.table.quoted(),
        all.names,
        all.values,
        serialise ? " FROM turn" : ""
    );
}

std::string restore_sql(const outbox_layout& layout, std::string_view from) {
    columns all;
    all.add("id", "d.id");
    all.add(layout.topic.name, "d.topic");
    all.add(layout.key.name, layout.key.from_bytes("d.key"));
    all.add(layout.value.name, layout.value.from_bytes("d.value"));
    if (layout.names) {
        all.add(layout.names->name, "coalesce(d.header_names, '{}'::text[])");
        all.add(layout.values->name, layout.values->from_bytes("d.header_values"));
    }
    if (layout.partition) all.add(layout.partition->name, partition_value(layout, "d.partition"));
    if (layout.timestamp) all.add(layout.timestamp->name, "d.\"timestamp\"");
    if (layout.created) all.add(layout.created->name, "coalesce(d.created_at, clock_timestamp())");
    return fmt::format(
        "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {} d",
        layout.table.quoted(),
        all.names,
        all.values,
        from
    );
}

}  // namespace millrace::postgres
