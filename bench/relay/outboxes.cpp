#include "relay/outboxes.hpp"

#include "timed.hpp"

#include <atomic>

#include <fmt/format.h>
#include <unistd.h>

namespace millrace::bench {

namespace {

std::string next_name() {
    static std::atomic<int> number{0};
    return fmt::format("bench_{}_{}", ::getpid(), ++number);
}

}  // namespace

pg_outbox::pg_outbox(const setup& with, const servers& at) : with_(with), at_(at), name_(next_name()) {
    const auto connection = connect(at.postgres);
    run_sql(connection.get(), fmt::format("CREATE SCHEMA {}", name_));
    timed({with.millrace, "outbox", "init", "--outbox", url()});
    create_topic(at, name_, bench_partitions);
}

pg_outbox::~pg_outbox() {
    const pg_connection connection{PQconnectdb(at_.postgres.c_str())};
    PQclear(PQexec(
        connection.get(),
        fmt::format("SET client_min_messages = warning; DROP SCHEMA {} CASCADE", name_).c_str()
    ));
}

void pg_outbox::fill(const dataset& data, std::string_view value) const {
    const auto bytes = fmt::format("convert_to(repeat('v', {}), 'UTF8')", data.value_bytes);
    const auto connection = connect(at_.postgres);
    run_sql(
        connection.get(),
        fmt::format(
            "INSERT INTO {} (topic, key, value) SELECT '{}', convert_to('key-' || (n::bigint * 7919 % {}), "
            "'UTF8'), {} FROM generate_series(1, {}) AS n",
            table(),
            name_,
            data.keys,
            value.empty() ? bytes : value,
            data.rows
        )
    );
    run_sql(connection.get(), fmt::format("VACUUM ANALYZE {}", table()));
    run_sql(connection.get(), "CHECKPOINT");
}

std::string pg_outbox::url() const {
    return fmt::format(
        "{}{}table={}", at_.postgres, at_.postgres.find('?') == std::string::npos ? '?' : '&', table()
    );
}

std::vector<std::string> pg_outbox::relay() const {
    return {
        with_.millrace,
        "relay",
        "--outbox",
        url(),
        "--sink",
        "kafka://" + at_.kafka,
        "--log-level",
        "warning"};
}

}  // namespace millrace::bench
