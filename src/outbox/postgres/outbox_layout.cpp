#include "outbox_layout.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

constexpr std::int64_t bytea = 17;
constexpr std::int64_t bytea_array = 1001;
constexpr std::int64_t text = 25;
constexpr std::int64_t varchar = 1043;
constexpr std::array<std::int64_t, 3> integers{20, 21, 23};
constexpr std::array<std::int64_t, 2> times{1114, 1184};
constexpr std::array<std::int64_t, 2> text_arrays{1009, 1015};

struct found_column {
    std::string name;
    std::int64_t type;
    std::string type_name;
    bool leads_index;
    std::int64_t sequence;
    bool plain;
    bool raw;
};

template <std::size_t n>
bool is_one_of(std::int64_t type, const std::array<std::int64_t, n>& types) {
    return std::find(types.begin(), types.end(), type) != types.end();
}

class reading {
public:
    reading(outbox_layout& into, std::vector<found_column> columns)
        : into_(into), columns_(std::move(columns)) {}

    result<void> run() {
        const auto* const id = find("id");
        if (find("kafka_topic") != nullptr) {
            into_.of = outbox_layout::kind::goharvest;
            take_needed(
                {{"kafka_topic", &into_.topic}, {"kafka_key", &into_.key}, {"kafka_value", &into_.value}}
            );
            take_headers("kafka_header_keys", "kafka_header_values");
            into_.partition = integer("kafka_partition");
            into_.created = time("create_time");
        } else {
            take_needed({{"topic", &into_.topic}, {"key", &into_.key}, {"value", &into_.value}});
            take_headers("header_names", "header_values");
            into_.partition = integer("partition");
            into_.timestamp = time("timestamp");
            into_.created = time("created_at");
        }
        if (id == nullptr) missing("id");
        if (!fault_.empty()) return refused();
        if (!is_one_of(id->type, integers)) fault_ = "its column id is no integer";
        if (!id->leads_index) fault_ = "no index begins with its column id";
        if (!fault_.empty()) return refused();
        into_.sequence = id->sequence;
        return {};
    }

private:
    const found_column* find(std::string_view name) const {
        const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const found_column& c) {
            return c.name == name;
        });
        return at == columns_.end() ? nullptr : &*at;
    }

    static outbox_column made(const found_column& from) {
        return {quote_identifier(from.name), from.type, from.type_name, from.plain, from.raw};
    }

    void missing(std::string_view name) {
        fault_ += fmt::format("{}{}", fault_.empty() ? "it lacks the column(s) " : ", ", name);
    }

    void take_needed(std::initializer_list<std::pair<std::string_view, outbox_column*>> needed) {
        for (const auto& [name, column] : needed) {
            const auto* const found = find(name);
            if (found != nullptr) {
                *column = made(*found);
            } else {
                missing(name);
            }
        }
    }

    void take_headers(std::string_view names, std::string_view values) {
        const auto* const n = find(names);
        const auto* const v = find(values);
        if (n == nullptr || v == nullptr) return;
        if (!is_one_of(n->type, text_arrays)) return;
        if (v->type != bytea_array && !is_one_of(v->type, text_arrays)) return;
        into_.names = made(*n);
        into_.values = made(*v);
    }

    std::optional<outbox_column> integer(std::string_view name) const {
        const auto* const found = find(name);
        if (found == nullptr || !is_one_of(found->type, integers)) return std::nullopt;
        return made(*found);
    }

    std::optional<outbox_column> time(std::string_view name) const {
        const auto* const found = find(name);
        if (found == nullptr || !is_one_of(found->type, times)) return std::nullopt;
        return made(*found);
    }

    tl::unexpected<error> refused() const {
        return fail(
            errc::invalid_config,
            fmt::format(
                "the table {} is no outbox of Millrace or goharvest: {}; name another table by `?table=`, or "
                "rename this one and run `millrace outbox init`",
                into_.table.shown(),
                fault_
            ),
            retry_advice::after_delay
        );
    }

    outbox_layout& into_;
    std::vector<found_column> columns_;
    std::string fault_;
};

}  // namespace

bool outbox_column::is_bytes() const noexcept {
    return type == bytea || type == bytea_array;
}

bool outbox_column::is_text() const noexcept {
    return type == text || type == varchar;
}

bool outbox_column::is_time() const noexcept {
    return is_one_of(type, times);
}

std::string outbox_column::read() const {
    if (is_bytes()) return "o." + name;
    if (is_time()) return fmt::format("o.{}::timestamptz", name);
    if (raw) return as_bytes();
    if (is_text() || is_one_of(type, text_arrays)) return "o." + name;
    return fmt::format("o.{}::text", name);
}

