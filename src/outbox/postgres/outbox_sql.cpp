#include "outbox_sql.hpp"

#include "lease_layout.hpp"

#include <string_view>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

/// The pieces from which the statements are put together.
struct pieces {
    explicit pieces(const outbox_layout& of) : layout(of), tables(of.table.schema), leases(of.table.schema) {
        table = of.table.quoted();
        regclass = quote_literal(table) + "::regclass";
        name = quote_literal(of.table.table);
        topic = of.topic.read();
        topic_text =
            fmt::format("o.{}{}", of.topic.name, of.topic.is_bytes() || of.topic.is_text() ? "" : "::text");
        key = of.key.read();
        value = of.value.read();
        names = of.names ? of.names->read() : "NULL::text[]";
        values = of.values ? of.values->read() : "NULL::bytea[]";
        partition = of.read_partition();
        timestamp = of.timestamp ? of.timestamp->read() : "NULL::timestamptz";
        created = of.created ? of.created->read() : "NULL::timestamptz";
        bytes = fmt::format("octet_length({}) + coalesce(octet_length({}), 0)", topic, key) +
                fmt::format(" + coalesce(octet_length({}), 0)", value);
        if (of.names)
            bytes += fmt::format(
                " + coalesce({}, 0) + coalesce({}, 0)", of.names->array_bytes(), of.values->array_bytes()
            );
        table_file = of.partitioned ? fmt::format(
                                          "(SELECT hashtextextended(string_agg(t.relid::oid::text || ':' || "
                                          "coalesce(pg_relation_filenode(t.relid)::text, ''), ',' ORDER BY "
                                          "t.relid::oid), 0) FROM "
                                          "pg_partition_tree({}) t)",
                                          regclass
                                      )
                                    : fmt::format("pg_relation_filenode({})::bigint", regclass);
        sequence_file =
            of.sequence == 0
                ? "0::bigint"
                : fmt::format("coalesce(pg_relation_filenode({}::oid::regclass), 0)::bigint", of.sequence);
        drawn = of.sequence == 0 ? "NULL::bigint"
                                 : fmt::format(
                                       "CASE WHEN has_sequence_privilege({0}::oid, 'USAGE, SELECT') THEN "
                                       "pg_sequence_last_value({0}::oid::regclass) END",
                                       of.sequence
                                   );
        relations = of.partitioned ? fmt::format(
                                         "(relation = {0} OR relation IN (SELECT relid FROM "
                                         "pg_partition_tree({0}::oid::regclass)))",
                                         of.oid
                                     )
                                   : fmt::format("relation = {}", of.oid);
        locks = fmt::format(
            "database = {} AND locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted AND {}",
            of.database,
            relations
        );
    }

    /// The lease is `mine`, a parameter.
    [[nodiscard]] std::string owned(std::string_view mine) const {
        return fmt::format(
            "EXISTS (SELECT 1 FROM {} WHERE stream = '' AND group_name = {} AND shard = {} AND epoch = {})",
            leases.shard,
            quote_literal(outbox_lease_group(layout.table)),
            quote_literal(outbox_lease_shard),
            mine
        );
    }

    /// The ids still name the rows that were read. Evaluated under the lock that the statement itself takes.
    [[nodiscard]] std::string same(std::string_view file, std::string_view sequence) const {
        return fmt::format(
            "{}::oid = {} AND {} IS NOT DISTINCT FROM {}::bigint AND {} = {}::bigint",
            regclass,
            layout.oid,
            table_file,
            file,
            sequence_file,
            sequence
        );
    }

    const outbox_layout& layout;
    relay_tables tables;
    lease_tables_of leases;
    std::string table, regclass, name;
    std::string topic, topic_text, key, value, names, values, partition, timestamp, created, bytes;
    std::string table_file, sequence_file, drawn, relations, locks;
};

/// The columns of a row but its id, left empty where it is `cut`.
std::string cut_columns() {
    std::string columns;
    for (const auto* const column : {"topic", "key", "value", "names", "vals"})
        columns += fmt::format(", CASE WHEN q.cut THEN NULL ELSE q.{} END", column);
    return columns + ", q.partition, q.ts, q.created, q.cut";
}

std::string named_columns(const pieces& p) {
    return fmt::format(
        "o.id::bigint AS id, {} AS topic, {} AS key, {} AS value, {} AS names, {} AS vals, {} AS partition, "
        "{} AS ts, {} AS created",
        p.topic,
        p.key,
        p.value,
        p.names,
        p.values,
        p.partition,
        p.timestamp,
        p.created
    );
}

std::string ahead_small(const pieces& p) {
    return fmt::format(
        "SELECT q.id{} FROM (SELECT {}, {} > $4 AS cut FROM {} o WHERE o.id > $1 AND {} <> ALL ($3) ORDER BY "
        "o.id LIMIT $2) q ORDER BY q.id",
        cut_columns(),
        named_columns(p),
        p.bytes,
        p.table,
        p.topic_text
    );
}

