/// A schema of the test's own on the shared PostgreSQL, and connections to it.
#pragma once

#include "connection.hpp"
#include "server.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace::test {

struct postgres_schema {
    explicit postgres_schema(const char* prefix) : name(support::unique_name(prefix)) {
        admin.execute("CREATE SCHEMA " + name);
    }
    ~postgres_schema() { admin.execute("DROP SCHEMA IF EXISTS " + name + " CASCADE"); }
    postgres_schema(const postgres_schema&) = delete;
    postgres_schema& operator=(const postgres_schema&) = delete;

    [[nodiscard]] std::string table(const std::string& of) const { return name + "." + of; }

    support::sql_connection admin{support::services().postgres};
    std::string name;
};

inline postgres::server shared_server() {
    return postgres::parse_server(support::services().postgres).value();
}

/// The same server through a port of 127.0.0.1.
inline postgres::server shared_server_at(std::uint16_t port) {
    auto where = shared_server();
    for (auto& [keyword, value] : where.parameters) {
        if (keyword == "port") value = std::to_string(port);
    }
    return where;
}

inline postgres::statement reading(std::string sql) {
    return {std::move(sql), postgres::effect::reads, "test"};
}
inline postgres::statement writing(std::string sql) {
    return {std::move(sql), postgres::effect::writes, "test"};
}

}  // namespace millrace::test