std::string outbox_column::array_bytes() const {
    if (plain) return fmt::format("pg_column_size(o.{})", name);
    return fmt::format("octet_length(array_to_string(o.{}, ''))", name);
}

std::string outbox_column::as_bytes() const {
    if (is_bytes()) return "o." + name;
    const auto* const encoding = raw ? "SQL_ASCII" : "UTF8";
    if (is_one_of(type, text_arrays)) {
        return fmt::format(
            "(CASE WHEN cardinality(o.{0}) > 0 THEN (SELECT array_agg(convert_to(h.v, '{1}') ORDER BY h.n) "
            "FROM unnest(o.{0}) WITH ORDINALITY AS h(v, n)) END)",
            name,
            encoding
        );
    }
    return fmt::format("convert_to(o.{}::text, '{}')", name, encoding);
}

std::string outbox_column::from_bytes(const std::string& expression) const {
    if (type == bytea_array) return fmt::format("coalesce({}, '{{}}'::bytea[])", expression);
    if (type == bytea) return expression;
    const auto* const encoding = raw ? "SQL_ASCII" : "UTF8";
    if (is_one_of(type, text_arrays)) {
        return fmt::format(
            "coalesce((SELECT array_agg(convert_from(h.v, '{}') ORDER BY h.n) FROM unnest({}) WITH "
            "ORDINALITY AS h(v, n)), '{{}}'::text[])",
            encoding,
            expression
        );
    }
    return fmt::format("convert_from({}, '{}')::{}", expression, encoding, type_name);
}

std::string outbox_layout::read_partition() const {
    if (!partition) return "NULL::integer";
    if (of == kind::goharvest) return fmt::format("nullif(o.{}, -1)", partition->name);
    return "o." + partition->name;
}

std::string outbox_layout::sent_partition() const {
    return fmt::format("(CASE WHEN {0} BETWEEN 0 AND 2147483647 THEN ({0})::integer END)", read_partition());
}

statement layout_query(const std::string& quoted) {
    return statement(
               "SELECT c.relkind = 'p', c.relkind IN ('r', 'p'), a.attname::text, a.atttypid::bigint, "
               "format_type(a.atttypid, a.atttypmod), EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = "
               "c.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL), (SELECT "
               "d.objid::bigint FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' "
               "WHERE d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_class'::regclass AND "
               "d.refobjid = c.oid AND d.refobjsubid = a.attnum AND d.deptype IN ('a', 'i') LIMIT 1), "
               "(SELECT oid::bigint FROM pg_database WHERE datname = current_database()), c.oid::bigint, "
               "(SELECT nspname::text FROM pg_namespace WHERE oid = c.relnamespace), c.relname::text, "
               "a.attstorage IN ('e', 'p'), current_setting('server_encoding') = 'SQL_ASCII' FROM pg_class c "
               "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE "
               "c.oid = to_regclass($1) ORDER BY a.attnum",
               effect::reads,
               "look at the outbox in"
    )
        .with(quoted);
}

result<outbox_layout> layout_from(const rows& found, const table_name& given, std::string_view server) {
    if (found.empty()) {
        return fail(
            errc::not_found,
            fmt::format(
                "there is no table \"{}\" in {}; create it with `millrace outbox init`", given.shown(), server
            ),
            retry_advice::after_delay
        );
    }
    outbox_layout layout;
    layout.partitioned = found.boolean(0, 0).value_or(false);
    layout.database = found.integer(0, 7).value_or(0);
    layout.oid = found.integer(0, 8).value_or(0);
    layout.table = {found.text(0, 9), found.text(0, 10)};
    std::vector<found_column> columns;
    const bool is_table = found.boolean(0, 1).value_or(false);  // nothing can be deleted from a view
    for (std::size_t i = 0; is_table && i < found.size(); ++i) {
        columns.push_back(
            {found.text(i, 2),
             found.integer(i, 3).value_or(0),
             found.text(i, 4),
             found.boolean(i, 5).value_or(false),
             found.integer(i, 6).value_or(0),
             found.boolean(i, 11).value_or(false),
             found.boolean(i, 12).value_or(false)}
        );
    }
    if (auto fits = reading(layout, std::move(columns)).run(); !fits) {
        return tl::unexpected(std::move(fits.error()));
    }
    return layout;
}

result<outbox_layout> find_layout(connection& db, const table_name& given) {
    const auto quoted = given.quoted();
    const auto found = db.run(layout_query(quoted));
    if (!found) return tl::unexpected(found.error());
    return layout_from(*found, given, db.name());
}

}  // namespace millrace::postgres