/// Rows of `from` until `bytes` are used up; at least one.
std::string exact(const pieces& p, std::string_view from, std::string_view bytes) {
    return fmt::format(
        "SELECT q.id{} FROM (SELECT r.*, sum(r.bytes) OVER w > {} AND sum(r.bytes) OVER w > r.bytes AS cut "
        "FROM (SELECT {}, {} AS bytes FROM {}) r WINDOW w AS (ORDER BY r.id ROWS UNBOUNDED PRECEDING)) q "
        "ORDER BY q.id",
        cut_columns(),
        bytes,
        named_columns(p),
        p.bytes,
        from
    );
}

std::string status(const pieces& p) {
    return fmt::format(
        "SELECT pg_is_in_recovery(), pg_postmaster_start_time(), CASE WHEN pg_is_in_recovery() THEN '' ELSE "
        "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END, {0}::oid::bigint, {1}, {2}, "
        "(SELECT relnatts::bigint FROM pg_class WHERE oid = {0}), "
        "(SELECT replay_generation FROM {3} WHERE outbox = {5}), "
        "ARRAY(SELECT topic FROM {4} WHERE outbox = {5} ORDER BY topic), {6}",
        p.regclass,
        p.table_file,
        p.sequence_file,
        p.tables.outbox,
        p.tables.paused,
        p.name,
        p.drawn
    );
}

std::string look(const pieces& p) {
    // Ids may be far apart, so their span is no more than what fits into the table's pages.
    const auto size =
        p.layout.partitioned
            ? fmt::format("(SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree({}))", p.regclass)
            : fmt::format("pg_relation_size({})", p.regclass);
    return fmt::format(
        "SELECT least((SELECT max(id)::numeric FROM {0}) - f.id + 1, ({1} / 48)::numeric + 1)::bigint, "
        "(extract(epoch FROM clock_timestamp() - f.created) * 1000)::bigint FROM (SELECT u.id, u.created "
        "FROM ((SELECT o.id, {2} AS created FROM {0} o WHERE o.id BETWEEN $2 AND $3 ORDER BY o.id LIMIT 1) "
        "UNION ALL (SELECT o.id, {2} AS created FROM {0} o WHERE o.id > $1 ORDER BY o.id LIMIT 1)) u ORDER "
        "BY u.id LIMIT 1) f",
        p.table,
        size,
        p.created
    );
}

std::string holders(const pieces& p) {
    const auto age = [](std::string_view since) {
        return fmt::format("(extract(epoch FROM clock_timestamp() - {}) * 1000)::bigint", since);
    };
    return fmt::format(
        "SELECT l.pid, max({}), max({}) FROM (SELECT pid, virtualtransaction FROM pg_locks WHERE {}) l LEFT "
        "JOIN pg_stat_activity a ON a.pid = l.pid LEFT JOIN pg_locks t ON l.pid IS NULL AND "
        "t.virtualtransaction = l.virtualtransaction AND t.locktype = 'transactionid' LEFT JOIN "
        "pg_prepared_xacts x ON x.transaction = t.transactionid WHERE NOT EXISTS (SELECT 1 FROM pg_locks m "
        "WHERE m.virtualtransaction = l.virtualtransaction AND m.locktype = 'advisory' AND m.classid = {} "
        "AND m.objid = {}) GROUP BY l.pid ORDER BY 2 DESC NULLS LAST LIMIT 10",
        age("coalesce(a.xact_start, x.prepared)"),
        age("a.query_start"),
        p.locks,
        outbox_sql::own_mark,
        p.layout.oid
    );
}

std::string bury(const pieces& p, bool only_parked) {
    const auto names = p.layout.names ? "o." + p.layout.names->name : std::string("NULL::text[]");
    const auto values = p.layout.values ? p.layout.values->as_bytes() : "NULL::bytea[]";
    auto condition = fmt::format("{} AND {}", p.owned("$2"), p.same("$3", "$4"));
    if (only_parked) {
        condition += fmt::format(
            " AND EXISTS (SELECT 1 FROM {} WHERE outbox = {} AND lane = {})",
            p.tables.parked,
            p.name,
            lane_sql("$8::text", "$9::bytea", "$10::bigint")
        );
    }
    return fmt::format(
        "WITH moved AS (DELETE FROM {0} o WHERE o.id = ANY ($1::bigint[]) AND {1} RETURNING o.id::bigint AS "
        "id, {2} AS topic, {3} AS key, {4} AS value, {5} AS names, {6} AS vals, {7} AS partition, {8} AS ts, "
        "{9} AS created) INSERT INTO {10} (outbox, id, lane, topic, key, value, header_names, header_values, "
        "partition, \"timestamp\", created_at, reason, error, attempts, first_at, last_at) SELECT {11}, id, "
        "{12}, topic::text, key, value, names, vals, partition, ts, created, $5, $6, $7::bigint::integer, "
        "clock_timestamp() - make_interval(secs => {13} / 1e6::float8), clock_timestamp() FROM moved",
        p.table,
        condition,
        p.topic_text,
        p.layout.key.as_bytes(),
        p.layout.value.as_bytes(),
        names,
        values,
        p.layout.sent_partition(),
        p.timestamp,
        p.created,
        p.tables.dead,
        p.name,
        lane_sql("topic", "key", "partition"),
        only_parked ? "$11::bigint" : "$8::bigint"
    );
}

}  // namespace

