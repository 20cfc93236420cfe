#include "contract/loop_host.hpp"
#include "contract/outbox_worlds.hpp"
#include "lease_layout.hpp"
#include "postgres_outbox.hpp"
#include "postgres_outbox_admin.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace millrace::test {

namespace {

/// The outcome, or the end of the test.
template <class T>
T sure(result<T> outcome) {
    if (!outcome) throw std::runtime_error(outcome.error().detail);
    if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

/// A schema of its own on the shared server.
class own_schema {
public:
    explicit own_schema(support::sql_connection& sql)
        : sql_(sql), name_(support::unique_name("pgoutbox_contract")) {
        sql_.execute("CREATE SCHEMA " + name_);
    }
    own_schema(const own_schema&) = delete;
    own_schema& operator=(const own_schema&) = delete;
    ~own_schema() {
        try {
            sql_.execute("DROP SCHEMA " + name_ + " CASCADE");
        } catch (const support::sql_error& e) {
            ADD_FAILURE() << e.what();
        }
    }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    support::sql_connection& sql_;
    std::string name_;
};

class postgres_outbox_world final : public outbox_world {
public:
    explicit postgres_outbox_world(bool partitioned) : partitioned_(partitioned) {}

    outbox_source& source() override { return source_; }
    bool run_until(const std::function<bool()>& condition) override { return home_.run_until(condition); }

    row_id put(const event& what) override { return sure(admin_.put({&what, 1})).value(); }
    row_id put_malformed(const event& what) override {
        sql_.execute(fmt::format("ALTER TABLE {} DROP CONSTRAINT IF EXISTS outbox_headers", table_));
        return row_id{sql_.number(
            fmt::format(
                "INSERT INTO {} (topic, key, value, header_names, header_values) VALUES ($1, $2, $3, "
                "'{{a,b}}', '{{x}}') RETURNING id",
                table_
            ),
            {what.topic, what.key, what.value}
        )};
    }
    void skip_ids(std::int64_t count) override {
        sql_.query(fmt::format("SELECT nextval('{}') FROM generate_series(1, {})", sequence(), count));
    }
    void put_at(row_id id, const event& what) override {
        sql_.query(
            fmt::format("INSERT INTO {} (id, topic, key) VALUES ({}, $1, $2)", table_, id.value()),
            {what.topic, what.key}
        );
    }
    void own(epoch owner) override {
        sql_.query(fmt::format(
            "INSERT INTO {0}.millrace_shard (stream, group_name, shard, parents, owner, epoch, version, "
            "write_id, "
            "updated_at) VALUES ('', 'outbox:{0}.outbox', '{1}', '{{}}', '', {2}, 1, 1, now())",
            schema_.name(),
            postgres::outbox_lease_shard,
            owner.value()
        ));
    }
    std::size_t replay(const lane_key& lane) override {
        return sure(admin_.retry_dead({.ids = {}, .topic = lane.topic, .key = lane.key}));
    }
    std::size_t drop(const lane_key& lane) override {
        return sure(admin_.drop_dead({.ids = {}, .topic = lane.topic, .key = lane.key}));
    }
    void recreate() override {
        sql_.execute("DROP TABLE " + table_);
        make_table();
        sure(postgres_outbox_admin::init(server_));
    }
    std::vector<dead> dead_rows() override {
        std::vector<dead> rows;
        for (const auto& d : sure(admin_.list_dead({})))
            rows.push_back({d.id, d.reason, d.error, d.attempts});
        return rows;
    }

private:
    void make_table() {
        if (!partitioned_) return;
        sql_.execute(fmt::format(
            "CREATE SEQUENCE IF NOT EXISTS {0}_ids; CREATE TABLE {0} (id bigint NOT NULL DEFAULT "
            "nextval('{0}_ids'), topic "
            "text NOT NULL, key bytea, value bytea, header_names text[], header_values bytea[], partition "
            "integer, "
            "\"timestamp\" timestamptz, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY "
            "KEY (id)) "
            "PARTITION BY RANGE (id); CREATE TABLE {0}_1 PARTITION OF {0} FOR VALUES FROM (MINVALUE) TO (3); "
            "CREATE TABLE {0}_2 PARTITION OF {0} FOR VALUES FROM (3) TO (MAXVALUE)",
            table_
        ));
    }
    [[nodiscard]] std::string sequence() const { return partitioned_ ? table_ + "_ids" : table_ + "_id_seq"; }
    postgres::server server() {
        make_table();
        return sure(postgres::parse_server(support::services().postgres + "?table=" + table_));
    }

    bool partitioned_;
    support::sql_connection sql_{support::services().postgres};
    own_schema schema_{sql_};
    std::string table_ = schema_.name() + ".outbox";
    postgres::server server_ = server();
    loop_host home_;
    postgres_outbox_admin admin_ = sure(postgres_outbox_admin::init(server_));
    postgres_outbox source_{home_, {.server = server_}};
};

}  // namespace

std::unique_ptr<outbox_world> make_postgres_outbox_world() {
    return std::make_unique<postgres_outbox_world>(false);
}

std::unique_ptr<outbox_world> make_partitioned_outbox_world() {
    return std::make_unique<postgres_outbox_world>(true);
}

}  // namespace millrace::test