outbox_sql::outbox_sql(const outbox_layout& of) {
    const pieces p(of);
    const auto lane = lane_sql("$1::text", "$2::bytea", "$3::bigint");
    ahead_small = millrace::postgres::ahead_small(p);
    ahead_exact = exact(
        p,
        fmt::format("{} o WHERE o.id > $1 AND {} <> ALL ($3) ORDER BY o.id LIMIT $2", p.table, p.topic_text),
        "$4"
    );
    gaps = exact(
        p,
        fmt::format(
            "unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS g(lo, hi, n) CROSS JOIN LATERAL (SELECT "
            "o.* FROM {} o WHERE o.id BETWEEN g.lo AND g.hi AND {} <> ALL ($3) ORDER BY o.id LIMIT $4) o "
            "ORDER BY g.n, o.id LIMIT $4",
            p.table,
            p.topic_text
        ),
        "$5"
    );
    status = millrace::postgres::status(p);
    writers = fmt::format(
        "SELECT virtualtransaction, locktype = 'advisory' FROM pg_locks WHERE ({}) OR (database = {} AND "
        "locktype = 'advisory' AND classid = {} AND objid = {})",
        p.locks,
        of.database,
        own_mark,
        of.oid
    );
    parked = fmt::format("SELECT topic, key, partition FROM {} WHERE outbox = {}", p.tables.parked, p.name);
    low_water = fmt::format(
        "SELECT id, epoch, replay_generation, table_identity FROM {} WHERE outbox = {}",
        p.tables.low_water,
        p.name
    );
    look = millrace::postgres::look(p);
    holders = millrace::postgres::holders(p);
    mark_own = fmt::format(
        "SELECT pg_try_advisory_xact_lock_shared({}, {})",
        own_mark,
        static_cast<std::int32_t>(static_cast<std::uint32_t>(of.oid))
    );
    remove_ranges = fmt::format(
        "DELETE FROM {} o USING unnest($1::bigint[], $2::bigint[]) AS r(lo, hi) WHERE o.id BETWEEN r.lo AND "
        "r.hi AND {} AND {}",
        p.table,
        p.owned("$3"),
        p.same("$4", "$5")
    );
    remove_ids = fmt::format(
        "DELETE FROM {} o WHERE o.id = ANY ($1::bigint[]) AND {} AND {}",
        p.table,
        p.owned("$2"),
        p.same("$3", "$4")
    );
    remember = fmt::format(
        "INSERT INTO {0} (outbox, id, epoch, replay_generation, table_identity) SELECT {1}, $1, $2, $3, $4 "
        "WHERE {2} AND EXISTS (SELECT 1 FROM {3} WHERE outbox = {1} AND replay_generation = $3) "
        "ON CONFLICT (outbox) DO UPDATE SET id = excluded.id, epoch = excluded.epoch, replay_generation = "
        "excluded.replay_generation, table_identity = excluded.table_identity",
        p.tables.low_water,
        p.name,
        p.owned("$2"),
        p.tables.outbox
    );
    lock_lease = fmt::format(
        "SELECT epoch FROM {} WHERE stream = '' AND group_name = {} AND shard = {} FOR SHARE",
        p.leases.shard,
        quote_literal(outbox_lease_group(of.table)),
        quote_literal(outbox_lease_shard)
    );
    same_table = fmt::format("SELECT {}", p.same("$1", "$2"));
    park = fmt::format(
        "INSERT INTO {} (outbox, lane, topic, key, partition, parked_at) SELECT {}, {}, $1, $2, "
        "$3::bigint::integer, "
        "clock_timestamp() WHERE {} ON CONFLICT DO NOTHING",
        p.tables.parked,
        p.name,
        lane,
        p.owned("$4")
    );
    lock_parked = fmt::format(
        "SELECT 1 FROM {} WHERE outbox = {} AND lane = {} FOR SHARE", p.tables.parked, p.name, lane
    );
    bury = millrace::postgres::bury(p, false);
    bury_parked = millrace::postgres::bury(p, true);
}

}  // namespace millrace::postgres
